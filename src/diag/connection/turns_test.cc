#include "diag/connection/turns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "diag/testing.h"

namespace tailward::diag::testing {
namespace {

Duration sum(const Turn& t) {
  return t.handshake + t.request + t.wire + t.think + t.response + t.final_ack_wait;
}

TEST(TurnsTest, ARequestIsDividedIntoPartsThatSumToItsTime) {
  for (const Place& place : kPlaces) {
    Capture capture;
    Talk talk(capture, place);
    talk.opens().after(1ms).client().sends(500);
    talk.after(2ms).client().sends(300);
    talk.answer(30ms).server().sends(1000);
    talk.after(5ms).server().sends(700);
    talk.answer().client().acks();
    const auto analysis = capture.analyse();
    ASSERT_EQ(analysis.turns.size(), 1u);
    const Turn& turn = analysis.turns[0];
    EXPECT_EQ(turn.handshake, place.to_client + place.to_server);
    EXPECT_EQ(turn.request, 2ms);
    EXPECT_EQ(turn.wire, place.to_server);
    EXPECT_EQ(turn.think, 30ms);
    EXPECT_EQ(turn.response, 5ms);
    EXPECT_EQ(turn.final_ack_wait, place.to_client);
    EXPECT_EQ(sum(turn), turn.total);
  }
}

TEST(TurnsTest, TheTimeAClientWaitsBeforeItsFirstRequestIsNobodysLatency) {
  Capture capture;
  Talk talk(capture, kAtServer);
  talk.opens().after(10s).exchange(100, 1ms, 100);
  const auto analysis = capture.analyse();
  ASSERT_EQ(analysis.turns.size(), 1u);
  EXPECT_LT(analysis.turns[0].total, 50ms);
}

TEST(TurnsTest, EachRequestAfterAnAnswerIsATurnOfItsOwn) {
  Capture capture;
  Talk talk(capture, kAtServer);
  talk.opens();
  for (int i = 0; i < 7; ++i) talk.after(3ms).exchange(100, 1ms, 100);
  EXPECT_EQ(capture.analyse().turns_seen, 7u);
}

TEST(TurnsTest, PipelinedRequestsAreOneTurn) {
  Capture capture;
  Talk talk(capture, kAtServer);
  talk.opens().client().sends(100);
  talk.after(1ms).client().sends(100);
  talk.answer(5ms).server().sends(1000);
  talk.client().sends(100).last().ack -= 1000;  // sent before the answer was there
  talk.after(5ms).server().sends(1000);
  talk.after(5ms).server().sends(1000);
  talk.answer().client().acks();
  const auto analysis = capture.analyse();
  ASSERT_EQ(analysis.turns_seen, 1u);
  EXPECT_EQ(analysis.turns[0].response, 10ms);
}

TEST(TurnsTest, AServersGreetingAnswersTheHandshake) {
  Capture capture;
  Talk talk(capture, kAtClient);
  talk.opens();
  talk.after(20ms).server().sends(80);
  talk.answer().client().acks();
  talk.after(3s).exchange(50, 1ms, 50);
  const auto analysis = capture.analyse();
  ASSERT_EQ(analysis.turns_seen, 2u);
  for (const Turn& turn : analysis.turns) {
    EXPECT_LT(turn.total, 50ms);
    EXPECT_EQ(sum(turn), turn.total);
  }
}

TEST(TurnsTest, WhatAServerSaysUnaskedIsNotARequest) {
  Capture capture;
  Talk talk(capture, kAtClient);
  talk.opens().exchange(50, 1ms, 50);
  for (int i = 0; i < 20; ++i) {
    talk.after(10s).server().sends(100);
    talk.answer().client().acks();
  }
  const auto analysis = capture.analyse();
  EXPECT_EQ(analysis.turns_seen, 1u);
  EXPECT_LT(analysis.latency.max(), 1s);
}

TEST(TurnsTest, AHalfClosedClientStillGetsItsAnswer) {
  Capture capture;
  Talk talk(capture, kAtServer);
  talk.opens().client().sends(100);
  talk.client().ends();
  talk.answer(25ms).server().sends(100);
  talk.server().ends();
  talk.answer().client().acks();
  const auto analysis = capture.analyse();
  ASSERT_EQ(analysis.turns_seen, 1u);
  EXPECT_GE(analysis.turns[0].think, 24ms);
}

TEST(TurnsTest, AStreamThatNobodyAnswersIsOneTurnUntilItPauses) {
  Capture capture;
  Talk talk(capture, kAtServer);
  talk.opens();
  for (int burst = 0; burst < 2; ++burst) {
    for (int i = 0; i < 100; ++i) {
      talk.after(10ms).client().sends(100);
      talk.answer().server().acks();
    }
    talk.after(3s);
  }
  const auto analysis = capture.analyse();
  EXPECT_EQ(analysis.turns_seen, 2u);
  EXPECT_LT(analysis.latency.max(), 1500ms);
}

TEST(TurnsTest, ARequestThatItsClientGivesUpLastedUntilThen) {
  Capture capture;
  Talk talk(capture, kAtServer);
  talk.opens().client().sends(100);
  talk.answer(40ms).server().acks();
  talk.after(30s).client().resets();
  const auto analysis = capture.analyse();
  ASSERT_EQ(analysis.turns_seen, 1u);
  EXPECT_GE(analysis.turns[0].total, 30s);
}

TEST(TurnsTest, AnAcknowledgementThatTheClientDelaysIsNotPartOfTheTail) {
  Capture capture;
  Talk talk(capture, kAtServer);
  talk.opens().client().sends(100);
  talk.answer(2ms).server().sends(100);
  talk.answer(40ms).client().acks();
  const auto analysis = capture.analyse();
  ASSERT_EQ(analysis.turns_seen, 1u);
  EXPECT_EQ(analysis.turns[0].final_ack_wait, 10ms);
}

TEST(TurnsTest, TwoStallsDoNotShareTheSameTime) {
  TurnTracker turns;
  turns.client_data(1s, true, true, {});
  EXPECT_EQ(turns.stall(StallKind::kCorked, 1s, 1200ms, 200ms), 200ms);
  EXPECT_EQ(turns.stall(StallKind::kRetransmission, 1100ms, 1300ms, 200ms), 100ms);
  EXPECT_EQ(turns.stall(StallKind::kHeldByNagle, 1100ms, 1250ms, 150ms), 0ms);
  const auto turn = turns.close({}, {});
  ASSERT_TRUE(turn);
  EXPECT_EQ(turn->total, 300ms);
}

}  // namespace
}  // namespace tailward::diag::testing
