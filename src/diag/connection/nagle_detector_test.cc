#include "diag/connection/nagle_detector.h"

#include <gtest/gtest.h>

#include <chrono>

namespace tailward::diag {
namespace {

using namespace std::chrono_literals;

constexpr LastData kHead{.at = 100ms, .number = 1, .bytes = 80};

// The piece before left at 100 ms; its ACK comes `late` later, the next piece `after` that.
Detection hold(Duration late, Duration after, NagleDetector::Way way = {.known = true},
               bool alone = true) {
  NagleDetector nagle;
  nagle.all_acked(100ms + late, 2, alone, kHead, 0ms);
  return nagle.check(100ms + late + after, 3, 40, kHead, way);
}

TEST(NagleDetectorTest, ASegmentRightBehindADelayedAckWasHeld) {
  const Detection found = hold(40ms, 100us);
  ASSERT_TRUE(found.stall);
  EXPECT_EQ(found.stall->kind, StallKind::kHeldByNagle);
  EXPECT_EQ(found.stall->amount, 40ms + 100us);
  EXPECT_EQ(found.stall->late, 40ms);
  EXPECT_EQ(found.stall->packets, (std::array<std::uint64_t, 4>{1, 2, 3, 0}));
  EXPECT_EQ(found.stall->first_bytes, 80u);
  EXPECT_EQ(found.stall->second_bytes, 40u);
}

TEST(NagleDetectorTest, AnAckThatWasNotDelayedHeldNothing) {
  EXPECT_FALSE(hold(24ms, 100us).stall);
  EXPECT_FALSE(hold(40ms, 100us, {.known = true}, false).stall);  // it came with data
}

TEST(NagleDetectorTest, ALaterSegmentSpeaksAgainstIt) {
  EXPECT_TRUE(hold(40ms, 5ms).counterexample);
  EXPECT_FALSE(hold(40ms, 5ms).stall);
  EXPECT_FALSE(hold(40ms, 60ms).counterexample);  // another message
}

TEST(NagleDetectorTest, TheWayToTheSenderIsTakenOff) {
  const NagleDetector::Way way{.to_sender = 20ms, .known = true};
  EXPECT_FALSE(hold(40ms, 2ms, way).stall);  // on its way before the ACK can have been there
  EXPECT_TRUE(hold(40ms, 20ms + 500us, way).stall);
  EXPECT_TRUE(hold(40ms, 30ms, way).counterexample);
}

TEST(NagleDetectorTest, AnythingThatWasSaidMeanwhileEndsIt) {
  NagleDetector nagle;
  nagle.all_acked(140ms, 2, true, kHead, 0ms);
  EXPECT_EQ(nagle.since_release(141ms), 1ms);
  nagle.data_sent();
  EXPECT_FALSE(nagle.since_release(141ms));
  EXPECT_FALSE(nagle.check(140ms + 100us, 3, 40, kHead, {}).stall);
}

}  // namespace
}  // namespace tailward::diag
