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
    for (tcp::Segment segment : capture.segments()) {
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

// The kernel lets a delayed ACK go on a tick, of 4 ms here: its delay varies by that much.
Duration delayed_ack(int turn) {
  return 40ms + std::chrono::microseconds(4000 * (turn * 7 % 10)) / 10;
}

// Answers in two pieces. Every request is acknowledged by the answer's first piece: nowhere does a
// pure ACK of the server's tell the way.
void answers_in_pieces(Capture& capture, Place place, bool echoes) {
  Talk talk(capture, place, {.echoes = echoes});
  for (int turn = 0; turn < 30; ++turn) {
    talk.after(7ms).client().sends(42);
    talk.answer(2ms + std::chrono::microseconds(turn * 731 % 3000)).server().sends(40);
    talk.answer(delayed_ack(turn)).client().acks();
    talk.answer().server().sends(560);
    talk.answer().client().acks();
  }
}

TEST(MiddleTest, NagleIsSeenFromWhereTheWayIsOnlyBounded) {
  for (const Place place : kPlaces) {
    for (const bool echoes : {false, true}) {
      Capture capture;
      answers_in_pieces(capture, place, echoes);
      EXPECT_EQ(names(capture.diagnose()), "nagle-delayed-ack")
          << place.to_server.count() << " ns to the server, " << echoes;
    }
  }
}

TEST(MiddleTest, PiecesThatFollowTheProgramsOwnClockAreNotNagles) {
  for (const Place place : kPlaces) {
    for (const bool echoes : {false, true}) {
      Capture capture;
      Talk talk(capture, place, {.echoes = echoes});
      for (int turn = 0; turn < 30; ++turn) {
        talk.after(7ms).client().sends(42);
        talk.answer(20ms).server().sends(40);
        const Duration second = talk.now() + 50ms + place.to_client;
        talk.answer(delayed_ack(turn)).client().acks();
        talk.after(second - talk.now()).server().sends(560);
        talk.answer().client().acks();
      }
      EXPECT_EQ(names(capture.diagnose()), "")
          << place.to_server.count() << " ns to the server, " << echoes;
    }
  }
}

TEST(MiddleTest, EventsOfAStreamAreNotNagles) {
  for (const Place place : kPlaces) {
    for (const Duration period : {45ms, 50ms, 80ms}) {
      Capture capture;
      Talk talk(capture, place);
      for (int turn = 0; turn < 60; ++turn) {
        const Duration next = talk.now() + period;
        talk.server().sends(100);
        talk.answer(delayed_ack(turn) - place.to_client).client().acks();
        talk.after(next - talk.now());
      }
      EXPECT_EQ(names(capture.diagnose()), "") << period.count();
    }
  }
}

// A server that thinks for longer than 40 ms acknowledges the request meanwhile. Its first pure ACK
// says nothing of the way.
TEST(MiddleTest, ADelayedAckOfTheServersOwnHidesNothing) {
  Capture capture;
  Talk talk(capture, kAtServer);
  for (int turn = 0; turn < 30; ++turn) {
    talk.after(7ms).client().sends(42);
    talk.answer(42ms).server().acks();
    talk.after(8ms).server().sends(40);
    talk.answer(delayed_ack(turn)).client().acks();
    talk.answer().server().sends(1182);
    talk.answer().client().acks();
  }
  const PacketAnalysis analysis = capture.analyse();
  ASSERT_EQ(names(diagnose_network({.packets = &analysis})), "nagle-delayed-ack");
  EXPECT_GE(analysis.patterns[0].count, 28u);
}

// Likewise of each new connection: the way to the server is the same for all of them.
TEST(MiddleTest, AThinkingServerIsNotTakenForALongWay) {
  Capture capture;
  for (std::uint16_t i = 0; i < 20; ++i) {
    Talk talk(capture, kAtServer, {.client_port = static_cast<std::uint16_t>(40'000 + i)});
    talk.after(i * 500ms).client().sends(42);
    if (i > 0) {
      talk.answer(42ms).server().acks();
      talk.after(30ms);
    }
    talk.answer().server().sends(300);
    talk.answer().client().acks();
    talk.after(5ms).exchange(42, 1ms, 300);
  }
  const PacketAnalysis analysis = capture.analyse({}, {80});
  Duration wire{};
  for (const Turn& turn : analysis.turns) wire = std::max(wire, turn.wire);
  EXPECT_LT(wire, 1ms);
}

// Six segments fill the window, and no more come in a round trip. Where the receiver was captured
// only time stamps tell how long one takes.
TEST(MiddleTest, TheReceiversEndLearnsTheRoundTripFromTimeStamps) {
  for (const bool echoes : {true, false}) {
    Capture capture;
    Talk talk(capture, kAtServer, {.echoes = echoes});
    for (int round = 0; round < 60; ++round) {
      for (int at = 0; at < 6; ++at) {
        talk.after(10us).client().sends(1448);
        talk.last().window = 60;
      }
      talk.after(20us).server().acks();
      talk.last().window = 8'688;
      talk.after(10ms);
    }
    EXPECT_EQ(names(capture.diagnose()), echoes ? "small-receive-window" : "");
  }
}

// A sender that has learned how fast its reader is (BBR) does not fill the window. The data that
// lie unread do.
void slow_reading(Capture& capture, Place place, int in_packets, int behind) {
  Talk talk(capture, place);
  std::uint32_t raw = static_cast<std::uint32_t>(in_packets);
  for (int turn = 0; turn < 8; ++turn) {
    talk.client().sends(200);
    talk.last().window = 63;
    for (int step = 0; step < 60; ++step) {
      for (int at = 0; at < 6; ++at) talk.after(500us).client().sends(1448);
      talk.server().acks();
      talk.last().window = static_cast<std::uint16_t>(step < 5 ? raw : raw * (100 - behind) / 100);
    }
    talk.answer(1ms).server().sends(300);
    talk.last().window = static_cast<std::uint16_t>(raw);
    talk.answer().client().acks();
    talk.last().window = 63;
    talk.after(5ms);
  }
}

TEST(MiddleTest, AReaderThatIsAlwaysBehindIsSeenByWhatLiesUnread) {
  for (const Place place : kPlaces) {
    Capture behind, enough;
    slow_reading(behind, place, 61'000, 80);
    EXPECT_EQ(names(behind.diagnose()), "slow-reader");
    slow_reading(enough, place, 61'000, 40);
    EXPECT_EQ(names(enough.diagnose()), "");
  }
}

TEST(MiddleTest, TheSmallerOfTwoScalesThatAreSpokenForIsBelieved) {
  Capture capture;
  Talk talk(capture, kAtServer, {.echoes = true});
  const auto fall = [&](int read_of_64) {
    // `read_of_64` sixty-fourths of each segment are read meanwhile. The true scale is 4.
    std::uint16_t window = 60'000;
    for (int at = 0; at < 12; ++at) {
      for (int part = 0; part < 16; ++part) talk.after(20us).client().sends(1024);
      window = static_cast<std::uint16_t>(window - 16 * 1024 * (64 - read_of_64) / 64 / 16);
      talk.server().acks();
      talk.last().window = window;
      talk.after(10ms);
    }
    talk.server().acks();
    talk.last().window = 60'000;
    talk.after(10ms);
  };
  for (int round = 0; round < 4; ++round) fall(48);  // looks like a scale of 6
  for (int round = 0; round < 4; ++round) fall(0);
  for (int at = 0; at < 10; ++at) talk.after(20us).client().sends(1024);
  talk.server().acks();
  talk.last().window = 0;
  talk.after(200ms).server().acks();
  talk.last().window = 60'000;
  talk.answer().client().sends(1024);
  const PacketAnalysis analysis = capture.analyse();
  const auto closed =
      std::find_if(analysis.patterns.begin(), analysis.patterns.end(),
                   [](const StallPattern& p) { return p.kind == StallKind::kZeroWindow; });
  ASSERT_NE(closed, analysis.patterns.end());
  EXPECT_EQ(closed->window_max, 60'000u << 4);
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
  for (tcp::Segment& segment : capture.segments()) {
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
