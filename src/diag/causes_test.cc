// Every cause as it looks from every place where a capture can be made.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "diag/testing.h"

namespace tailward::diag::testing {
namespace {

std::string place_name(const ::testing::TestParamInfo<Place>& info) {
  const char* kNames[] = {"AtServer", "AtClient", "Between", "OneHost"};
  return kNames[info.index];
}

class CausesTest : public ::testing::TestWithParam<Place> {
 protected:
  Capture capture;
  Talk talk{capture, GetParam()};

  void expect_first(std::string_view cause, Certainty certainty) {
    const auto analysis = capture.analyse();
    const auto diagnosis = diagnose_network({.packets = &analysis});
    ASSERT_FALSE(diagnosis.findings.empty()) << diagnosis.sentence;
    const Finding& first = diagnosis.findings.front();
    EXPECT_EQ(to_string(first.cause), cause) << names(diagnosis);
    EXPECT_EQ(to_string(first.certainty), to_string(certainty));
    EXPECT_FALSE(first.remedy.empty());
    EXPECT_FALSE(first.verify.empty());
    EXPECT_FALSE(first.evidence.empty());
    EXPECT_GT(first.cost, Duration{0});
    EXPECT_FALSE(analysis.proofs.empty());
    EXPECT_THAT(diagnosis.sentence, ::testing::HasSubstr(std::string(cause)));
  }
};

INSTANTIATE_TEST_SUITE_P(Places, CausesTest, ::testing::ValuesIn(kPlaces), place_name);

TEST_P(CausesTest, AClientThatWritesTwiceAndReadsIsHeldByNagle) {
  talk.opens();
  for (int i = 0; i < 20; ++i) {
    talk.after(5ms).client().sends(32);
    talk.answer(40ms).server().acks();
    talk.answer(30us).client().sends(200);
    talk.answer(1ms).server().sends(500);
    talk.answer().client().acks();
  }
  expect_first("nagle-delayed-ack", Certainty::kConsistent);
}

TEST_P(CausesTest, AServerThatWritesHeadAndBodyIsHeldByNagle) {
  talk.opens();
  for (int i = 0; i < 20; ++i) {
    talk.after(5ms).client().sends(200);
    talk.answer(1ms).server().sends(90);
    talk.answer(40ms).client().acks();
    talk.answer(30us).server().sends(1200);
    talk.answer().client().acks();
  }
  const auto analysis = capture.analyse();
  ASSERT_FALSE(analysis.patterns.empty());
  EXPECT_FALSE(analysis.patterns[0].sender_is_client);
  EXPECT_EQ(analysis.patterns[0].first_bytes, 90u);
  expect_first("nagle-delayed-ack", Certainty::kConsistent);
}

TEST_P(CausesTest, OneHeldSegmentIsOnlyAGuess) {
  talk.opens().client().sends(32);
  talk.answer(40ms).server().acks();
  talk.answer(30us).client().sends(200);
  talk.answer(1ms).server().sends(500);
  talk.answer().client().acks();
  expect_first("nagle-delayed-ack", Certainty::kGuessed);
}

TEST_P(CausesTest, AStreamOfManySmallSegmentsIsSmallWrites) {
  talk.opens();
  for (int i = 0; i < 2'000; ++i) talk.after(12us).client().sends(64);
  talk.answer(1ms).server().sends(10);
  talk.answer().client().acks();
  expect_first("small-writes", Certainty::kConsistent);
}

TEST_P(CausesTest, TheEndOfAnAnswerThatStaysInACorkedSocketLeavesAfter200Milliseconds) {
  talk.opens();
  for (int i = 0; i < 10; ++i) {
    talk.after(5ms).client().sends(200);
    talk.answer(1ms).server().sends(1448);
    talk.server().sends(1448);
    talk.answer().client().acks();
    talk.answer(204ms + std::chrono::microseconds(i * 377 % 4000)).server().sends(300);
    talk.answer().client().acks();
  }
  expect_first("corked", Certainty::kConsistent);
}

TEST_P(CausesTest, AReaderThatStopsReadingShutsTheWindow) {
  talk.opens().client().sends(100);
  for (int i = 0; i < 40; ++i) talk.after(100us).server().sends(1448);
  talk.answer().client().offers(0);
  for (const Duration wait : {200ms, 400ms, 800ms}) {
    talk.after(wait).server().probes_window();
    talk.answer().client().acks();
  }
  talk.after(100ms).client().offers(500'000);
  for (int i = 0; i < 40; ++i) talk.answer(i == 0 ? 50us : 0us).server().sends(1448);
  talk.answer().client().acks();
  expect_first("slow-reader", Certainty::kConsistent);
}

TEST_P(CausesTest, ALostTailIsSentAgainAfterATimeout) {
  talk.opens();
  for (int i = 0; i < 50; ++i) {
    talk.after(5ms).client().sends(200);
    if (i % 10 == 5) {
      for (const Duration wait : {210ms, 400ms}) talk.after(wait).client().sends_again(200, 200);
    }
    talk.answer(1ms).server().sends(500);
    talk.answer().client().acks();
  }
  expect_first("packet-loss", Certainty::kProven);
}

TEST_P(CausesTest, ALostSegmentIsSentAgainAfterDuplicateAcks) {
  for (int round = 0; round < 5; ++round) {
    if (round == 0) talk.opens();
    talk.after(5ms).client().sends(200);
    talk.answer(1ms).server().sends(1448);
    for (int i = 0; i < 5; ++i) talk.after(20us).server().sends(1448);
    talk.after(GetParam().to_client);
    for (int i = 0; i < 4; ++i) talk.after(20us).client().sacks(6 * 1448, 5 * 1448);
    talk.answer(30ms).server().sends_again(6 * 1448, 1448);
    talk.answer().client().acks();
  }
  const auto analysis = capture.analyse();
  EXPECT_EQ(analysis.retransmissions, 5u);
  ASSERT_FALSE(analysis.patterns.empty());
  EXPECT_EQ(analysis.patterns[0].fast, 5u);
  expect_first("packet-loss", Certainty::kProven);
}

TEST_P(CausesTest, LossBeforeTheCaptureShowsAsAHoleThatIsFilledLate) {
  talk.opens();
  for (int i = 0; i < 5; ++i) {
    talk.after(5ms).client().sends(200);
    talk.answer(1ms).server().sends(1448);
    talk.server().loses(1448);
    talk.after(20us).server().sends(1448);
    talk.client().sacks(2 * 1448, 1448);
    talk.after(215ms).server().sends_again(2 * 1448, 1448);
    talk.answer().client().acks();
  }
  const auto analysis = capture.analyse();
  EXPECT_EQ(analysis.retransmissions, 5u);
  EXPECT_EQ(analysis.reordered, 0u);
  expect_first("packet-loss", Certainty::kProven);
}

TEST_P(CausesTest, APathThatTakesASecondIsTheWire) {
  Talk far(capture, {GetParam().to_client, 900ms}, {.client_port = 41'000, .server_port = 81});
  far.opens().exchange(600, 15ms, 1400);
  expect_first("wire-latency", Certainty::kConsistent);
}

TEST_P(CausesTest, ARefusedConnection) {
  talk.syn();
  talk.answer().server().resets();
  const auto diagnosis = capture.diagnose();
  EXPECT_EQ(names(diagnosis), "connection-refused");
}

// `segments` full ones in each round, the first of which leaves when the ACKs of the last round are
// at the server.
void send_rounds(Talk& talk, int rounds, int segments) {
  talk.opens().client().sends(100);
  talk.answer(1ms).server().sends(1448);
  for (int round = 0; round < rounds; ++round) {
    for (int i = 1; i < segments; ++i) talk.after(10us).server().sends(1448);
    talk.answer().client().acks();
    talk.answer(20us).server().sends(1448);
  }
  talk.answer().client().acks();
}

TEST_P(CausesTest, ASmallWindowIsFilledAgainAndAgain) {
  Talk bulk(capture, GetParam(), {.client_port = 41'000, .client_window = 8'688});
  send_rounds(bulk, 60, 6);
  expect_first("small-receive-window", Certainty::kConsistent);
}

TEST_P(CausesTest, ASmallSendBufferKeepsTheSameNumberOfBytesInFlight) {
  send_rounds(talk, 40, 10);
  if (GetParam().to_client + GetParam().to_server < 1ms) {
    EXPECT_EQ(names(capture.diagnose()), "");  // within a host only the socket can tell
    return;
  }
  expect_first("small-send-buffer", Certainty::kConsistent);
}

TEST_P(CausesTest, OnlyFirstRequestsWaitWhereConnectionsAreAcceptedSlowly) {
  for (std::uint16_t i = 0; i < 8; ++i) {
    Talk one(capture, GetParam(), {.client_port = static_cast<std::uint16_t>(42'000 + i)});
    one.after(i * 1s).opens().exchange(100, 80ms, 100);
    for (int k = 0; k < 4; ++k) one.after(1ms).exchange(100, 1ms, 100);
  }
  expect_first("slow-accept", Certainty::kConsistent);
}

// --- SYNs: who is to blame depends on where one looks -----------------------------------------

void repeat_syns(Capture& capture, const Place& place) {
  for (std::uint16_t i = 0; i < 20; ++i) {
    Talk one(capture, place, {.client_port = static_cast<std::uint16_t>(42'000 + i)});
    one.after(i * 100ms).syn();
    if (i % 4 == 3) one.after(1s).syn();
    one.after(place.to_server).syn_ack();
    one.answer().client().acks();
    one.after(100us).exchange(100, 1ms, 100);
  }
}

TEST(SynTest, UnansweredFromFarAwayMayBeLostOrDropped) {
  Capture capture;
  repeat_syns(capture, kAtClient);
  const auto diagnosis = capture.diagnose();
  ASSERT_EQ(names(diagnosis), "syn-loss");
  EXPECT_EQ(diagnosis.findings[0].certainty, Certainty::kConsistent);
  EXPECT_THAT(diagnosis.findings[0].missing[0], ::testing::HasSubstr("ListenOverflows"));
}

TEST(SynTest, UnansweredByTheHostThatHasItIsAnOverflow) {
  Capture capture;
  repeat_syns(capture, kAtServer);
  const auto diagnosis = capture.diagnose();
  ASSERT_EQ(names(diagnosis), "listen-overflow");
  EXPECT_EQ(diagnosis.findings[0].certainty, Certainty::kConsistent);
}

TEST(SynTest, TheHostsCounterProvesAnOverflow) {
  Capture capture;
  repeat_syns(capture, kAtServer);
  const auto analysis = capture.analyse();
  NetworkEvidence evidence{.packets = &analysis,
                           .counters = tcp::HostCounters{.listen_overflows = 5, .listen_drops = 5}};
  // Of some listener on this host; that it is this one is not said.
  EXPECT_EQ(diagnose_network(evidence).findings.at(0).certainty, Certainty::kConsistent);
  const std::array<NetworkEvidence::ListenerWatch, 1> listeners{
      {{.local = address(2, 80), .backlog = 4, .looks = 100}}};
  evidence.listeners = listeners;
  const auto diagnosis = diagnose_network(evidence);
  ASSERT_EQ(names(diagnosis), "listen-overflow");
  EXPECT_EQ(diagnosis.findings[0].certainty, Certainty::kProven);
}

TEST(SynTest, ASynAckThatComesAgainBeforeAnyAckIsLoss) {
  Capture capture;
  for (std::uint16_t i = 0; i < 5; ++i) {
    Talk one(capture, kAtClient, {.client_port = static_cast<std::uint16_t>(42'000 + i)});
    one.syn().after(10ms).syn_ack().after(1s).syn_ack();
    one.answer().client().acks().after(1ms).exchange(100, 1ms, 100);
  }
  EXPECT_EQ(names(capture.diagnose()), "syn-loss");
}

TEST(SynTest, ASynAckThatComesAgainAfterTheAckMeansThatThereWasNoRoom) {
  Capture capture;
  for (std::uint16_t i = 0; i < 5; ++i) {
    Talk one(capture, kAtServer, {.client_port = static_cast<std::uint16_t>(42'000 + i)});
    one.opens().after(1ms).client().sends(100);
    one.after(999ms).syn_ack();
    one.answer().client().acks();
    one.after(1ms).client().sends_again(100, 100);
    one.answer(1ms).server().sends(100);
    one.answer().client().acks();
  }
  EXPECT_EQ(names(capture.diagnose()), "listen-overflow");
}

TEST(SynTest, AConnectionThatNeverCameToBeIsARequestToo) {
  Capture capture;
  Talk talk(capture, kAtClient);
  talk.syn().after(1s).syn().after(2s).syn();
  const auto analysis = capture.analyse();
  ASSERT_EQ(analysis.turns_seen, 1u);
  EXPECT_EQ(analysis.turns[0].total, 3s);
}

}  // namespace
}  // namespace tailward::diag::testing
