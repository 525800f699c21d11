// What looks like a cause and is none.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "base/rng.h"
#include "diag/testing.h"

namespace tailward::diag::testing {
namespace {

class InnocentTest : public ::testing::TestWithParam<Place> {
 protected:
  Capture capture;
  Talk talk{capture, GetParam()};
  Rng rng{7};

  Duration random(Duration low, Duration high) {
    return low + Duration{static_cast<std::int64_t>(
                     rng.below(static_cast<std::uint64_t>((high - low).count())))};
  }
  void expect_nothing() {
    const auto diagnosis = capture.diagnose();
    EXPECT_EQ(names(diagnosis), "") << diagnosis.sentence;
    EXPECT_FALSE(diagnosis.sentence.empty());
  }
};

INSTANTIATE_TEST_SUITE_P(Places, InnocentTest, ::testing::ValuesIn(kPlaces));

TEST_P(InnocentTest, AHealthyService) {
  talk.opens();
  for (int i = 0; i < 300; ++i) talk.after(random(1ms, 9ms)).exchange(200, random(1ms, 9ms), 900);
  expect_nothing();
}

TEST_P(InnocentTest, AServerThatThinksFor40MillisecondsWhileItsKernelDelaysTheAck) {
  talk.opens();
  for (int i = 0; i < 50; ++i) {
    talk.after(5ms).client().sends(200);
    talk.answer(40ms).server().acks();
    talk.after(random(10us, 4ms)).server().sends(300);
    talk.answer().client().acks();
  }
  expect_nothing();
}

TEST_P(InnocentTest, AServerThatThinksFor200Milliseconds) {
  talk.opens();
  for (int i = 0; i < 50; ++i) {
    talk.after(random(1ms, 9ms)).client().sends(200);
    talk.answer(40ms).server().acks();
    talk.after(160ms + random(80us, 200us)).server().sends(300);
    talk.answer().client().acks();
  }
  expect_nothing();
}

TEST_P(InnocentTest, AServerThatThinksFor150To250Milliseconds) {
  talk.opens();
  for (int i = 0; i < 100; ++i) talk.after(3ms).exchange(200, random(150ms, 250ms), 300);
  expect_nothing();
}

TEST_P(InnocentTest, AnApplicationThatPausesBetweenItsWrites) {
  talk.opens();
  for (int i = 0; i < 60; ++i) {
    talk.after(5ms).client().sends(32);
    talk.answer(40ms).server().acks();
    talk.answer(random(10us, 12ms)).client().sends(200);
    talk.answer(1ms).server().sends(500);
    talk.answer().client().acks();
  }
  expect_nothing();
}

TEST_P(InnocentTest, AcksThatAreDelayedWhileNothingIsHeld) {
  talk.opens();
  for (int i = 0; i < 100; ++i) {
    talk.after(60ms).client().sends(200);
    talk.answer(2ms).server().sends(500);
    talk.answer(40ms).client().acks();
  }
  expect_nothing();
}

TEST_P(InnocentTest, PacketsThatOvertakeEachOther) {
  talk.opens();
  for (int i = 0; i < 100; ++i) {
    talk.after(5ms).client().sends(200);
    talk.answer(1ms).server().sends(1448);
    talk.server().sends(1448);
    talk.server().sends(1448);
    auto& all = capture.segments();  // the first of the three comes last
    const Duration at = talk.now();
    std::rotate(all.end() - 3, all.end() - 2, all.end());
    all[all.size() - 3].at = at;
    all[all.size() - 2].at = at + 10us;
    all[all.size() - 1].at = at + 200us;
    talk.after(250us);
    talk.answer().client().acks();
  }
  const auto analysis = capture.analyse();
  EXPECT_EQ(analysis.retransmissions, 0u);
  EXPECT_EQ(analysis.reordered, 100u);
  expect_nothing();
}

TEST_P(InnocentTest, PacketsThatTheCaptureSawTwice) {
  talk.opens();
  for (int i = 0; i < 100; ++i) {
    talk.after(5ms).exchange(200, 1ms, 500);
    auto copies = std::vector<tcp::Segment>(capture.segments().end() - 3, capture.segments().end());
    for (tcp::Segment& copy : copies) {
      copy.at += 15us;
      copy.interface = 1;
      capture.add(copy);
    }
  }
  const auto analysis = capture.analyse();
  EXPECT_EQ(analysis.retransmissions, 0u);
  EXPECT_EQ(analysis.duplicates, 300u);
  EXPECT_EQ(analysis.turns_seen, 100u);
  expect_nothing();
}

TEST_P(InnocentTest, AnIdleConnectionThatIsKeptAlive) {
  talk.opens().exchange(100, 1ms, 100);
  for (int i = 0; i < 20; ++i) {
    talk.after(15s).client().probes_window();
    talk.answer().server().acks();
  }
  talk.after(1s).exchange(100, 1ms, 100);
  EXPECT_EQ(capture.analyse().retransmissions, 0u);
  expect_nothing();
}

TEST_P(InnocentTest, ALongWay) {
  Talk far(capture, {GetParam().to_client, GetParam().to_server + 70ms}, {.client_port = 41'000});
  far.opens();
  for (int i = 0; i < 50; ++i) far.after(5ms).exchange(200, 1ms, 500);
  expect_nothing();
}

TEST_P(InnocentTest, ACongestionWindowThatGrows) {
  talk.opens().client().sends(100);
  talk.answer(1ms).server().sends(1448);
  int segments = 10;
  for (int round = 0; round < 12; ++round) {
    for (int i = 1; i < segments; ++i) talk.after(2us).server().sends(1448);
    talk.answer().client().acks();
    talk.answer(20us).server().sends(1448);
    segments = segments * 5 / 4;
  }
  talk.answer().client().acks();
  expect_nothing();
}

TEST_P(InnocentTest, AStreamThatHasNoMoreToSend) {
  talk.opens().client().sends(100);
  talk.answer(1ms).server().sends(1448);
  for (int i = 0; i < 200; ++i) {
    for (int k = 0; k < 4; ++k) talk.after(10us).server().sends(1448);
    talk.answer().client().acks();
    talk.after(random(25ms, 45ms));
  }
  expect_nothing();
}

TEST_P(InnocentTest, SmallMessagesThatComeOneByOne) {
  talk.opens();
  for (int i = 0; i < 1'000; ++i) {
    talk.after(500us).client().sends(64);
    if (i % 2 == 1) talk.answer().server().acks();
  }
  talk.answer(1ms).server().sends(10);
  talk.answer().client().acks();
  expect_nothing();
}

TEST_P(InnocentTest, ManySmallRequests) {
  talk.opens();
  for (int i = 0; i < 2'000; ++i) talk.after(20us).exchange(64, 10us, 64);
  expect_nothing();
}

TEST_P(InnocentTest, OneLostSegmentAmongThousandsOfRequests) {
  talk.opens();
  for (int i = 0; i < 3'000; ++i) {
    talk.after(1ms).client().sends(200);
    if (i == 1'500) talk.after(210ms).client().sends_again(200, 200);
    talk.answer(1ms).server().sends(500);
    talk.answer().client().acks();
  }
  EXPECT_EQ(capture.analyse().retransmissions, 1u);
  expect_nothing();
}

TEST_P(InnocentTest, ARetransmissionThatNobodyWaitedFor) {
  talk.opens();
  for (int i = 0; i < 50; ++i) {
    talk.after(300ms).exchange(200, 1ms, 500);
    talk.after(210ms).server().sends_again(500, 500);
    talk.answer().client().acks();
  }
  EXPECT_EQ(capture.analyse().retransmissions, 50u);
  expect_nothing();
}

// A queue holds up answers and their ACKs; the sender asks for them too early.
TEST_P(InnocentTest, AnAckThatIsOnlyLate) {
  for (const bool late : {true, false}) {
    Capture here;
    Talk slow(here, GetParam());
    slow.opens();
    for (int i = 0; i < 50; ++i) {
      slow.after(5ms).client().sends(200);
      slow.answer(1ms).server().sends(500);
      const std::uint32_t first = *slow.last().ts_value;
      const bool again = i % 10 == 5;
      if (again) slow.after(60ms).server().sends_again(500, 500);
      const std::uint32_t second = *slow.last().ts_value;
      slow.answer().client().acks();
      slow.last().ts_echo = late ? first : second;
      if (!again || !late) continue;
      slow.after(100us).client().acks();  // the copy has come, too
      slow.last().sack_count = 1;
      slow.last().sack[0] = {slow.last().ack - 500, slow.last().ack};
      slow.last().ts_echo = second;
    }
    const auto analysis = here.analyse();
    EXPECT_EQ(analysis.retransmissions, 5u);
    EXPECT_EQ(names(diagnose_network({.packets = &analysis})), late ? "" : "packet-loss");
  }
}

TEST(HolderTest, ASocketWithNodelayHoldsNothing) {
  Capture capture;
  Talk talk(capture, kAtServer);
  talk.opens();
  for (int i = 0; i < 20; ++i) {
    talk.after(5ms).client().sends(200);
    talk.answer(1ms).server().sends(90);
    talk.answer(40ms).client().acks();
    talk.answer(30us).server().sends(1200);
    talk.answer().client().acks();
  }
  const auto analysis = capture.analyse();
  tcp::SocketFacts socket;
  socket.fd = 7;
  socket.state = tcp::TcpState::kEstablished;
  socket.local = address(2, 80);
  socket.remote = address(1, 40'000);
  socket.options.nodelay = true;
  const std::array<tcp::SocketFacts, 1> on{socket};
  EXPECT_EQ(names(diagnose_network({.packets = &analysis, .sockets = on})), "");
  socket.options.nodelay = false;
  const std::array<tcp::SocketFacts, 1> off{socket};
  const auto diagnosis = diagnose_network({.packets = &analysis, .sockets = off});
  ASSERT_EQ(names(diagnosis), "nagle-delayed-ack");
  EXPECT_EQ(diagnosis.findings[0].certainty, Certainty::kProven);
  ASSERT_TRUE(diagnosis.findings[0].predicted_p99);
  EXPECT_LT(*diagnosis.findings[0].predicted_p99, 25ms);
}

}  // namespace
}  // namespace tailward::diag::testing
