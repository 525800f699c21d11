#include "diag/connection/loss_detector.h"

#include <gtest/gtest.h>

#include <chrono>

namespace tailward::diag {
namespace {

using namespace std::chrono_literals;

tcp::Segment data(std::uint32_t seq, std::uint32_t payload, std::uint64_t number = 1) {
  tcp::Segment s;
  s.seq = seq;
  s.payload = payload;
  s.number = number;
  return s;
}

tcp::Segment ack(std::uint32_t upto) {
  tcp::Segment s;
  s.ack = upto;
  s.ack_flag = true;
  return s;
}

TEST(LossDetectorTest, ACleanAckMeasuresFromTheNewestDataThatItCovers) {
  LossDetector loss;
  loss.sent(data(0, 100), 0, 10ms);
  loss.sent(data(100, 100), 100, 12ms);
  const auto progress = loss.acked(ack(200));
  EXPECT_TRUE(progress.clean);
  EXPECT_EQ(progress.last_sent, 12ms);
  EXPECT_FALSE(progress.repeated);
}

TEST(LossDetectorTest, TheTimeAndTheReceiverSayHowItWasSentAgain) {
  const auto kind = [](Duration after, int dup_acks, bool sack) {
    LossDetector loss;
    loss.sent(data(0, 100), 0, 10ms);
    for (int i = 0; i < dup_acks; ++i) loss.duplicate_ack(11ms, 2);
    if (sack) loss.sacked(11ms, 2);
    loss.sent_again(data(0, 100, 3), 10ms + after);
    const auto progress = loss.acked(ack(100));
    EXPECT_FALSE(progress.clean);  // Karn's rule
    const SentSegment& sent = progress.repeated.value();
    EXPECT_EQ(sent.copies, 2);
    return sent.count(RetransmitKind::kTimeout) > 0 ? RetransmitKind::kTimeout
           : sent.count(RetransmitKind::kFast) > 0  ? RetransmitKind::kFast
                                                    : RetransmitKind::kProbe;
  };
  EXPECT_EQ(kind(200ms, 0, false), RetransmitKind::kTimeout);
  EXPECT_EQ(kind(200ms, 3, true), RetransmitKind::kTimeout);
  EXPECT_EQ(kind(20ms, 0, false), RetransmitKind::kProbe);
  EXPECT_EQ(kind(20ms, 2, false), RetransmitKind::kProbe);
  EXPECT_EQ(kind(20ms, 3, false), RetransmitKind::kFast);
  EXPECT_EQ(kind(20ms, 0, true), RetransmitKind::kFast);
}

TEST(LossDetectorTest, AnAckForTheFirstCopyWasLateAndNothingWasLost) {
  LossDetector loss;
  tcp::Segment first = data(0, 100);
  first.ts_value = 50;
  loss.sent(first, 0, 10ms);
  tcp::Segment again = first;
  again.ts_value = 60;
  loss.sent_again(again, 250ms);
  tcp::Segment late = ack(100);
  late.ts_echo = 50;
  EXPECT_FALSE(loss.acked(late).repeated);
}

TEST(LossDetectorTest, WhatFillsAGapWasOvertakenIfItsStampIsOlder) {
  for (const bool older : {true, false}) {
    LossDetector loss;
    tcp::Segment beyond = data(100, 100, 5);
    beyond.ts_value = 1000;
    loss.sent(beyond, 0, 10ms);  // 0…100 are missing
    tcp::Segment late = data(0, 100, 6);
    late.ts_value = older ? 999 : 1030;
    const auto filled = loss.fill(late, 40ms, 1ms);
    ASSERT_TRUE(filled);
    EXPECT_EQ(filled->reordered, older);
    if (!older) {
      EXPECT_EQ(filled->lost.at, 10ms);
    }
    EXPECT_FALSE(loss.fill(late, 41ms, 1ms));  // the gap is closed
    EXPECT_FALSE(loss.acked(ack(200)).clean);  // its time is no round trip
  }
}

TEST(LossDetectorTest, WithoutStampsAGapIsAMatterOfTime) {
  const auto reordered = [](Duration after, Duration rtt) {
    LossDetector loss;
    loss.sent(data(100, 100), 0, 10ms);
    return loss.fill(data(0, 100), 10ms + after, rtt)->reordered;
  };
  EXPECT_TRUE(reordered(3ms, 0ms));
  EXPECT_FALSE(reordered(4ms, 0ms));
  EXPECT_TRUE(reordered(4ms, 10ms));
  EXPECT_FALSE(reordered(6ms, 10ms));
}

TEST(LossDetectorTest, ACopyHasTheSameIdentificationAndComesAtOnce) {
  LossDetector loss;
  tcp::Segment first = data(0, 100);
  first.ip_id = 9;
  loss.sent(first, 0, 10ms);
  EXPECT_TRUE(loss.is_copy(first, 10ms + 500us));
  EXPECT_FALSE(loss.is_copy(first, 12ms));
  first.ip_id = 10;
  EXPECT_FALSE(loss.is_copy(first, 10ms + 500us));
}

TEST(LossDetectorTest, MemoryIsBoundedWhateverIsOutstanding) {
  SentRing ring;
  for (std::uint32_t i = 0; i < 10'000; ++i) ring.push({.begin = i, .end = i + 1});
  EXPECT_EQ(ring.size(), SentRing::kSentMax);
  EXPECT_EQ(ring.find(9'999)->begin, SentRing::kSentMax - 1);
  while (!ring.empty()) ring.pop();
  EXPECT_EQ(ring.find(9'999), nullptr);
}

TEST(LossDetectorTest, WhatIsNeverAcknowledgedStaysUnfinished) {
  LossDetector loss;
  loss.sent(data(0, 100), 0, 10ms);
  EXPECT_EQ(loss.unfinished(), nullptr);
  loss.sent_again(data(0, 100), 210ms);
  loss.sent_again(data(0, 100), 610ms);
  ASSERT_NE(loss.unfinished(), nullptr);
  EXPECT_EQ(loss.unfinished()->copies, 3);
  EXPECT_EQ(loss.unfinished()->again, 610ms);
}

}  // namespace
}  // namespace tailward::diag
