#include "diag/connection/first_turn.h"

#include <gtest/gtest.h>

#include <chrono>

namespace tailward::diag {
namespace {

using namespace std::chrono_literals;

Turn turn(Duration think) { return {.began = 1s, .total = think, .think = think}; }

std::optional<FirstTurn::Compared> compare(Duration first, Duration later, int times) {
  FirstTurn comparison;
  comparison.hold(turn(first));
  for (int i = 1; i <= times; ++i) EXPECT_EQ(comparison.later(turn(later)), i == 3);
  return comparison.settle(7);
}

TEST(FirstTurnTest, AFirstRequestThatWaitsMuchLongerThanTheOthers) {
  const auto compared = compare(100ms, 10ms, 3);
  ASSERT_TRUE(compared && compared->detection.stall);
  EXPECT_EQ(compared->detection.stall->amount, 90ms);
  EXPECT_EQ(compared->turn.stalled_us[static_cast<std::size_t>(StallKind::kFirstTurn)], 90'000u);
  EXPECT_EQ(compared->detection.stall->packets[0], 7u);
}

TEST(FirstTurnTest, OneLikeTheOthersSpeaksAgainstIt) {
  EXPECT_TRUE(compare(12ms, 10ms, 3)->detection.counterexample);
  EXPECT_TRUE(compare(29ms, 10ms, 3)->detection.counterexample);
  EXPECT_TRUE(compare(4ms, 1ms, 3)->detection.counterexample);
}

TEST(FirstTurnTest, NothingIsSaidWithoutLaterOnes) {
  const auto compared = compare(100ms, 0ms, 0);
  ASSERT_TRUE(compared);
  EXPECT_FALSE(compared->detection.stall);
  EXPECT_FALSE(compared->detection.counterexample);
  EXPECT_EQ(compared->turn.total, 100ms);
}

TEST(FirstTurnTest, TimeThatTcpLostIsNotCountedTwice) {
  FirstTurn comparison;
  Turn first = turn(100ms);
  first.stalled_us[static_cast<std::size_t>(StallKind::kRetransmission)] = 80'000;
  comparison.hold(first);
  comparison.later(turn(5ms));
  const auto compared = comparison.settle(7);
  EXPECT_EQ(compared->detection.stall->amount, 20ms);
  EXPECT_FALSE(comparison.settle(7));  // given up
}

}  // namespace
}  // namespace tailward::diag
