#include "hedge/proof/control_group.h"

#include <gtest/gtest.h>

#include <cmath>
#include <iostream>

#include "base/rng.h"

namespace tailward::hedge {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kStart{1000s};

stats::Histogram even(int n, Duration longest) {
  stats::Histogram samples;
  for (int i = 1; i <= n; ++i) samples.record(longest * i / n);
  return samples;
}

TEST(ControlGroupTest, SaysWhatIsSavedAtAQuantile) {
  const Saving saving = saving_between(even(1000, 1000ms), even(1000, 500ms), 0.5);
  EXPECT_EQ(saving.quantile, 0.5);
  EXPECT_NEAR(to_ms(saving.control), 500, 5);
  EXPECT_NEAR(to_ms(saving.hedged), 250, 2.5);
  EXPECT_EQ(saving.saved, saving.control - saving.hedged);
  // Ranks 469 and 532: −31/+32 and −15.5/+16 ms, joined as √(31² + 16²) and √(32² + 15.5²); the
  // buckets' widths are added to each.
  EXPECT_TRUE(saving.bounded);
  EXPECT_NEAR(to_ms(saving.saved - saving.low), 35, 9);
  EXPECT_NEAR(to_ms(saving.high - saving.saved), 35.5, 9);
}

TEST(ControlGroupTest, TheIntervalJoinsTheTwoQuantilesOwnOnes) {
  const stats::Histogram control = even(700, 900ms);
  const stats::Histogram hedged = even(3000, 200ms);
  for (const double q : {0.5, 0.9, 0.95}) {
    for (const double confidence : {0.8, 0.95}) {
      const Saving saving = saving_between(control, hedged, q, confidence);
      const stats::DurationInterval a = control.quantile_interval(q, confidence);
      const stats::DurationInterval b = hedged.quantile_interval(q, confidence);
      const double down =
          std::hypot(to_ms(control.quantile(q) - a.low), to_ms(b.high - hedged.quantile(q)));
      const double up =
          std::hypot(to_ms(a.high - control.quantile(q)), to_ms(hedged.quantile(q) - b.low));
      EXPECT_NEAR(to_ms(saving.saved - saving.low), down, 1e-5);
      EXPECT_NEAR(to_ms(saving.high - saving.saved), up, 1e-5);
      EXPECT_GT(std::abs(up - down), 1e-3) << "otherwise the ends could have been swapped";
    }
  }
}

TEST(ControlGroupTest, WhatHedgingCostsIsNegative) {
  const Saving saving = saving_between(even(1000, 100ms), even(1000, 200ms), 0.5);
  EXPECT_NEAR(to_ms(saving.saved), -50, 2);
  EXPECT_LT(saving.high, 0ms);
}

TEST(ControlGroupTest, TooFewRequestsHaveNoInterval) {
  EXPECT_FALSE(saving_between(even(100, 100ms), even(100'000, 100ms), 0.99).bounded);
  EXPECT_FALSE(saving_between(even(100'000, 100ms), even(100, 100ms), 0.99).bounded);
  EXPECT_TRUE(saving_between(even(1000, 100ms), even(1000, 100ms), 0.99).bounded);
}

TEST(ControlGroupTest, WithoutOneOfTheGroupsNothingIsKnown) {
  for (const Saving& saving :
       {saving_between({}, even(1000, 100ms), 0.5), saving_between(even(1000, 100ms), {}, 0.5)}) {
    EXPECT_FALSE(saving.bounded);
    EXPECT_EQ(saving.saved, 0ms);
    EXPECT_EQ(saving.quantile, 0.5);
  }
}

TEST(ControlGroupTest, KeepsTheGroupsApart) {
  ControlGroup group(60s);
  for (int i = 0; i < 1000; ++i) group.record(kStart, true, 100ms);
  for (int i = 0; i < 2000; ++i) group.record(kStart, false, 30ms);
  EXPECT_EQ(group.control_requests(kStart), 1000u);
  const Saving saving = group.saving(0.9, kStart);
  EXPECT_NEAR(to_ms(saving.control), 100, 1);
  EXPECT_NEAR(to_ms(saving.saved), 70, 1.5);
}

TEST(ControlGroupTest, ForgetsWhatIsOlderThanTheWindow) {
  ControlGroup group(60s);
  for (int i = 0; i < 1000; ++i) {
    group.record(kStart, true, 100ms);
    group.record(kStart, false, 30ms);
  }
  EXPECT_TRUE(group.saving(0.5, kStart + 20s).bounded);
  EXPECT_EQ(group.control_requests(kStart + 61s), 0u);
  EXPECT_FALSE(group.saving(0.5, kStart + 61s).bounded);
}

TEST(ControlGroupTest, TheTrueSavingLiesWithinTheIntervalAsOftenAsStated) {
  constexpr std::uint64_t kSeed = 20250303;
  constexpr int kRuns = 400;
  std::cout << "seed " << kSeed << '\n';
  Rng rng(kSeed);
  for (const double q : {0.5, 0.9}) {
    const double truth = -std::log1p(-q) * (20 - 8);  // ms, of exponentials of 20 and 8 ms
    int within = 0;
    for (int run = 0; run < kRuns; ++run) {
      stats::Histogram control;
      stats::Histogram hedged;
      for (int i = 0; i < 200; ++i) control.record(from_ms(rng.exponential(20)));
      for (int i = 0; i < 2000; ++i) hedged.record(from_ms(rng.exponential(8)));
      const Saving saving = saving_between(control, hedged, q);
      within += to_ms(saving.low) <= truth && truth <= to_ms(saving.high) ? 1 : 0;
    }
    // Three standard errors below 95 %; and not so wide that it always holds.
    EXPECT_GE(within, 0.917 * kRuns) << q;
    EXPECT_LE(within, 0.995 * kRuns) << q;
  }
}

}  // namespace
}  // namespace tailward::hedge
