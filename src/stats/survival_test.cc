#include "stats/survival.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <vector>

#include "base/rng.h"
#include "stats/interval.h"

namespace tailward::stats {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

void expect_near(std::optional<Duration> actual, Duration expected, double share) {
  ASSERT_TRUE(actual.has_value());
  EXPECT_NEAR(to_ms(*actual), to_ms(expected), share * to_ms(expected));
}

// Every bucket's P(latency > its end), as one array.
std::vector<float> curve(const Survival& survival) {
  std::array<float, kBucketCount> above{};
  survival_curve(survival, above);
  return {above.begin(), above.end()};
}

TEST(SurvivalTest, KnowsNothingWhenEmpty) {
  const Survival survival;
  EXPECT_EQ(survival.weight(), 0);
  EXPECT_EQ(survival.above(milliseconds(5)), 1);
  EXPECT_FALSE(survival.quantile(0.5).has_value());
  EXPECT_FALSE(survival.quantile(0).has_value());
  for (const float above : curve(survival)) ASSERT_EQ(above, 1);
}

TEST(SurvivalTest, FitsIntoTwelveKibibytes) { EXPECT_LE(sizeof(Survival), 12U * 1024); }

TEST(SurvivalTest, EqualsTheEmpiricalQuantileWithoutCensoring) {
  constexpr std::uint64_t kSeed = 17;
  std::cout << "seed " << kSeed << '\n';
  Rng rng(kSeed);
  for (const std::size_t n : {1U, 2U, 10U, 100U, 1000U, 20000U}) {
    Survival survival;
    std::vector<Duration> values(n);
    for (Duration& value : values) {
      value = Duration{static_cast<std::int64_t>(rng.lognormal(5e6, 20e6)) + 1000};
      survival.record(value);
    }
    std::sort(values.begin(), values.end());
    for (const double q : {0.0, 0.1, 0.25, 0.5, 0.9, 0.95, 0.99, 0.999, 1.0}) {
      const Duration exact = values[nearest_rank(n, q) - 1];
      EXPECT_EQ(survival.quantile(q), bucket_middle(bucket_of(exact))) << n << ' ' << q;
    }
    EXPECT_EQ(survival.above(values.back()), 0);
  }
}

// Remission in weeks of 21 patients on 6-mercaptopurine (Freireich et al., Blood 1963), the example
// of most textbooks, in milliseconds: 6, 6, 6, 6+, 7, 9+, 10, 10+, 11+, 13, 16, 17+, 19+, 20+, 22,
// 23, 25+, 32+, 32+, 34+, 35+. At risk at the finishes: 21 (three), 17, 15, 12, 11, 7, 6.
Survival freireich() {
  Survival survival;
  for (const int ms : {6, 6, 6, 7, 10, 13, 16, 22, 23}) survival.record(milliseconds(ms));
  for (const int ms : {6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35}) {
    survival.record_censored(milliseconds(ms));
  }
  return survival;
}

TEST(SurvivalTest, GivesTheTextbooksFigures) {
  const Survival survival = freireich();
  double expected = 1;
  EXPECT_EQ(survival.above(milliseconds(5)), 1);
  const auto expect_step = [&](int ms, double finished, double at_risk) {
    EXPECT_NEAR(survival.above(milliseconds(ms - 1) + milliseconds(1) / 2), expected, 1e-12) << ms;
    expected *= 1 - finished / at_risk;
    EXPECT_NEAR(survival.above(milliseconds(ms)), expected, 1e-12) << ms;
  };
  expect_step(6, 3, 21);
  expect_step(7, 1, 17);
  expect_step(10, 1, 15);
  expect_step(13, 1, 12);
  expect_step(16, 1, 11);
  expect_step(22, 1, 7);
  expect_step(23, 1, 6);
  EXPECT_NEAR(expected, 0.4482, 0.0001);
  EXPECT_NEAR(survival.above(hours(1)), expected, 1e-12);
}

TEST(SurvivalTest, GivesTheTextbooksMedian) {
  const Survival survival = freireich();
  EXPECT_EQ(survival.quantile(0.5), bucket_middle(bucket_of(milliseconds(23))));
  EXPECT_EQ(survival.quantile(0.14), bucket_middle(bucket_of(milliseconds(6))));
  EXPECT_EQ(survival.quantile(0.15), bucket_middle(bucket_of(milliseconds(7))));
}

TEST(SurvivalTest, DoesNotGuessBeyondACensoredTail) {
  const Survival survival = freireich();
  EXPECT_TRUE(survival.quantile(0.55).has_value());
  EXPECT_FALSE(survival.quantile(0.56).has_value());
  Survival lost;
  for (int i = 0; i < 10; ++i) lost.record_censored(milliseconds(10));
  EXPECT_FALSE(lost.quantile(0).has_value());
  EXPECT_FALSE(lost.quantile(0.5).has_value());
  EXPECT_EQ(lost.above(hours(1)), 1);
  EXPECT_EQ(lost.weight(), 10);
  EXPECT_EQ(lost.finished_weight(), 0);
}

TEST(SurvivalTest, ReachesZeroWhenTheLongestHasFinished) {
  Survival survival;
  survival.record_censored(milliseconds(1));
  survival.record(milliseconds(2));
  survival.record_censored(milliseconds(3));
  survival.record(milliseconds(4));
  EXPECT_EQ(survival.above(milliseconds(4)), 0);
  expect_near(survival.quantile(1), milliseconds(4), 0.01);
}

TEST(SurvivalTest, TakesFinishedBeforeCensoredInOneBucket) {
  Survival survival;
  survival.record_censored(milliseconds(5));
  survival.record(milliseconds(5));
  EXPECT_NEAR(survival.above(milliseconds(5)), 0.5, 1e-12);
}

TEST(SurvivalTest, CurveIsAboveAtEveryBucketsEnd) {
  Survival survival;
  Rng rng(23);
  for (int i = 0; i < 3000; ++i) {
    const Duration t{static_cast<std::int64_t>(rng.lognormal(5e6, 50e6))};
    rng.chance(0.3) ? survival.record_censored(t) : survival.record(t);
  }
  const std::vector<float> above = curve(survival);
  for (std::size_t i = 0; i < kBucketCount; ++i) {
    ASSERT_NEAR(above[i], survival.above(bucket_high(i) - Duration{1}), 1e-6) << i;
    if (i > 0) {
      ASSERT_LE(above[i], above[i - 1]) << i;
    }
  }
}

TEST(SurvivalTest, QuantileIsTheFirstBucketWhereTheCurveIsLowEnough) {
  constexpr std::uint64_t kSeed = 29;
  std::cout << "seed " << kSeed << '\n';
  Rng rng(kSeed);
  for (int run = 0; run < 300; ++run) {
    Survival survival;
    const auto n = 1 + rng.below(200);
    const double spread = rng.uniform(1e5, 1e8);
    for (std::uint64_t i = 0; i < n; ++i) {
      const Duration t{static_cast<std::int64_t>(rng.lognormal(5e6, spread))};
      rng.chance(0.4) ? survival.record_censored(t) : survival.record(t);
    }
    const std::vector<float> above = curve(survival);
    for (const double q : {0.05, 0.33, 0.501, 0.77, 0.951}) {
      std::optional<Duration> expected;
      for (std::size_t i = 0; i < kBucketCount && !expected; ++i) {
        if (static_cast<double>(above[i]) <= 1 - q) expected = bucket_middle(i);
      }
      ASSERT_EQ(survival.quantile(q), expected) << "run " << run << " q " << q;
    }
  }
}

TEST(SurvivalTest, WhatIsOutOfRangeFallsIntoTheOutermostBuckets) {
  Survival survival;
  survival.record(Duration{0});
  survival.record(Duration{-1});
  survival.record(Duration::min());  // what a NaN of milliseconds turns into
  survival.record(hours(2));
  EXPECT_EQ(survival.quantile(0.75), bucket_middle(0));
  EXPECT_EQ(survival.above(Duration{-1}), 0.25);
  EXPECT_EQ(survival.quantile(1), bucket_middle(kBucketCount - 1));
  EXPECT_EQ(survival.above(Duration::max()), 0);
}

TEST(SurvivalTest, DecayHalvesTheWeightsAndKeepsTheShape) {
  Survival survival = freireich();
  const std::vector<float> before = curve(survival);
  survival.decay(0.5);
  EXPECT_EQ(survival.weight(), 10.5);
  EXPECT_EQ(survival.finished_weight(), 4.5);
  const std::vector<float> after = curve(survival);
  for (std::size_t i = 0; i < kBucketCount; ++i) ASSERT_NEAR(after[i], before[i], 1e-6);
}

TEST(SurvivalTest, NewSamplesOutweighDecayedOnes) {
  Survival survival;
  for (int i = 0; i < 1000; ++i) survival.record(milliseconds(100));
  survival.decay(0.01);
  for (int i = 0; i < 100; ++i) survival.record(milliseconds(1));
  expect_near(survival.quantile(0.9), milliseconds(1), 0.01);
}

TEST(SurvivalTest, DecayDropsWhatIsNegligible) {
  Survival survival;
  survival.record(hours(1));
  survival.record_censored(milliseconds(1));
  for (int i = 0; i < 20; ++i) survival.decay(0.5);  // 0.95e-6
  EXPECT_EQ(survival.weight(), 0);
  EXPECT_FALSE(survival.quantile(0.5).has_value());
  survival.record(milliseconds(7));
  expect_near(survival.quantile(1), milliseconds(7), 0.01);
}

TEST(SurvivalTest, DecayTakesAFactorOutsideZeroToOneAsTheNearerEnd) {
  Survival survival = freireich();
  survival.decay(3);
  EXPECT_EQ(survival.weight(), 21);
  survival.decay(std::nan(""));
  EXPECT_EQ(survival.weight(), 0);
}

TEST(SurvivalTest, MergingEqualsRecordingTogether) {
  Survival one;
  Survival two;
  Survival together;
  Rng rng(31);
  for (int i = 0; i < 2000; ++i) {
    const Duration t{static_cast<std::int64_t>(rng.exponential(4e6))};
    const bool censored = rng.chance(0.2);
    for (Survival* to : {i % 3 == 0 ? &one : &two, &together}) {
      censored ? to->record_censored(t) : to->record(t);
    }
  }
  one.merge(two);
  one.merge(Survival());
  EXPECT_EQ(one.weight(), together.weight());
  EXPECT_EQ(one.finished_weight(), together.finished_weight());
  EXPECT_EQ(curve(one), curve(together));
}

TEST(SurvivalTest, MergesWithAWeight) {
  Survival fast;
  Survival slow;
  for (int i = 0; i < 100; ++i) fast.record(milliseconds(1));
  for (int i = 0; i < 100; ++i) slow.record(milliseconds(100));
  fast.merge(slow, 0.25);
  EXPECT_EQ(fast.weight(), 125);
  EXPECT_NEAR(fast.above(milliseconds(1)), 0.2, 1e-6);
  fast.merge(slow, 0);
  EXPECT_EQ(fast.weight(), 125);
}

TEST(SurvivalTest, ClearForgetsEverything) {
  Survival survival = freireich();
  survival.clear();
  EXPECT_EQ(survival.weight(), 0);
  EXPECT_EQ(survival.above(milliseconds(30)), 1);
}

TEST(SurvivalTest, AFullBucketHalvesAllAndKeepsTheShares) {
  Survival survival;
  for (int i = 0; i < 30'000'000; ++i) survival.record(milliseconds(i % 10 == 0 ? 50 : 1));
  EXPECT_NEAR(survival.above(milliseconds(1)), 0.1, 0.001);
  EXPECT_LT(survival.weight(), 30e6);
  Survival doubled = survival;
  for (int i = 0; i < 5; ++i) doubled.merge(survival, 4);
  EXPECT_NEAR(doubled.above(milliseconds(1)), 0.1, 0.001);
}

TEST(SurvivalTest, StaysSaneWhereATinyTailFollowsAHugeBody) {
  Survival survival;
  survival.record(hours(1));
  for (int i = 0; i < 19; ++i) survival.decay(0.5);
  for (std::size_t b = 0; b < 1000; ++b) {
    Survival many;
    many.record(bucket_middle(b));
    survival.merge(many, 4e6);
  }
  double before = 1;
  for (std::size_t b = 0; b < kBucketCount; ++b) {
    const double above = survival.above(bucket_middle(b));
    ASSERT_GE(above, 0) << b;
    ASSERT_LE(above, before) << b;
    before = above;
  }
  EXPECT_EQ(before, 0);
}

// Latencies of the reference benchmark, in ms: lognormal of mean 5 and sd 2, 5 % of them ten times
// as long.
double draw_ms(Rng& rng) {
  const double ms = rng.lognormal(5, 2);
  return rng.chance(0.05) ? 10 * ms : ms;
}

double true_quantile_ms(double q) {
  const double variance = std::log1p(4.0 / 25.0);
  const auto below = [&](double ms) {
    return std::erfc(-(std::log(ms / 5) + variance / 2) / std::sqrt(2 * variance)) / 2;
  };
  double low = 0;
  double high = 1000;
  for (int i = 0; i < 100; ++i) {
    const double ms = (low + high) / 2;
    (0.95 * below(ms) + 0.05 * below(ms / 10) < q ? low : high) = ms;
  }
  return low;
}

// What three estimators see of requests that are hedged after a delay, with a second attempt that
// is independent of the first: the winner finishes, the loser is cancelled at that moment.
struct Estimators {
  Survival censoring;
  Survival without_losers;
  Survival losers_as_finished;
  int hedges = 0;
};

Estimators hedge(Rng& rng, int requests, double delay_ms) {
  Estimators see;
  for (int i = 0; i < requests; ++i) {
    const double first = draw_ms(rng);
    double winner = first;
    if (first > delay_ms) {
      ++see.hedges;
      const double second = draw_ms(rng);
      const bool first_wins = first <= delay_ms + second;
      winner = first_wins ? first : second;
      const Duration loser = from_ms(first_wins ? first - delay_ms : delay_ms + second);
      see.censoring.record_censored(loser);
      see.losers_as_finished.record(loser);
    }
    see.censoring.record(from_ms(winner));
    see.without_losers.record(from_ms(winner));
    see.losers_as_finished.record(from_ms(winner));
  }
  return see;
}

TEST(SurvivalTest, IsRightUnderHedgingWhereTheTwoObviousEstimatorsAreNot) {
  constexpr std::uint64_t kSeed = 20240612;
  std::cout << "seed " << kSeed << '\n';
  Rng rng(kSeed);
  const double truth = true_quantile_ms(0.9);
  EXPECT_NEAR(truth, 8.7, 0.1);
  const Estimators see = hedge(rng, 200'000, 6);
  expect_near(see.censoring.quantile(0.9), from_ms(truth), 0.02);
  EXPECT_LT(to_ms(see.without_losers.quantile(0.9).value()), 0.88 * truth);
  EXPECT_LT(to_ms(see.losers_as_finished.quantile(0.9).value()), 0.95 * truth);
}

// Each round hedges after the P90 that the round before it saw, which should hedge 10 %.
double settled_hedge_share(std::uint64_t seed, Survival Estimators::*estimator) {
  constexpr int kRequests = 20'000;
  Rng rng(seed);
  double delay_ms = true_quantile_ms(0.9);
  int hedges = 0;
  for (int round = 0; round < 15; ++round) {
    const Estimators see = hedge(rng, kRequests, delay_ms);
    delay_ms = to_ms((see.*estimator).quantile(0.9).value());
    if (round >= 5) hedges += see.hedges;
  }
  return hedges / (10.0 * kRequests);
}

TEST(SurvivalTest, ADelayLearnedFromItHedgesTheShareIntendedAndWithoutLosersHalfAsMuchAgain) {
  constexpr std::uint64_t kSeed = 20240613;
  std::cout << "seed " << kSeed << '\n';
  EXPECT_NEAR(settled_hedge_share(kSeed, &Estimators::censoring), 0.10, 0.005);
  EXPECT_GT(settled_hedge_share(kSeed, &Estimators::without_losers), 0.14);
}

}  // namespace
}  // namespace tailward::stats
