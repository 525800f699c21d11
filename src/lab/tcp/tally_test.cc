#include "lab/tcp/tally.h"

#include <gtest/gtest.h>

namespace tailward::lab {
namespace {

using namespace std::chrono_literals;

constexpr std::uint16_t kServer = 80;
constexpr std::uint16_t kClient = 40'000;
constexpr std::uint32_t kWrap = 0xFFFF'FFC0;  // 64 bytes before the numbers wrap

class TcpTallyTest : public ::testing::Test {
 protected:
  static tcp::Segment segment(bool from_client, Duration at, std::uint32_t seq,
                              std::uint32_t payload, std::uint32_t ack) {
    tcp::Segment one;
    one.at = at;
    one.from.port = from_client ? kClient : kServer;
    one.to.port = from_client ? kServer : kClient;
    one.seq = seq;
    one.payload = payload;
    one.ack = ack;
    one.ack_flag = true;
    one.window = 1000;
    return one;
  }
  void client(Duration at, std::uint32_t seq, std::uint32_t payload, std::uint32_t ack = 1) {
    tally_.add(segment(true, at, seq, payload, ack));
  }
  void server(Duration at, std::uint32_t seq, std::uint32_t payload, std::uint32_t ack,
              std::uint16_t window = 1000) {
    tcp::Segment one = segment(false, at, seq, payload, ack);
    one.window = window;
    tally_.add(one);
  }
  const TcpCounts& counts() const { return tally_.counts(); }

  TcpTally tally_{kServer, 10ms};
};

TEST_F(TcpTallyTest, CountsDataOfEachSideAndBareAcks) {
  client(0ms, 100, 32);
  server(1ms, 500, 0, 132);
  client(2ms, 132, 32);
  server(3ms, 500, 64, 164);
  EXPECT_EQ(counts().segments, 2U);
  EXPECT_EQ(counts().segments_back, 1U);
  EXPECT_EQ(counts().acks_back, 1U);
  EXPECT_EQ(counts().retransmissions, 0U);
}

TEST_F(TcpTallyTest, WhatWasSentBeforeIsARetransmissionAcrossTheWrapToo) {
  client(0ms, kWrap, 100);
  client(1ms, kWrap + 100, 100);
  client(2ms, kWrap, 100);
  EXPECT_EQ(counts().segments, 3U);
  EXPECT_EQ(counts().retransmissions, 1U);
  EXPECT_EQ(counts().in_flight_max, 200U);
}

TEST_F(TcpTallyTest, InFlightIsWhatIsNotYetAcknowledged) {
  client(0ms, 100, 1000);
  client(1ms, 1100, 1000);
  server(2ms, 500, 0, 2100);
  client(3ms, 2100, 1500);
  EXPECT_EQ(counts().in_flight_max, 2000U);
}

TEST_F(TcpTallyTest, WhatWasInFlightBeforeItSettledIsForgotten) {
  client(0ms, 100, 5000);
  server(kSteadyFrom - 1ns, 500, 0, 5100, 4000);
  EXPECT_EQ(counts().in_flight_max, 5000U);
  client(kSteadyFrom, 5100, 2000);
  EXPECT_EQ(counts().in_flight_max, 2000U);
  EXPECT_EQ(counts().window_max, 0U);
}

TEST_F(TcpTallyTest, AnAckIsDelayedFromTheLimitOnWithoutThePath) {
  client(0ms, 100, 32);
  server(kDelayedAckFrom + 10ms - 1ns, 500, 0, 132);
  EXPECT_EQ(counts().delayed_acks, 0U);
  client(100ms, 132, 32);
  server(100ms + kDelayedAckFrom + 10ms, 500, 0, 164);
  EXPECT_EQ(counts().delayed_acks, 1U);
}

TEST_F(TcpTallyTest, TheClientsOwnAcksTakeNoPath) {
  client(0ms, 100, 32);
  server(10ms, 500, 32, 132);
  client(10ms + kDelayedAckFrom, 132, 0, 532);
  EXPECT_EQ(counts().delayed_acks, 1U);
}

TEST_F(TcpTallyTest, AnAnswerIsNoDelayedAckHoweverLate) {
  client(0ms, 100, 32);
  server(200ms, 500, 64, 132);
  EXPECT_EQ(counts().delayed_acks, 0U);
}

TEST_F(TcpTallyTest, AnAckThatIsOnlyOneOfManyIsNotDelayedHoweverLongThePathHasBecome) {
  client(0ms, 100, 1000);
  client(1ms, 1100, 1000);
  client(80ms, 2100, 1000);
  server(90ms, 500, 0, 1100);  // a queue on the path took its time
  server(91ms, 500, 0, 2100);
  EXPECT_EQ(counts().delayed_acks, 0U);
}

TEST_F(TcpTallyTest, SilencesThatTheClientEndsByItselfAreTimerWaits) {
  client(0ms, 100, 1000);
  server(1ms, 500, 0, 1100, 0);
  client(1ms + kTimerWaitFrom - 1ns, 1100, 10);
  EXPECT_EQ(counts().timer_waits, 0U);
  server(200ms, 500, 0, 1110, 0);
  client(200ms + kTimerWaitFrom, 1110, 10);  // data
  server(400ms, 500, 0, 1120, 0);
  client(600ms, 1119, 0);  // a window probe
  EXPECT_EQ(counts().timer_waits, 2U);
  client(900ms, 1120, 0, 501);  // an ACK
  server(1200ms, 501, 10, 1120);
  EXPECT_EQ(counts().timer_waits, 2U);
  EXPECT_EQ(counts().retransmissions, 0U);
}

TEST_F(TcpTallyTest, AWindowThatStaysClosedHasClosedOnce) {
  client(0ms, 100, 1000);
  server(1ms, 500, 0, 1100, 0);
  server(2ms, 500, 0, 1100, 0);
  server(3ms, 500, 0, 1100, 500);
  server(4ms, 500, 0, 1100, 0);
  EXPECT_EQ(counts().zero_windows, 2U);
}

TEST_F(TcpTallyTest, TheWindowIsScaledAsTheHandshakeSaid) {
  tcp::Segment syn = segment(false, 0ms, 499, 0, 100);
  syn.syn = true;
  syn.window_scale = 7;
  syn.window = 65'535;
  tally_.add(syn);
  server(1ms, 500, 0, 100, 1000);
  EXPECT_EQ(counts().window_max, 128'000U);
}

TEST_F(TcpTallyTest, OtherConnectionsAndResetsAreLeftOut) {
  tcp::Segment other = segment(true, 0ms, 1, 10, 1);
  other.to.port = 81;
  tally_.add(other);
  tcp::Segment reset = segment(true, 0ms, 1, 0, 1);
  reset.rst = true;
  tally_.add(reset);
  EXPECT_EQ(counts().segments, 0U);
  EXPECT_EQ(counts().zero_windows, 0U);
}

TEST(TcpCountsTest, SegmentsPerMessageOfNoMessagesIsNone) {
  EXPECT_EQ(TcpCounts{}.segments_per_message(), 0);
  EXPECT_EQ((TcpCounts{.messages = 4, .segments = 10}).segments_per_message(), 2.5);
}

}  // namespace
}  // namespace tailward::lab
