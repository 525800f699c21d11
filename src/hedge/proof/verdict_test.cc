#include "hedge/proof/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tailward::hedge {
namespace {

using namespace std::chrono_literals;
using findings::Layer;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> evidence_of(const Verdict& verdict) {
  std::vector<std::string> texts;
  for (const findings::Evidence& evidence : verdict.evidence) texts.push_back(evidence.text);
  return texts;
}

// Of so many eligible requests, that share was hedged, each once.
VerdictInput hedged(std::uint64_t requests, double share) {
  const auto count = static_cast<std::uint64_t>(static_cast<double>(requests) * share + 0.5);
  VerdictInput input;
  input.eligible = requests;
  input.requests = requests;
  input.hedged = count;
  input.due = count;
  input.attempts = requests + count;
  return input;
}

TEST(VerdictTest, TheTriggerRateDecides) {
  EXPECT_EQ(judge(hedged(10'000, 0.02)).layer, Layer::kHealthy);
  EXPECT_EQ(judge(hedged(10'000, 0.13)).layer, Layer::kHealthy);
  EXPECT_EQ(judge(hedged(10'000, 0.30)).layer, Layer::kWatch);
  EXPECT_EQ(judge(hedged(10'000, 0.60)).layer, Layer::kCause);
  EXPECT_EQ(judge(hedged(10'000, 0)).layer, Layer::kHealthy);
  EXPECT_EQ(judge(hedged(10'000, 1)).layer, Layer::kCause);
}

TEST(VerdictTest, TooFewRequestsAreNotJudged) {
  const Verdict verdict = judge(hedged(199, 1));
  EXPECT_EQ(verdict.layer, Layer::kUnknown);
  EXPECT_THAT(verdict.sentence, HasSubstr("199"));
  EXPECT_EQ(judge(VerdictInput{}).layer, Layer::kUnknown);
  EXPECT_EQ(judge(hedged(200, 1)).layer, Layer::kCause);
}

TEST(VerdictTest, WhatTheSampleLeavesOpenIsWatched) {
  EXPECT_EQ(judge(hedged(1000, 0.14)).layer, Layer::kWatch) << "its interval reaches past 15 %";
  EXPECT_EQ(judge(hedged(100'000, 0.14)).layer, Layer::kHealthy);
  EXPECT_EQ(judge(hedged(1000, 0.52)).layer, Layer::kWatch);
  EXPECT_EQ(judge(hedged(100'000, 0.52)).layer, Layer::kCause);
}

TEST(VerdictTest, StatesRateAndInterval) {
  const Verdict verdict = judge(hedged(10'000, 0.1));
  EXPECT_DOUBLE_EQ(verdict.trigger_rate, 0.1);
  EXPECT_LT(verdict.trigger_low, 0.1);
  EXPECT_GT(verdict.trigger_low, 0.09);
  EXPECT_GT(verdict.trigger_high, 0.1);
  EXPECT_LT(verdict.trigger_high, 0.11);
  EXPECT_THAT(verdict.sentence, HasSubstr("10.0 %"));
  EXPECT_THAT(evidence_of(verdict), Contains(HasSubstr("trigger rate")));
}

TEST(VerdictTest, HedgesThatTheBudgetDeniedCountAsDue) {
  VerdictInput input = hedged(10'000, 0.05);
  input.due = 8000;
  const Verdict verdict = judge(input);
  EXPECT_EQ(verdict.layer, Layer::kCause);
  EXPECT_DOUBLE_EQ(verdict.trigger_rate, 0.05);
  EXPECT_THAT(evidence_of(verdict), Contains(HasSubstr("denied")));
}

TEST(VerdictTest, ADelayThatFollowsTheServiceIsSeenThroughTheBaseline) {
  VerdictInput input = hedged(10'000, 0.05);
  input.baseline_rate = 0.8;
  EXPECT_EQ(judge(input).layer, Layer::kCause);
  EXPECT_THAT(judge(input).sentence, HasSubstr("baseline"));
  input.baseline_rate = 0.05;
  EXPECT_EQ(judge(input).layer, Layer::kHealthy);
}

TEST(VerdictTest, WorseServersTurnHealthyIntoWatchAndWatchIntoCause) {
  for (const bool by_lock_wait : {true, false}) {
    const auto with_evidence = [&](VerdictInput input) {
      if (by_lock_wait) {
        input.lock_wait_ratio = 12.5;
      } else {
        input.baseline_median = 50ms;
        input.median = 150ms;
      }
      return input;
    };
    const Verdict healthy = judge(with_evidence(hedged(10'000, 0.05)));
    EXPECT_EQ(healthy.layer, Layer::kWatch);
    EXPECT_THAT(evidence_of(healthy), Contains(HasSubstr(by_lock_wait ? "lock wait" : "median")));
    EXPECT_EQ(judge(with_evidence(hedged(10'000, 0.30))).layer, Layer::kCause);
    EXPECT_EQ(judge(with_evidence(hedged(1000, 0.14))).layer, Layer::kWatch)
        << "not surely more than a tail";
  }
}

TEST(VerdictTest, EvidenceBelowItsLimitIsNone) {
  VerdictInput input = hedged(10'000, 0.05);
  input.lock_wait_ratio = 1.9;
  input.baseline_median = 50ms;
  input.median = 74ms;
  EXPECT_EQ(judge(input).layer, Layer::kHealthy);
  EXPECT_THAT(evidence_of(judge(input)), Not(Contains(HasSubstr("lock wait"))));
  input.baseline_median = 0ms;
  EXPECT_EQ(judge(input).layer, Layer::kHealthy) << "nothing to compare with";
}

TEST(VerdictTest, StatesTheExtraLoadAndTheErrors) {
  VerdictInput input = hedged(10'000, 0.996);
  input.error_rate = 0.2;
  const Verdict verdict = judge(input);
  EXPECT_THAT(verdict.sentence, HasSubstr("99.6 %"));
  EXPECT_THAT(evidence_of(verdict), Contains(HasSubstr("extra load 99.6 %")));
  EXPECT_THAT(evidence_of(verdict), Contains(HasSubstr("error rate 20.0 %")));
}

TEST(VerdictTest, LimitsAreTheUsers) {
  VerdictLimits strict;
  strict.healthy_below = 0.01;
  strict.cause_above = 0.05;
  EXPECT_EQ(judge(hedged(10'000, 0.1), strict).layer, Layer::kCause);
  strict.requests_min = 20'000;
  EXPECT_EQ(judge(hedged(10'000, 0.1), strict).layer, Layer::kUnknown);
}

TEST(VerdictTest, APolicyThatIsOffIsNotJudged) {
  VerdictInput input;
  input.hedging = false;
  input.requests = input.attempts = 10'000;
  const Verdict verdict = judge(input);
  EXPECT_EQ(verdict.layer, Layer::kUnknown);
  EXPECT_NE(verdict.sentence.find("off"), std::string::npos);
}

// A healthy trigger rate, and what the adaptive policy knows beside it.
VerdictInput proven(double p50_low_ms, double p50_ms) {
  VerdictInput input = hedged(10'000, 0.05);
  input.baseline_rate = 0.07;
  Proof proof;
  for (std::size_t i = 0; i < proof.savings.size(); ++i) {
    proof.savings[i] = {
        .quantile = kProofQuantiles[i], .saved = 40ms, .low = 30ms, .high = 50ms, .bounded = i < 3};
  }
  proof.control_requests = 1234;
  proof.switchback = {.pairs = 12,
                      .p50 = from_ms(p50_ms),
                      .p50_low = from_ms(p50_low_ms),
                      .p50_high = from_ms(2 * p50_ms - p50_low_ms),
                      .p50_without = 100ms,
                      .extra_load = 0.05,
                      .known = true};
  proof.dependence = {.ratio = 6.5, .low = 5.5, .high = 7.5, .pairs = 400, .slow = 80ms};
  proof.harm = harms(proof.switchback);
  input.proof = proof;
  return input;
}

TEST(VerdictTest, ShowsItsProof) {
  const Verdict verdict = judge(proven(-0.5, 0.5));
  EXPECT_EQ(verdict.layer, Layer::kHealthy);
  EXPECT_THAT(evidence_of(verdict),
              Contains("control group of 1,234: hedging saves +40.0 ms at P99 (+30.0 ms to "
                       "+50.0 ms)"));
  EXPECT_THAT(evidence_of(verdict), Not(Contains(HasSubstr("P99.9"))))
      << "too few requests for an interval";
  EXPECT_THAT(evidence_of(verdict), Not(Contains(HasSubstr("P50 (")))) << "tails only";
  EXPECT_THAT(evidence_of(verdict),
              Contains("switchback, 12 pairs of slices: first attempts' P50 +500 µs (−500 µs to "
                       "+1.50 ms) of 100 ms with hedging on, for 5.0 % extra load"));
  EXPECT_THAT(evidence_of(verdict),
              Contains("tail dependence, 400 pairs: a second attempt is slow 6.5 "
                       "times as often as any (5.5 to 7.5)"));
}

TEST(VerdictTest, SaysNothingOfWhatIsNotKnown) {
  VerdictInput input = hedged(10'000, 0.05);
  input.proof = Proof{};
  for (const std::string& text : evidence_of(judge(input))) {
    EXPECT_THAT(text, Not(HasSubstr("switchback")));
    EXPECT_THAT(text, Not(HasSubstr("dependence")));
    EXPECT_THAT(text, Not(HasSubstr("control group")));
  }
}

TEST(VerdictTest, HarmThatIsProvenIsACauseWhateverTheTriggerRate) {
  const Verdict verdict = judge(proven(4, 8));
  EXPECT_EQ(verdict.layer, Layer::kCause);
  EXPECT_THAT(verdict.sentence, HasSubstr("+8.00 ms (+4.00 ms to +12.0 ms) of 100 ms"));
  EXPECT_THAT(verdict.sentence, HasSubstr("7.0 % trigger at the baseline"));
  EXPECT_THAT(verdict.sentence, HasSubstr("slow 6.5 times as often as any"));
  EXPECT_THAT(verdict.sentence, HasSubstr("Hedging does harm: find the cause"));
  EXPECT_EQ(judge(proven(0.5, 8)).layer, Layer::kHealthy) << "not beyond doubt";
}

TEST(VerdictTest, SaysThatItHasSwitchedItselfOffEvenWhenNobodyIsEligibleAnyMore) {
  VerdictInput input = proven(4, 8);
  input.off_by_verdict = true;
  input.eligible = input.hedged = input.due = 0;
  const Verdict verdict = judge(input);
  EXPECT_EQ(verdict.layer, Layer::kCause);
  EXPECT_THAT(verdict.sentence, HasSubstr("Hedging has switched itself off: find the cause"));
}

TEST(VerdictTest, NamesAnOverloadAndTheHostsOnProbation) {
  VerdictInput input = hedged(10'000, 0.05);
  input.overloaded = true;
  input.on_probation = {"db-3", "db-7"};
  const Verdict verdict = judge(input);
  EXPECT_THAT(evidence_of(verdict), Contains(HasSubstr("overload: everything is slower")));
  EXPECT_THAT(evidence_of(verdict), Contains("on probation, slower than the pool: db-3"));
  EXPECT_THAT(evidence_of(verdict), Contains("on probation, slower than the pool: db-7"));
}

TEST(VerdictTest, SaysWhenTheBreakerHasStoppedHedging) {
  VerdictInput input = hedged(10'000, 0.05);
  input.error_rate = 0.3;
  input.breaker_open = true;
  EXPECT_THAT(evidence_of(judge(input)), Contains(HasSubstr("the breaker has stopped hedging")));
}

}  // namespace
}  // namespace tailward::hedge
