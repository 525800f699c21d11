#include "diag/connection/cork_detector.h"

#include <gtest/gtest.h>

#include <chrono>

namespace tailward::diag {
namespace {

using namespace std::chrono_literals;

Detection rest(Duration after, bool continues, bool is_response, Duration rtt = 0ms) {
  CorkContext context;
  context.is_response = is_response;
  context.rtt_to_sender = rtt;
  context.peer = {.at = 1000ms, .number = 1};
  if (continues) context.own = {.at = 1001ms, .number = 2, .bytes = 1448, .full = true};
  const Duration enabled = continues ? 1001ms : 1000ms;
  return check_cork(enabled + after, 3, 100, context);
}

TEST(CorkDetectorTest, ARestThatLeavesWhenTheKernelGivesUp) {
  const Detection found = rest(203ms, true, true);
  ASSERT_TRUE(found.stall);
  EXPECT_EQ(found.stall->kind, StallKind::kCorked);
  EXPECT_EQ(found.stall->amount, 203ms);
  EXPECT_TRUE(found.stall->after_full);
  EXPECT_EQ(found.stall->packets, (std::array<std::uint64_t, 4>{2, 3, 0, 0}));
}

TEST(CorkDetectorTest, OtherDelaysAreThePrograms) {
  EXPECT_FALSE(rest(190ms, true, true).stall);
  EXPECT_FALSE(rest(225ms, true, true).stall);
  EXPECT_TRUE(rest(150ms, false, true).counterexample);
  EXPECT_FALSE(rest(10ms, false, true).counterexample);  // prompt
  EXPECT_FALSE(rest(2s, false, true).counterexample);    // too long to be compared
}

TEST(CorkDetectorTest, TheThinkingBeforeAWholeCorkedResponseIsAllowedFor) {
  EXPECT_TRUE(rest(250ms, false, true).stall);
  EXPECT_FALSE(rest(250ms, true, true).stall);
  EXPECT_FALSE(rest(203ms, false, false).stall);  // the user's time between two requests
}

TEST(CorkDetectorTest, TheWayIsTakenOffAndTheRtoFollowsIt) {
  EXPECT_TRUE(rest(203ms + 50ms, true, true, 50ms).stall);
  EXPECT_TRUE(rest(203ms + 50ms + 60ms, true, true, 50ms).stall);  // the RTO is longer there
  EXPECT_FALSE(rest(203ms, true, true, 50ms).stall);
}

}  // namespace
}  // namespace tailward::diag
