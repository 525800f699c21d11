#include "diag/connection/bulk_detector.h"

#include <gtest/gtest.h>

#include <chrono>

namespace tailward::diag {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kSize = 1448;

tcp::Segment offer(std::uint16_t window) {
  tcp::Segment s;
  s.window = window;
  s.ack_flag = true;
  return s;
}

// Rounds of `segments`, each sent when the one before has been acknowledged, as captured at the
// sender. Returns the first stall.
std::optional<StallEvent> rounds(WindowTracker& window, std::uint32_t segments, Duration rtt) {
  BulkDetector bulk;
  Duration now = 1s;
  BulkDetector::Data data{.number = 1, .end = 0, .segment_size = kSize, .rtt = rtt};
  for (int round = 0; round < 30; ++round) {
    for (std::uint32_t i = 0; i < segments; ++i) {
      data.last_number = data.number++;
      data.end += kSize;
      data.bytes_sent += kSize;
      now += 5us;
      if (const auto found = bulk.sent(now, data, window)) return found;
    }
    now += rtt;
    data.acked = data.end;
    bulk.acked(now, data.acked, window.window());
  }
  return {};
}

WindowTracker offering(std::uint16_t raw, std::uint8_t scale) {
  WindowTracker window;
  window.know_scale(scale);
  window.take(offer(raw), 1ms);
  return window;
}

TEST(BulkDetectorTest, TheSameLevelFarBelowTheWindowIsTheSendersBuffer) {
  WindowTracker window = offering(10'000, 7);
  const auto found = rounds(window, 6, 20ms);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, StallKind::kSendBuffer);
  EXPECT_EQ(found->in_flight, 6 * kSize);
}

TEST(BulkDetectorTest, ALevelAtTheWindowIsTheWindows) {
  WindowTracker window = offering(6 * kSize, 0);
  const auto found = rounds(window, 6, 20ms);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, StallKind::kReceiveWindow);
}

TEST(BulkDetectorTest, ProgramsOfOneHostAreNotJudgedByALevel) {
  WindowTracker window = offering(10'000, 7);
  EXPECT_FALSE(rounds(window, 6, 100us));
}

TEST(BulkDetectorTest, AWindowOfUnknownScaleThatMayBeTheLevelAcquits) {
  WindowTracker window;
  window.take(offer(6 * kSize / 128 + 1), 1ms);  // with a scale of 7 exactly the level
  EXPECT_FALSE(rounds(window, 6, 20ms));
  EXPECT_TRUE(window.scaled_by_unknown());
}

TEST(BulkDetectorTest, AConversationIsNotAStream) {
  BulkDetector bulk;
  WindowTracker window = offering(10'000, 7);
  for (std::uint32_t i = 1; i < 100; ++i) {
    EXPECT_FALSE(bulk.in_a_row());
    EXPECT_FALSE(
        bulk.sent(1s + i * 20ms, {.number = i, .end = i * kSize, .segment_size = kSize}, window));
    EXPECT_TRUE(bulk.in_a_row());
    bulk.peer_spoke();
  }
}

}  // namespace
}  // namespace tailward::diag
