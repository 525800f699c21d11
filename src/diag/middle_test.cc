// Captures that begin in the middle of connections: no SYN tells how windows are scaled, which side
// is the server, or how large a segment may be.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "diag/testing.h"

namespace tailward::diag::testing {
namespace {

// An upload over a path of 10 ms whose receiver's window of 60,000 bytes, scaled by 7 and so 468 in
// the packets, is large enough for what is sent: 20,000 bytes at a time.
void upload(Capture& capture, Place place) {
  Talk talk(capture, place, {.server_window = 60'000});
  for (int round = 0; round < 40; ++round) {
    for (int at = 0; at < 14; ++at) talk.after(20us).client().sends(1448);
    talk.answer().server().acks();
    talk.after(place.to_client);
  }
}

TEST(MiddleTest, AScaledWindowIsNotTakenForASmallOne) {
  for (const Place place : kPlaces) {
    Capture capture;
    upload(capture, place);
    EXPECT_THAT(names(capture.diagnose()), ::testing::Not(::testing::HasSubstr("receive-window")));
  }
}

// Filled, emptied by the reader, filled again: 7,000 bytes, and it never was larger.
void fill_window(Capture& capture, Place place, std::uint16_t in_packets) {
  Talk talk(capture, place);
  for (int round = 0; round < 60; ++round) {
    for (int at = 0; at < 5; ++at) {
      talk.after(20us).client().sends(1400);
      talk.last().window = 500;
    }
    talk.answer(5ms).server().acks();
    talk.last().window = in_packets;
    talk.after(place.to_client);
  }
}

TEST(MiddleTest, AWindowThatNothingEverExceededIsTakenAsItStands) {
  for (const Place place : {kAtClient, kOneHost}) {
    Capture capture;
    fill_window(capture, place, 7'000);
    const NetworkDiagnosis diagnosis = capture.diagnose();
    ASSERT_EQ(names(diagnosis), "small-receive-window");
    EXPECT_EQ(diagnosis.findings[0].certainty, Certainty::kGuessed);
  }
}

TEST(MiddleTest, WhatIsKnownOfTheScaleFromElsewhereCounts) {
  Capture capture;
  fill_window(capture, kAtClient, 7'000 >> 3);
  const auto analyse = [&](bool told) {
    PacketAnalyser analyser({80});
    if (told) analyser.know_scales(address(2, 80), 3, address(1, 40'000), 7);
    std::uint64_t number = 0;
    for (Segment segment : capture.segments()) {
      segment.number = ++number;
      analyser.add(segment);
    }
    const PacketAnalysis analysis = analyser.finish();
    return names(diagnose_network({.packets = &analysis}));
  };
  EXPECT_EQ(analyse(false), "");
  EXPECT_EQ(analyse(true), "small-receive-window");
}

TEST(MiddleTest, AReceiverThatDoesNotReadTellsItsScale) {
  Capture capture;
  Talk talk(capture, kAtClient);
  std::uint16_t window = 60'000;  // times 4
  for (int at = 0; at < 40; ++at) {
    for (int part = 0; part < 4; ++part) talk.after(20us).client().sends(1448);
    window = static_cast<std::uint16_t>(window - 1448);
    talk.server().acks();
    talk.last().window = window;
  }
  talk.after(10ms).client().sends(1448);
  talk.server().acks();
  talk.last().window = 0;
  talk.after(300ms).server().acks();
  talk.last().window = 60'000;
  talk.answer().client().sends(1448);
  const NetworkDiagnosis diagnosis = capture.diagnose();
  ASSERT_EQ(names(diagnosis), "slow-reader");
  EXPECT_THAT(diagnosis.findings[0].evidence[0].text, ::testing::HasSubstr("up to 2"));
}

TEST(MiddleTest, TheServerIsTheAddressThatManyConnectionsShare) {
  Capture capture;
  for (std::uint16_t i = 0; i < 6; ++i) {
    // The server's port is above its clients': a guess by numbers goes wrong.
    Talk talk(capture, kAtServer,
              {.client_port = static_cast<std::uint16_t>(33'000 + i), .server_port = 50'051});
    talk.after(i * 1ms);
    for (int turn = 0; turn < 4; ++turn) talk.after(5ms).exchange(100, 1ms, 2000);
  }
  const PacketAnalysis analysis = capture.analyse();
  ASSERT_EQ(analysis.connections.size(), 6u);
  int right = 0;
  for (const ConnectionSummary& connection : analysis.connections) {
    right += connection.server.port == 50'051 ? 1 : 0;
  }
  EXPECT_GE(right, 5);  // nothing tells of the first
}

TEST(MiddleTest, AnAnswerOfOneSegmentOnLoopbackIsNotAFullOne) {
  Capture capture;
  Talk talk(capture, kOneHost);
  for (int turn = 0; turn < 12; ++turn) {
    // Ends on a tick of 4 ms, as the kernel's patience does.
    const Duration write = 3ms + std::chrono::microseconds(137 * turn);
    talk.after(5ms).client().sends(100);
    const Duration due = talk.now() + write + 200ms;
    talk.after(due - due % 4ms + 4ms - talk.now()).server().sends(9'852);
    talk.answer().client().acks();
  }
  for (Segment& segment : capture.segments()) {
    segment.from.address.bytes =
        segment.to.address.bytes = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1};
  }
  EXPECT_EQ(names(capture.diagnose()), "corked");
}

// A congestion window lets ten segments go in a round trip, however small they are.
TEST(MiddleTest, SmallWritesAreSeenThroughTheRoundsOfACongestionWindow) {
  Capture capture;
  Talk talk(capture, kAtServer);
  talk.opens();
  for (int turn = 0; turn < 6; ++turn) {
    talk.after(5ms).client().sends(100);
    talk.after(1ms);
    for (int round = 0; round < 12; ++round) {
      for (int at = 0; at < 10; ++at) talk.after(5us).server().sends(64);
      talk.answer().client().acks();
    }
  }
  EXPECT_EQ(names(capture.diagnose()), "small-writes");
}

}  // namespace
}  // namespace tailward::diag::testing
