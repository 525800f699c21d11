#include "stats/interval.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iostream>
#include <vector>

#include "base/rng.h"

namespace tailward::stats {
namespace {

// P(B = k) for k = 0…n, by logarithms of factorials: a second opinion on the library's beta
// function.
std::vector<double> binomial(std::uint64_t n, double q) {
  std::vector<double> p(n + 1);
  const auto size = static_cast<double>(n);
  for (std::uint64_t i = 0; i <= n; ++i) {
    const auto k = static_cast<double>(i);
    p[i] = std::exp(std::lgamma(size + 1) - std::lgamma(k + 1) - std::lgamma(size - k + 1) +
                    k * std::log(q) + (size - k) * std::log1p(-q));
  }
  return p;
}

double sum(const std::vector<double>& p, std::uint64_t from, std::uint64_t to) {
  double total = 0;
  for (std::uint64_t k = from; k < to && k < p.size(); ++k) total += p[k];
  return total;
}

TEST(IntervalTest, NormalQuantileIsThatOfTheTables) {
  EXPECT_NEAR(normal_quantile(0.5), 0, 1e-12);
  EXPECT_NEAR(normal_quantile(0.975), 1.959963984540054, 1e-12);
  EXPECT_NEAR(normal_quantile(0.025), -1.959963984540054, 1e-12);
  EXPECT_NEAR(normal_quantile(0.995), 2.5758293035489004, 1e-12);
  EXPECT_NEAR(normal_quantile(1e-9), -5.997807015007774, 1e-9);
}

TEST(IntervalTest, WilsonSolvesItsOwnEquation) {
  // The ends are where |p̂ − p| = z·√(p(1−p)/n): what defines a score interval.
  for (const double n : {1.0, 5.0, 20.0, 1000.0, 1e7}) {
    for (const double share : {0.0, 0.05, 0.3, 0.5, 0.99, 1.0}) {
      for (const double confidence : {0.8, 0.95, 0.999}) {
        const ShareInterval interval = share_interval(share * n, n, confidence);
        const double z = normal_quantile((1 + confidence) / 2);
        for (const double end : {interval.low, interval.high}) {
          EXPECT_NEAR(std::abs(share - end), z * std::sqrt(end * (1 - end) / n), 1e-9)
              << "n " << n << " share " << share;
        }
        EXPECT_LE(interval.low, share);
        EXPECT_GE(interval.high, share);
      }
    }
  }
}

TEST(IntervalTest, WilsonGivesThePublishedFiguresOfTenInAHundred) {
  const ShareInterval interval = share_interval(10, 100);
  EXPECT_NEAR(interval.low, 0.0552, 0.0001);
  EXPECT_NEAR(interval.high, 0.1744, 0.0001);
}

TEST(IntervalTest, NothingTriedSaysNothing) {
  for (const double n : {0.0, -1.0, std::nan("")}) {
    const ShareInterval interval = share_interval(0, n);
    EXPECT_EQ(interval.low, 0);
    EXPECT_EQ(interval.high, 1);
  }
}

TEST(IntervalTest, ShareIsKeptWithinZeroAndOne) {
  EXPECT_EQ(share_interval(0, 10).low, 0);
  EXPECT_GT(share_interval(0, 10).high, 0.2);
  EXPECT_EQ(share_interval(10, 10).high, 1);
  EXPECT_EQ(share_interval(11, 10).high, 1);  // decayed weights may disagree by a rounding
}

TEST(IntervalTest, RanksAreTheTightestThatKeepTheConfidence) {
  for (const std::uint64_t n : {1U, 2U, 5U, 10U, 58U, 59U, 100U, 367U, 368U, 1000U, 3000U}) {
    for (const double q : {0.01, 0.25, 0.5, 0.9, 0.95, 0.99, 0.999}) {
      for (const double confidence : {0.5, 0.9, 0.95, 0.999}) {
        SCOPED_TRACE(testing::Message()
                     << n << " values, q " << q << ", confidence " << confidence);
        const RankInterval ranks = quantile_ranks(n, q, confidence);
        const std::vector<double> p = binomial(n, q);
        const double tail = (1 - confidence) / 2;
        ASSERT_LE(ranks.low, n);
        ASSERT_GE(ranks.high, 1U);
        ASSERT_LE(ranks.high, n + 1);
        // P(B < low) is within the tail, P(B < low + 1) is not; likewise for B ≥ high.
        EXPECT_LE(sum(p, 0, ranks.low), tail + 1e-9);
        EXPECT_GT(sum(p, 0, ranks.low + 1), tail - 1e-9);
        EXPECT_LE(sum(p, ranks.high, n + 1), tail + 1e-9);
        EXPECT_GT(sum(p, ranks.high - 1, n + 1), tail - 1e-9);
        EXPECT_GE(sum(p, ranks.low, ranks.high), confidence - 1e-9);
      }
    }
  }
}

TEST(IntervalTest, RanksOfTheMedianAreThoseOfTheTables) {
  // The sign test's: n = 10 gives the 2nd and the 9th value, n = 20 the 6th and the 15th.
  EXPECT_EQ(quantile_ranks(10, 0.5).low, 2U);
  EXPECT_EQ(quantile_ranks(10, 0.5).high, 9U);
  EXPECT_EQ(quantile_ranks(20, 0.5).low, 6U);
  EXPECT_EQ(quantile_ranks(20, 0.5).high, 15U);
}

TEST(IntervalTest, ASmallSampleHasNoUpperBoundForAHighQuantile) {
  // P(all 367 below the P99) = 0.99^367 = 2.5002 %: one more is needed.
  EXPECT_EQ(quantile_ranks(367, 0.99).high, 368U);
  EXPECT_EQ(quantile_ranks(368, 0.99).high, 368U);
  EXPECT_EQ(quantile_ranks(367, 0.01).low, 0U);
  EXPECT_EQ(quantile_ranks(368, 0.01).low, 1U);
}

TEST(IntervalTest, RanksOfHugeSamplesAgreeWithTheNormalApproximation) {
  for (const double n : {1e6, 1e9, 1e12}) {
    for (const double q : {0.5, 0.99, 0.99999}) {
      const RankInterval ranks = quantile_ranks(static_cast<std::uint64_t>(n), q);
      const double half = 1.959963984540054 * std::sqrt(n * q * (1 - q));
      const double slack = 1.5 + 0.001 * half;
      EXPECT_NEAR(static_cast<double>(ranks.low), n * q - half, slack + 0.5) << n << ' ' << q;
      EXPECT_NEAR(static_cast<double>(ranks.high), n * q + half + 1, slack + 0.5) << n << ' ' << q;
    }
  }
}

TEST(IntervalTest, RanksAtTheEndsOfTheScale) {
  EXPECT_EQ(quantile_ranks(0, 0.5).low, 0U);
  EXPECT_EQ(quantile_ranks(0, 0.5).high, 1U);
  EXPECT_EQ(quantile_ranks(9, 0).low, 0U);  // the minimum: nothing bounds it from below
  EXPECT_EQ(quantile_ranks(9, 0).high, 1U);
  EXPECT_EQ(quantile_ranks(9, 1).low, 9U);  // the maximum: nothing bounds it from above
  EXPECT_EQ(quantile_ranks(9, 1).high, 10U);
  EXPECT_EQ(quantile_ranks(9, 2).high, 10U);
  EXPECT_EQ(quantile_ranks(9, -1).high, 1U);
}

struct Source {
  const char* name;
  std::function<double(Rng&)> draw;
  std::function<double(double)> quantile;  // the true one
};

std::vector<Source> sources() {
  return {
      {"uniform", [](Rng& rng) { return rng.uniform(); }, [](double q) { return q; }},
      {"exponential", [](Rng& rng) { return rng.exponential(1); },
       [](double q) { return -std::log1p(-q); }},
      {"lognormal", [](Rng& rng) { return std::exp(2 * rng.normal()); },
       [](double q) { return std::exp(2 * normal_quantile(q)); }},
      // 90 % fast, 10 % ten times as slow, with nothing in between.
      {"two modes",
       [](Rng& rng) { return rng.chance(0.1) ? 10 + rng.uniform() : 1 + rng.uniform(); },
       [](double q) { return q <= 0.9 ? 1 + q / 0.9 : 10 + (q - 0.9) / 0.1; }},
      // Ties: a clock that ticks in fives.
      {"coarse clock", [](Rng& rng) { return std::floor(rng.uniform() * 20) * 5; },
       [](double q) { return std::ceil(q * 20 - 1e-9) * 5 - 5; }},
  };
}

TEST(IntervalTest, RanksCoverTheTrueQuantileAtLeastAsOftenAsStated) {
  constexpr std::uint64_t kSeed = 20240611;
  constexpr int kRuns = 2000;
  std::cout << "seed " << kSeed << '\n';
  Rng rng(kSeed);
  for (const Source& source : sources()) {
    for (const std::uint64_t n : {10U, 50U, 400U}) {
      for (const double q : {0.5, 0.9, 0.99}) {
        const RankInterval ranks = quantile_ranks(n, q);
        const double truth = source.quantile(q);
        std::vector<double> values(n);
        int covered = 0;
        for (int run = 0; run < kRuns; ++run) {
          for (double& value : values) value = source.draw(rng);
          std::sort(values.begin(), values.end());
          const bool low_holds = ranks.low == 0 || values[ranks.low - 1] <= truth;
          const bool high_holds = ranks.high > n || values[ranks.high - 1] >= truth;
          covered += low_holds && high_holds ? 1 : 0;
        }
        // 4 standard errors of a share of 95 % in 2,000 runs.
        EXPECT_GE(covered / double{kRuns}, 0.95 - 0.0195) << source.name << ' ' << n << ' ' << q;
      }
    }
  }
}

TEST(IntervalTest, NearestRankForgivesTheProductsRounding) {
  EXPECT_EQ(nearest_rank(100, 0.07), 7U);  // 0.07 × 100 is 7.000000000000001
  for (std::uint64_t percent = 1; percent <= 100; ++percent) {
    EXPECT_EQ(nearest_rank(100, static_cast<double>(percent) / 100), percent);
    EXPECT_EQ(nearest_rank(1000, static_cast<double>(percent) / 100), 10 * percent);
  }
  EXPECT_EQ(nearest_rank(101, 0.5), 51U);
  EXPECT_EQ(nearest_rank(3, 0.34), 2U);
}

TEST(IntervalTest, NearestRankStaysWithinTheSample) {
  EXPECT_EQ(nearest_rank(0, 0.5), 0U);
  EXPECT_EQ(nearest_rank(5, 0), 1U);
  EXPECT_EQ(nearest_rank(5, -3), 1U);
  EXPECT_EQ(nearest_rank(5, std::nan("")), 1U);
  EXPECT_EQ(nearest_rank(5, 1), 5U);
  EXPECT_EQ(nearest_rank(5, 7), 5U);
  EXPECT_EQ(nearest_rank(UINT64_MAX, 1), UINT64_MAX);
}

TEST(IntervalTest, StudentsIntervalOfAMeanIsThatOfTheTables) {
  const MeanInterval five = mean_interval(std::vector<double>{5, 1, 4, 2, 3});
  EXPECT_DOUBLE_EQ(five.mean, 3);
  EXPECT_NEAR(five.high - five.mean, 2.776445 * std::sqrt(2.5 / 5), 1e-6);
  EXPECT_NEAR(five.mean - five.low, 2.776445 * std::sqrt(2.5 / 5), 1e-6);
  const MeanInterval two = mean_interval(std::vector<double>{-1, 1}, 0.9);
  EXPECT_DOUBLE_EQ(two.mean, 0);
  EXPECT_NEAR(two.high, 6.313752, 1e-6);
  EXPECT_NEAR(two.low, -6.313752, 1e-6);
  const MeanInterval same = mean_interval(std::vector<double>(7, 4.0), 0.999);
  EXPECT_NEAR(same.low, 4, 1e-12);
  EXPECT_NEAR(same.high, 4, 1e-12);
}

TEST(IntervalTest, FewerThanTwoValuesBoundNoMean) {
  const MeanInterval none = mean_interval({});
  EXPECT_EQ(none.mean, 0);
  EXPECT_TRUE(std::isinf(none.low) && none.low < 0);
  EXPECT_TRUE(std::isinf(none.high) && none.high > 0);
  const MeanInterval one = mean_interval(std::vector<double>{17});
  EXPECT_EQ(one.mean, 17);
  EXPECT_TRUE(std::isinf(one.low) && one.low < 0);
  EXPECT_TRUE(std::isinf(one.high) && one.high > 0);
}

TEST(IntervalTest, StudentsIntervalCoversTheTrueMeanAsOftenAsStated) {
  constexpr std::uint64_t kSeed = 20250307;
  constexpr int kRuns = 4000;
  std::cout << "seed " << kSeed << '\n';
  Rng rng(kSeed);
  for (const std::size_t n : {2U, 5U, 24U}) {
    for (const double confidence : {0.8, 0.95}) {
      std::vector<double> values(n);
      int covered = 0;
      for (int run = 0; run < kRuns; ++run) {
        for (double& value : values) value = 100 + 7 * rng.normal();
        const MeanInterval interval = mean_interval(values, confidence);
        covered += interval.low <= 100 && 100 <= interval.high ? 1 : 0;
      }
      const double error = std::sqrt(confidence * (1 - confidence) / kRuns);
      EXPECT_NEAR(covered / double{kRuns}, confidence, 4 * error) << n << " values";
    }
  }
}

}  // namespace
}  // namespace tailward::stats
