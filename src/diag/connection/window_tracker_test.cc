#include "diag/connection/window_tracker.h"

#include <gtest/gtest.h>

#include <chrono>

namespace tailward::diag {
namespace {

using namespace std::chrono_literals;

tcp::Segment offer(std::uint16_t window, std::uint64_t number = 1) {
  tcp::Segment s;
  s.ack_flag = true;
  s.window = window;
  s.number = number;
  return s;
}

tcp::Segment syn(std::optional<std::uint8_t> scale) {
  tcp::Segment s = offer(64'000);
  s.syn = true;
  s.window_scale = scale;
  return s;
}

TEST(WindowTrackerTest, BothMustOfferToScale) {
  WindowTracker a, b;
  a.take_syn(syn(7));
  b.take_syn(syn({}));
  WindowTracker::agree_on_scales(a, b, true);
  a.take(offer(1000), 1ms);
  EXPECT_EQ(a.window(), 1000u);
  EXPECT_TRUE(a.scale_known());
  WindowTracker c, d;
  c.take_syn(syn(200));  // more than RFC 7323 allows
  d.take_syn(syn(0));
  WindowTracker::agree_on_scales(c, d, true);
  EXPECT_EQ(c.largest(), 64'000u);  // a SYN's own window is never scaled
  c.take(offer(1000), 1ms);
  EXPECT_EQ(c.window(), 1000u << 14);
}

TEST(WindowTrackerTest, AWindowThatWasShutAndProbedIsAStall) {
  WindowTracker window;
  window.know_scale(0);
  window.take(offer(64'000, 1), 10ms);
  window.take(offer(0, 2), 20ms);
  EXPECT_TRUE(window.shut());
  window.probed(220ms, 3);
  window.take(offer(64'000, 4), 300ms);
  EXPECT_FALSE(window.shut());
  EXPECT_TRUE(window.waits_for_peer());
  const auto event = window.peer_sends(301ms, 5, 1ms);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, StallKind::kZeroWindow);
  EXPECT_EQ(event->amount, 281ms);
  EXPECT_EQ(event->probes, 1u);
  EXPECT_EQ(event->packets, (std::array<std::uint64_t, 4>{2, 3, 5, 0}));
  EXPECT_FALSE(window.waits_for_peer());
}

TEST(WindowTrackerTest, NobodyWaitedWhereTheSenderHadNothingToSend) {
  WindowTracker window;
  window.know_scale(0);
  window.take(offer(64'000), 10ms);
  window.take(offer(0), 20ms);
  window.take(offer(64'000), 30ms);
  EXPECT_FALSE(window.peer_sends(200ms, 5, 10ms));
  EXPECT_FALSE(window.waits_for_peer());
}

TEST(WindowTrackerTest, ASmallWindowIsItsOwnFault) {
  WindowTracker window;
  window.know_scale(0);
  window.take(offer(4'000), 10ms);
  window.take(offer(0), 20ms);
  window.take(offer(4'000), 30ms);
  const auto event = window.peer_sends(30ms + 100us, 5, 0ms);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, StallKind::kReceiveWindow);
  EXPECT_EQ(event->window_max, 4'000u);
}

TEST(WindowTrackerTest, AReaderIsBehindOnceMoreThanHalfLiesUnreadForTenMilliseconds) {
  WindowTracker window;
  window.know_scale(0);
  const auto look = [&](std::uint16_t size, Duration at, bool peer_spoke_last = true) {
    window.take(offer(size), at);
    return window.check_reader(offer(size), at, peer_spoke_last);
  };
  EXPECT_FALSE(look(60'000, 1ms));
  EXPECT_FALSE(look(20'000, 2ms));  // begins
  EXPECT_FALSE(look(20'000, 11ms));
  const auto event = look(20'000, 12ms);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->amount, 10ms);
  EXPECT_FALSE(look(60'000, 13ms));  // it has read
  EXPECT_FALSE(look(20'000, 14ms, false));
  EXPECT_FALSE(look(20'000, 40ms));  // begins again
}

TEST(WindowTrackerTest, MoreInFlightThanTheWindowSaysMeansThatItIsScaled) {
  WindowTracker window;
  window.take(offer(500), 1ms);
  EXPECT_FALSE(window.exceeded_by(500));
  EXPECT_TRUE(window.exceeded_by(501));
  EXPECT_FALSE(window.exceeded_by(501));  // no news
  window.take(offer(500), 2ms);
  EXPECT_GE(window.window(), 1u << 30);
  WindowTracker known;
  known.know_scale(0);
  known.take(offer(500), 1ms);
  EXPECT_FALSE(known.exceeded_by(10'000));
}

TEST(WindowTrackerTest, AWindowThatNeverOpensEndsWithItsLastProbe) {
  WindowTracker window;
  window.know_scale(0);
  window.take(offer(64'000), 1ms);
  window.take(offer(0, 7), 5ms);
  EXPECT_FALSE(window.finish());
  window.probed(205ms, 8);
  const auto event = window.finish();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->amount, 200ms);
}

}  // namespace
}  // namespace tailward::diag
