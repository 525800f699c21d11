#include "lab/hedging/merge.h"

#include <gtest/gtest.h>

#include <chrono>
#include <utility>

namespace tailward::lab {
namespace {

using namespace std::chrono_literals;

ArmResult run_of(std::uint64_t requests) {
  ArmResult run;
  run.name = "adaptive";
  run.hedging = true;
  run.requests = requests;
  run.latency.record(10ms, requests);
  run.counters.requests = requests;
  run.counters.answered = requests;
  run.counters.denied[0] = 3;
  run.server.requests = requests;
  run.server.answered = requests;
  run.server.hedges = 7;
  run.seconds = 2;
  return run;
}

ArmResult merged(ArmResult first, ArmResult second) {
  merge(first, std::move(second));
  return first;
}

hedge::Plan plan_of(Duration delay, double probability) {
  hedge::Plan plan;
  plan.stages = 1;
  plan.stage[0] = {.delay = delay, .probability = probability};
  return plan;
}

TEST(MergeTest, CountsHistogramsAndSecondsAddUp) {
  const ArmResult both = merged(run_of(1000), run_of(3000));
  EXPECT_EQ(both.requests, 4000u);
  EXPECT_EQ(both.latency.count(), 4000u);
  EXPECT_EQ(both.counters.answered, 4000u);
  EXPECT_EQ(both.counters.denied[0], 6u);
  EXPECT_EQ(both.server.answered, 4000u);
  EXPECT_EQ(both.server.hedges, 14u);
  EXPECT_EQ(both.seconds, 4);
}

TEST(MergeTest, MediansAreMeansWeightedByRequests) {
  ArmResult first = run_of(1000);
  ArmResult second = run_of(3000);
  first.first_median = 10ms;
  second.first_median = 20ms;
  first.baseline_rate = 0.1;
  second.baseline_rate = 0.3;
  const ArmResult both = merged(first, second);
  EXPECT_EQ(both.first_median, Duration{17500us});
  EXPECT_NEAR(*both.baseline_rate, 0.25, 1e-9);
}

TEST(MergeTest, ErrorRatesAndPeaksAreTheWorst) {
  ArmResult first = run_of(1);
  ArmResult second = run_of(1);
  first.error_rate = 0.2;
  second.server_peak_bytes = 5;
  second.heap.peak_bytes = 7;
  const ArmResult both = merged(first, second);
  EXPECT_EQ(both.error_rate, 0.2);
  EXPECT_EQ(both.server_peak_bytes, 5u);
  EXPECT_EQ(both.heap.peak_bytes, 7u);
}

TEST(MergeTest, TheTimelinesFollowEachOther) {
  ArmResult first = run_of(1);
  ArmResult second = run_of(1);
  first.timeline = {{.seconds = 0.25}, {.seconds = 0.5}};
  second.timeline = {{.seconds = 0.25, .requests_per_s = 9}};
  const ArmResult both = merged(merged(first, second), second);
  ASSERT_EQ(both.timeline.size(), 4u);
  EXPECT_EQ(both.timeline[2].seconds, 2.25);
  EXPECT_EQ(both.timeline[2].requests_per_s, 9);
  EXPECT_EQ(both.timeline[3].seconds, 4.25);
}

TEST(MergeTest, HedgingIsOffAsLateAsInTheLatestRunAndOnlyIfItIsOffInAll) {
  ArmResult first = run_of(1);
  ArmResult second = run_of(1);
  first.off_after_seconds = 4;
  second.off_after_seconds = 6;
  EXPECT_EQ(merged(first, second).off_after_seconds, 6);
  second.off_after_seconds.reset();
  EXPECT_FALSE(merged(first, second).off_after_seconds);
  EXPECT_FALSE(merged(second, first).off_after_seconds);
}

TEST(MergeTest, APlanIsTheMeanOfTheRunsPlans) {
  ArmResult first = run_of(1000);
  ArmResult second = run_of(3000);
  first.plan = plan_of(10ms, 1);
  second.plan = plan_of(30ms, 1);
  ArmResult both = merged(first, second);
  EXPECT_EQ(both.plan->stages, 1);
  EXPECT_EQ(both.plan->stage[0].delay, Duration{25ms});
  EXPECT_EQ(both.plan->stage[0].probability, 1);
  // A run that does not hedge halves the probability and leaves the delay alone.
  second.requests = 1000;
  second.plan = hedge::Plan{};
  both = merged(first, second);
  EXPECT_EQ(both.plan->stages, 1);
  EXPECT_EQ(both.plan->stage[0].delay, Duration{10ms});
  EXPECT_EQ(both.plan->stage[0].probability, 0.5);
  both = merged(second, first);
  EXPECT_EQ(both.plan->stage[0].delay, Duration{10ms});
  EXPECT_EQ(both.plan->stage[0].probability, 0.5);
  EXPECT_EQ(merged(run_of(1), first).plan->stage[0].delay, Duration{10ms});
}

hedge::Proof proof_of(std::uint64_t control, std::uint32_t pairs) {
  hedge::Proof proof;
  proof.control_requests = control;
  proof.savings[0] = {.quantile = 0.5,
                      .control = 20ms,
                      .hedged = 10ms,
                      .saved = 10ms,
                      .low = 6ms,
                      .high = 14ms,
                      .bounded = true};
  proof.switchback.known = pairs > 0;
  proof.switchback.pairs = pairs;
  proof.switchback.p50 = 3ms;
  proof.switchback.p50_low = 1ms;
  proof.switchback.p50_high = 5ms;
  proof.dependence = {.ratio = 2, .low = 1.5, .high = 2.5, .pairs = 100};
  return proof;
}

TEST(MergeTest, TwoEqualProofsGiveTheSameEffectsWithNarrowerIntervals) {
  hedge::Proof both = proof_of(500, 8);
  merge(both, proof_of(500, 8));
  EXPECT_EQ(both.control_requests, 1000u);
  const hedge::Saving& saving = both.savings[0];
  EXPECT_EQ(saving.saved, Duration{10ms});
  EXPECT_TRUE(saving.bounded);
  // Half the variance: 4 ms ÷ √2.
  EXPECT_NEAR(to_ms(saving.low), 10 - 2.828, 0.001);
  EXPECT_NEAR(to_ms(saving.high), 10 + 2.828, 0.001);
  EXPECT_EQ(both.switchback.pairs, 16u);
  EXPECT_NEAR(to_ms(both.switchback.p50_low), 3 - 1.414, 0.001);
  EXPECT_NEAR(both.dependence.pairs, 200, 1e-9);
  EXPECT_NEAR(both.dependence.high, 2 + 0.5 / 1.41421, 0.001);
}

TEST(MergeTest, ALargerRunWeighsMoreAndTheOrderDoesNotMatter) {
  hedge::Proof small = proof_of(100, 2);
  hedge::Proof large = proof_of(300, 6);
  large.savings[0].saved = 14ms;
  large.savings[0].high = 18ms;
  large.switchback.p50 = 7ms;
  large.switchback.p50_high = 9ms;
  hedge::Proof one = small;
  merge(one, large);
  EXPECT_EQ(one.savings[0].saved, Duration{13ms});
  EXPECT_EQ(one.switchback.p50, Duration{6ms});
  hedge::Proof other = large;
  merge(other, small);
  EXPECT_EQ(other.savings[0].saved, one.savings[0].saved);
  EXPECT_EQ(other.switchback.p50_low, one.switchback.p50_low);
}

TEST(MergeTest, WhatOneRunDoesNotKnowIsTheOthers) {
  hedge::Proof unknown;
  merge(unknown, proof_of(500, 8));
  EXPECT_EQ(unknown.savings[0].saved, Duration{10ms});
  EXPECT_EQ(unknown.switchback.pairs, 8u);
  EXPECT_EQ(unknown.dependence.ratio, 2);
  hedge::Proof known = proof_of(500, 8);
  merge(known, hedge::Proof{});
  EXPECT_EQ(known.control_requests, 500u);
  EXPECT_EQ(known.switchback.p50, Duration{3ms});
  EXPECT_EQ(known.dependence.pairs, 100);
}

TEST(MergeTest, AnIntervalNeedsAllRunsAndHarmOnlyOne) {
  hedge::Proof both = proof_of(500, 8);
  hedge::Proof few = proof_of(5, 0);
  few.savings[0].bounded = false;
  few.harm = true;
  merge(both, few);
  EXPECT_FALSE(both.savings[0].bounded);
  EXPECT_TRUE(both.harm);
}

TEST(MergeTest, AnArmKeepsItsProofWhenAFurtherRunHasNone) {
  ArmResult first = run_of(1000);
  first.proof = proof_of(500, 8);
  EXPECT_EQ(merged(first, run_of(1000)).proof->control_requests, 500u);
  EXPECT_EQ(merged(run_of(1000), first).proof->control_requests, 500u);
  EXPECT_EQ(merged(first, first).proof->control_requests, 1000u);
}

}  // namespace
}  // namespace tailward::lab
