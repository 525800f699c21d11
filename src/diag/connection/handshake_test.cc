#include "diag/connection/handshake.h"

#include <gtest/gtest.h>

#include <chrono>

namespace tailward::diag {
namespace {

using namespace std::chrono_literals;

TEST(HandshakeTest, EachHalfIsMeasuredWhereEachWasSentOnce) {
  Handshake handshake;
  EXPECT_EQ(handshake.syn(100ms, 1), Handshake::Syn::kFirst);
  EXPECT_TRUE(handshake.syn_ack(110ms, 2));
  EXPECT_EQ(handshake.to_syn_ack(), 10ms);
  EXPECT_FALSE(handshake.to_ack());
  handshake.established(111ms);
  EXPECT_EQ(handshake.to_ack(), 1ms);
  EXPECT_EQ(handshake.took(), 11ms);
  EXPECT_EQ(handshake.syn(200ms, 3), Handshake::Syn::kIgnored);  // an old one that comes late
}

TEST(HandshakeTest, ARepeatedSynCostsTheTimeToItsLastCopy) {
  Handshake handshake;
  handshake.syn(0s, 1);
  EXPECT_EQ(handshake.syn(1s, 2), Handshake::Syn::kAgain);
  EXPECT_EQ(handshake.syn(3s, 3), Handshake::Syn::kAgain);
  EXPECT_TRUE(handshake.syn_ack(3s + 1ms, 4));
  EXPECT_FALSE(handshake.to_syn_ack());  // for which copy?
  const StallEvent lost = handshake.syn_stall(false, 4);
  EXPECT_EQ(lost.kind, StallKind::kSynUnanswered);
  EXPECT_EQ(lost.amount, 3s);
  EXPECT_EQ(handshake.syn_stall(true, 4).kind, StallKind::kSynDropped);
}

TEST(HandshakeTest, ASynAckAgainAfterTheAckMeansThatTheHostDroppedIt) {
  Handshake handshake;
  handshake.syn(0s, 1);
  handshake.syn_ack(1ms, 2);
  handshake.established(2ms);
  EXPECT_FALSE(handshake.syn_ack_again(100ms, 4, 1ms));  // crossed the ACK
  EXPECT_FALSE(handshake.ack_dropped_by_host());
  const auto dropped = handshake.syn_ack_again(1s, 5, 1ms);
  ASSERT_TRUE(dropped);
  EXPECT_EQ(dropped->kind, StallKind::kSynDropped);
  EXPECT_EQ(dropped->amount, 998ms);
  EXPECT_TRUE(handshake.ack_dropped_by_host());
}

TEST(HandshakeTest, ASynAckAgainBeforeAnyAckWasLost) {
  Handshake handshake;
  handshake.syn(0s, 1);
  handshake.syn_ack(1ms, 2);
  const auto lost = handshake.syn_ack_again(1s + 1ms, 3, 0ms);
  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->kind, StallKind::kSynUnanswered);
  EXPECT_EQ(lost->amount, 1s);
}

TEST(HandshakeTest, TheTwoHalvesSayWhereTheCaptureWasMade) {
  const auto vantage = [](Duration to_server, Duration to_client) {
    Handshake handshake;
    handshake.syn(1s, 1);
    handshake.syn_ack(1s + to_server, 2);
    handshake.established(1s + to_server + to_client);
    return handshake.vantage(false, Vantage::kUnknown);
  };
  EXPECT_EQ(vantage(50us, 20ms), Vantage::kServer);
  EXPECT_EQ(vantage(20ms, 50us), Vantage::kClient);
  EXPECT_EQ(vantage(5ms, 15ms), Vantage::kBetween);
  EXPECT_EQ(vantage(50us, 60us), Vantage::kUnknown);
}

TEST(HandshakeTest, WhereItSaysNothingTheServicesUsualPlaceStands) {
  Handshake handshake;
  handshake.syn(0s, 1);
  handshake.syn(1s, 2);
  handshake.syn_ack(1s, 3);
  handshake.established(1s + 20ms);
  EXPECT_EQ(handshake.vantage(false, Vantage::kServer), Vantage::kServer);
  EXPECT_EQ(handshake.vantage(true, Vantage::kServer), Vantage::kLoopback);
}

TEST(HandshakeTest, AConnectionFromBeforeTheCaptureIsOpen) {
  Handshake handshake;
  EXPECT_EQ(handshake.join(), Handshake::State::kOpen);
  EXPECT_FALSE(handshake.seen());
  handshake.close();
  EXPECT_EQ(handshake.join(), Handshake::State::kClosed);
}

}  // namespace
}  // namespace tailward::diag
