#include "diag/connection/small_write_detector.h"

#include <gtest/gtest.h>

#include <chrono>

namespace tailward::diag {
namespace {

using namespace std::chrono_literals;

std::optional<StallEvent> stream(int writes, std::uint32_t bytes, Duration pace,
                                 std::uint32_t size = 1448) {
  SmallWriteDetector detector;
  for (int i = 0; i < writes; ++i) {
    EXPECT_FALSE(detector.sent(1s + i * pace, static_cast<std::uint64_t>(i + 1), bytes, size, 0ms));
  }
  return detector.finish(size);
}

TEST(SmallWriteDetectorTest, AFastStreamOfSmallSegments) {
  const auto found = stream(100, 64, 20us);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->segments, 100u);
  EXPECT_EQ(found->bytes, 6'400u);
  EXPECT_EQ(found->gap, 20us);
  EXPECT_EQ(found->amount, Duration{99 * 20us} / 100 * 95);  // five full segments would do
  EXPECT_EQ(found->packets, (std::array<std::uint64_t, 4>{1, 100, 0, 0}));
}

TEST(SmallWriteDetectorTest, FewLargeOrSlowOnesAreNone) {
  EXPECT_FALSE(stream(49, 64, 20us));
  EXPECT_FALSE(stream(100, 1448, 20us));
  EXPECT_FALSE(stream(100, 400, 20us));  // more than a quarter of a segment
  EXPECT_FALSE(stream(100, 64, 200us));
  EXPECT_TRUE(stream(100, 1448, 20us, 65'483));  // loopback's segments hold much more
}

TEST(SmallWriteDetectorTest, WaitingForAcknowledgementsIsNotTheProgramsPace) {
  SmallWriteDetector detector;
  Duration now = 1s;
  for (std::uint64_t i = 1; i <= 100; ++i) {
    if (i % 10 == 1 && i > 1) {  // the congestion window is full
      now += 30ms;
      detector.acked(now - 10us);
    }
    EXPECT_FALSE(detector.sent(now, i, 64, 1448, 0ms));
    now += 20us;
  }
  const auto found = detector.finish(1448);
  ASSERT_TRUE(found);
  EXPECT_LT(*found->gap, 25us);
}

TEST(SmallWriteDetectorTest, APauseOfTheProgramEndsTheRun) {
  SmallWriteDetector detector;
  for (int i = 0; i < 60; ++i) detector.sent(1s + i * 20us, 1, 64, 1448, 0ms);
  const auto ended = detector.sent(1s + 60 * 20us + 4ms, 61, 64, 1448, 0ms);
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->segments, 60u);
  EXPECT_FALSE(detector.finish(1448));  // of one segment
}

}  // namespace
}  // namespace tailward::diag
