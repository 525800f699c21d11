#include "net/link_queue.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tailward::net {
namespace {

using namespace std::chrono_literals;

constexpr unsigned char kSyn = 0x02;
constexpr unsigned char kAck = 0x10;

// An IPv4 packet with a TCP header, `size` bytes long, whose last byte is `mark`.
std::vector<char> packet(char mark, std::size_t size = 100, unsigned char flags = kAck) {
  std::vector<char> bytes(size);
  bytes[0] = 0x45;
  bytes[9] = 6;
  bytes[20 + 13] = static_cast<char>(flags);
  bytes.back() = mark;
  return bytes;
}

class LinkQueueTest : public ::testing::Test {
 protected:
  void shape(const LinkShape& shape) { queue_ = LinkQueue(shape, Rng(1)); }
  void offer(char mark, Duration at, std::size_t size = 100, unsigned char flags = kAck) {
    queue_.offer(packet(mark, size, flags), TimePoint{at});
  }
  // The marks of what has come out by then, in order.
  std::string out(Duration by) {
    std::string marks;
    for (auto one = queue_.due(TimePoint{by}); !one.empty(); one = queue_.due(TimePoint{by})) {
      marks.push_back(one.back());
      queue_.pop();
    }
    return marks;
  }

  LinkQueue queue_{{}, Rng(1)};
};

TEST_F(LinkQueueTest, WithoutAShapeAPacketComesOutAtOnce) {
  offer('a', 5ms);
  EXPECT_EQ(queue_.next_due(), TimePoint{5ms});
  EXPECT_EQ(out(5ms), "a");
  EXPECT_EQ(queue_.next_due(), kNever);
  EXPECT_EQ(queue_.counters().forwarded, 1U);
  EXPECT_EQ(queue_.counters().bytes, 100U);
}

TEST_F(LinkQueueTest, APacketComesOutOneDelayLaterAndNotANanosecondEarlier) {
  shape({.delay = 10ms});
  offer('a', 3ms);
  EXPECT_EQ(out(13ms - 1ns), "");
  EXPECT_EQ(out(13ms), "a");
}

TEST_F(LinkQueueTest, TheRateSpacesPacketsBySizeAndThenComesTheDelay) {
  shape({.delay = 10ms, .bits_per_s = 8e6});  // a byte in a microsecond
  offer('a', 0ms, 1000);
  offer('b', 0ms, 500);
  EXPECT_EQ(out(11ms - 1ns), "");
  EXPECT_EQ(out(11ms), "a");
  EXPECT_EQ(out(11ms + 500us - 1ns), "");
  EXPECT_EQ(out(11ms + 500us), "b");
}

TEST_F(LinkQueueTest, AnIdleLineIsNotSavedUp) {
  shape({.bits_per_s = 8e6});
  offer('a', 0ms, 1000);
  EXPECT_EQ(out(1ms), "a");
  offer('b', 50ms, 1000);
  EXPECT_EQ(queue_.next_due(), TimePoint{51ms});
}

TEST_F(LinkQueueTest, OneIsSentWhileSoManyWaitAndTheNextIsDropped) {
  shape({.bits_per_s = 8e6, .queue_packets = 2});
  for (const char mark : {'a', 'b', 'c', 'd'}) offer(mark, 0ms, 1000);
  EXPECT_EQ(queue_.counters().queue_drops, 1U);
  offer('e', 1ms, 1000);  // 'a' has been sent
  offer('f', 1ms, 1000);
  EXPECT_EQ(out(100ms), "abce");
  EXPECT_EQ(queue_.counters().queue_drops, 2U);
}

TEST_F(LinkQueueTest, TheDelayDoesNotFillTheQueue) {
  shape({.delay = 1s, .bits_per_s = 8e6, .queue_packets = 1});
  for (int i = 0; i < 50; ++i) offer('a', i * 1ms, 1000);
  EXPECT_EQ(queue_.counters().queue_drops, 0U);
  EXPECT_EQ(out(2s).size(), 50U);
}

TEST_F(LinkQueueTest, NoMoreThanTheLimitAreInFlight) {
  shape({.delay = 1s});
  for (std::size_t i = 0; i < LinkQueue::kPacketsMax + 3; ++i) offer('a', 0ms);
  EXPECT_EQ(queue_.counters().queue_drops, 3U);
}

TEST_F(LinkQueueTest, LosesTheShareThatItIsTold) {
  shape({.loss = 0.1, .syn_loss = 1});
  for (int i = 0; i < 10'000; ++i) offer('a', 0ms);
  // Five standard deviations of 30.
  EXPECT_NEAR(static_cast<double>(queue_.counters().lost), 1000, 150);
  EXPECT_EQ(queue_.counters().syns_lost, 0U);
  EXPECT_EQ(out(0ms).size(), 10'000 - queue_.counters().lost);
}

TEST_F(LinkQueueTest, SynsHaveALossOfTheirOwn) {
  shape({.loss = 1, .syn_loss = 0});
  offer('s', 0ms, 100, kSyn);
  offer('t', 0ms, 100, kSyn | kAck);
  offer('d', 0ms);
  EXPECT_EQ(out(0ms), "st");
  shape({.syn_loss = 1});
  offer('s', 0ms, 100, kSyn);
  offer('d', 0ms);
  EXPECT_EQ(out(0ms), "d");
  EXPECT_EQ(queue_.counters().syns_lost, 1U);
}

TEST_F(LinkQueueTest, TheSameSeedLosesTheSamePackets) {
  const auto survivors = [](std::uint64_t seed) {
    LinkQueue queue({.loss = 0.3}, Rng(seed));
    std::string marks;
    for (int i = 0; i < 64; ++i) {
      queue.offer(packet(static_cast<char>(' ' + i)), TimePoint{});
      if (!queue.due(TimePoint{}).empty()) {
        marks.push_back(queue.due(TimePoint{}).back());
        queue.pop();
      }
    }
    return marks;
  };
  EXPECT_EQ(survivors(7), survivors(7));
  EXPECT_NE(survivors(7), survivors(8));
}

TEST_F(LinkQueueTest, APacketIsOvertakenByTheNext) {
  shape({.delay = 1ms, .reorder = 1});
  offer('a', 0ms);
  offer('b', 2ms);
  EXPECT_EQ(out(3ms - 1ns), "");
  EXPECT_EQ(out(3ms), "ba");
  EXPECT_EQ(queue_.counters().reordered, 1U);
}

TEST_F(LinkQueueTest, WithoutANextAPacketWaitsForItNoLongerThanTheLimit) {
  shape({.delay = 1ms, .reorder = 1});
  offer('a', 0ms);
  const Duration limit = 1ms + LinkQueue::kOvertakenWithin;
  EXPECT_EQ(out(limit - 1ns), "");
  EXPECT_EQ(out(limit), "a");
  EXPECT_EQ(queue_.counters().reordered, 0U);
}

TEST_F(LinkQueueTest, AShorterDelayDoesNotLetLaterPacketsPass) {
  shape({.delay = 100ms});
  offer('a', 0ms);
  queue_.reshape({.delay = 1ms});
  offer('b', 1ms);
  EXPECT_EQ(out(99ms), "");
  EXPECT_EQ(out(100ms), "ab");
}

TEST_F(LinkQueueTest, APrefixTravelsAlongAndCountsForNothing) {
  queue_ = LinkQueue({.bits_per_s = 8e6, .syn_loss = 1}, Rng(1), 10);
  std::vector<char> bytes(10, 'p');
  const std::vector<char> ip = packet('a', 1000);
  bytes.insert(bytes.end(), ip.begin(), ip.end());
  queue_.offer(bytes, TimePoint{});
  EXPECT_EQ(queue_.next_due(), TimePoint{1ms});
  EXPECT_EQ(queue_.due(TimePoint{1ms}).size(), 1010U);
  queue_.pop();
  EXPECT_EQ(queue_.counters().bytes, 1000U);
  bytes[10 + 33] = kSyn;
  queue_.offer(bytes, TimePoint{1ms});
  EXPECT_EQ(queue_.counters().syns_lost, 1U);
  queue_.offer(std::span(bytes).first(5), TimePoint{1ms});
  EXPECT_EQ(queue_.next_due(), kNever);
}

TEST_F(LinkQueueTest, WhatIsNotIpv4IsIgnored) {
  std::vector<char> six = packet('x');
  six[0] = 0x60;
  queue_.offer(six, TimePoint{});
  queue_.offer({}, TimePoint{});
  EXPECT_EQ(queue_.next_due(), kNever);
  EXPECT_EQ(queue_.counters().forwarded, 0U);
}

TEST(HasSynTest, NeedsAWholeTcpHeaderBehindTheIpHeader) {
  const std::vector<char> syn = packet('s', 60, kSyn);
  EXPECT_TRUE(has_syn(syn));
  for (std::size_t size = 0; size <= 33; ++size) {
    EXPECT_FALSE(has_syn(std::span(syn).first(size))) << size;
  }
  EXPECT_TRUE(has_syn(std::span(syn).first(34)));
  std::vector<char> udp = syn;
  udp[9] = 17;
  EXPECT_FALSE(has_syn(udp));
  std::vector<char> fragment = syn;
  fragment[7] = 1;
  EXPECT_FALSE(has_syn(fragment));
  std::vector<char> options = packet('s', 64, 0);
  options[0] = 0x46;
  options[24 + 13] = static_cast<char>(kSyn);
  EXPECT_TRUE(has_syn(options));
}

}  // namespace
}  // namespace tailward::net
