#include "stats/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <vector>

#include "base/rng.h"

namespace tailward::stats {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

TEST(HistogramTest, IsAllZeroesWhenEmpty) {
  const Histogram histogram;
  EXPECT_EQ(histogram.count(), 0U);
  EXPECT_EQ(histogram.min(), Duration{0});
  EXPECT_EQ(histogram.max(), Duration{0});
  EXPECT_EQ(histogram.mean_ns(), 0);
  EXPECT_EQ(histogram.quantile(0.99), Duration{0});
  EXPECT_EQ(histogram.count_above(Duration{0}), 0U);
  EXPECT_FALSE(histogram.quantile_interval(0.5).bounded);
}

TEST(HistogramTest, KeepsCountExtremesAndMeanExactly) {
  Histogram histogram;
  histogram.record(nanoseconds(1234567));
  histogram.record(nanoseconds(7654321), 3);
  EXPECT_EQ(histogram.count(), 4U);
  EXPECT_EQ(histogram.min(), nanoseconds(1234567));
  EXPECT_EQ(histogram.max(), nanoseconds(7654321));
  EXPECT_EQ(histogram.mean_ns(), (1234567 + 3 * 7654321) / 4.0);
  EXPECT_EQ(histogram.bucket(bucket_of(nanoseconds(7654321))), 3U);
}

TEST(HistogramTest, ASumBeyondSixtyFourBitsIsStillExact) {
  Histogram histogram;
  histogram.record(hours(1), 100'000'000);
  EXPECT_EQ(histogram.mean_ns(), 3.6e12);
}

TEST(HistogramTest, NoTimesIsNothing) {
  Histogram histogram;
  histogram.record(milliseconds(5), 0);
  EXPECT_EQ(histogram.count(), 0U);
  EXPECT_EQ(histogram.max(), Duration{0});
}

TEST(HistogramTest, OneValueIsEveryQuantile) {
  Histogram histogram;
  histogram.record(nanoseconds(5'000'001));
  for (const double q : {0.0, 0.5, 1.0}) EXPECT_EQ(histogram.quantile(q), nanoseconds(5'000'001));
}

TEST(HistogramTest, QuantilesAreTheNearestRanksWithinOnePercent) {
  constexpr std::uint64_t kSeed = 7;
  std::cout << "seed " << kSeed << '\n';
  Rng rng(kSeed);
  for (const std::size_t n : {2U, 10U, 99U, 1000U, 20000U}) {
    Histogram histogram;
    std::vector<std::int64_t> values(n);
    for (std::int64_t& value : values) {
      value = static_cast<std::int64_t>(rng.lognormal(5e6, 20e6)) + 1000;
      histogram.record(Duration{value});
    }
    std::sort(values.begin(), values.end());
    for (const double q : {0.0, 0.01, 0.5, 0.9, 0.95, 0.99, 0.999, 1.0}) {
      const auto exact = static_cast<double>(values[nearest_rank(n, q) - 1]);
      EXPECT_NEAR(static_cast<double>(histogram.quantile(q).count()), exact, kRelativeError * exact)
          << n << " values, q " << q;
    }
    EXPECT_EQ(histogram.quantile(0), Duration{values.front()});
    EXPECT_EQ(histogram.quantile(1), Duration{values.back()});
  }
}

TEST(HistogramTest, QuantilesNeverLeaveMinAndMax) {
  Histogram histogram;
  histogram.record(nanoseconds(10'000'000));
  histogram.record(nanoseconds(10'000'001), 8);
  histogram.record(nanoseconds(10'000'002));
  EXPECT_GE(histogram.quantile(0.5), histogram.min());
  EXPECT_LE(histogram.quantile(0.5), histogram.max());
}

TEST(HistogramTest, CountsWhatIsOutOfRangeAndSaysSo) {
  Histogram histogram;
  histogram.record(Duration{-5});
  histogram.record(Duration{0});
  histogram.record(kLowest - Duration{1});
  histogram.record(kLowest);
  histogram.record(kHighest);
  histogram.record(kHighest + Duration{1}, 2);
  histogram.record(hours(5));
  EXPECT_EQ(histogram.count(), 8U);
  EXPECT_EQ(histogram.out_of_range(), 6U);
  EXPECT_EQ(histogram.bucket(0), 4U);
  EXPECT_EQ(histogram.bucket(kBucketCount - 1), 4U);
  EXPECT_EQ(histogram.min(), Duration{0});  // a negative latency counts as zero
  EXPECT_EQ(histogram.max(), hours(5));
}

TEST(HistogramTest, CountsWhatIsLongerByBuckets) {
  Histogram histogram;
  histogram.record(milliseconds(1), 5);
  histogram.record(milliseconds(10), 3);
  histogram.record(milliseconds(100), 2);
  EXPECT_EQ(histogram.count_above(Duration{0}), 10U);
  EXPECT_EQ(histogram.count_above(milliseconds(1)), 5U);
  EXPECT_EQ(histogram.count_above(milliseconds(10)), 2U);
  EXPECT_EQ(histogram.count_above(milliseconds(100)), 0U);
  EXPECT_EQ(histogram.count_above(hours(9)), 0U);
}

TEST(HistogramTest, MergingEqualsRecordingTogether) {
  Histogram one;
  Histogram two;
  Histogram together;
  Rng rng(3);
  for (int i = 0; i < 1000; ++i) {
    const Duration latency{static_cast<std::int64_t>(rng.exponential(3e6))};
    (i % 3 == 0 ? one : two).record(latency);
    together.record(latency);
  }
  one.merge(two);
  one.merge(Histogram());
  EXPECT_EQ(one.count(), together.count());
  EXPECT_EQ(one.out_of_range(), together.out_of_range());
  EXPECT_EQ(one.min(), together.min());
  EXPECT_EQ(one.max(), together.max());
  EXPECT_EQ(one.mean_ns(), together.mean_ns());
  for (std::size_t i = 0; i < kBucketCount; ++i) ASSERT_EQ(one.bucket(i), together.bucket(i));
}

TEST(HistogramTest, ClearForgetsEverything) {
  Histogram histogram;
  histogram.record(hours(2), 10);
  histogram.clear();
  EXPECT_EQ(histogram.count(), 0U);
  EXPECT_EQ(histogram.out_of_range(), 0U);
  EXPECT_EQ(histogram.bucket(kBucketCount - 1), 0U);
  histogram.record(milliseconds(5));
  EXPECT_EQ(histogram.min(), milliseconds(5));
  EXPECT_EQ(histogram.max(), milliseconds(5));
}

TEST(HistogramTest, IntervalOfASmallSampleIsNotBounded) {
  Histogram histogram;
  for (int ms = 1; ms <= 100; ++ms) histogram.record(milliseconds(ms));
  const DurationInterval p99 = histogram.quantile_interval(0.99);
  EXPECT_FALSE(p99.bounded);
  EXPECT_EQ(p99.high, milliseconds(100));
  EXPECT_GT(p99.low, milliseconds(90));
  const DurationInterval p50 = histogram.quantile_interval(0.5);
  EXPECT_TRUE(p50.bounded);
  EXPECT_LE(p50.low, milliseconds(40));
  EXPECT_GT(p50.low, milliseconds(38));
  EXPECT_GE(p50.high, milliseconds(61));
  EXPECT_LT(p50.high, milliseconds(63));
  const DurationInterval p01 = histogram.quantile_interval(0.01);
  EXPECT_FALSE(p01.bounded);
  EXPECT_EQ(p01.low, milliseconds(1));
}

TEST(HistogramTest, IntervalHoldsTheQuantileItself) {
  Histogram histogram;
  Rng rng(11);
  for (int i = 0; i < 5000; ++i) {
    histogram.record(Duration{static_cast<std::int64_t>(rng.lognormal(5e6, 2e6))});
    for (const double q : {0.01, 0.5, 0.99, 1.0}) {
      const DurationInterval interval = histogram.quantile_interval(q);
      ASSERT_LE(interval.low, histogram.quantile(q)) << i << ' ' << q;
      ASSERT_GE(interval.high, histogram.quantile(q)) << i << ' ' << q;
    }
  }
}

TEST(HistogramTest, IntervalReachesTheExtremesWhereTheOutermostBucketsDo) {
  Histogram histogram;
  histogram.record(Duration{3}, 500);
  histogram.record(hours(7), 500);
  EXPECT_EQ(histogram.quantile_interval(0.1).low, Duration{3});
  EXPECT_EQ(histogram.quantile_interval(0.9).high, hours(7));
}

TEST(HistogramTest, IntervalsCoverTheTrueQuantileAtLeastAsOftenAsStated) {
  constexpr std::uint64_t kSeed = 99;
  constexpr int kRuns = 1000;
  std::cout << "seed " << kSeed << '\n';
  Rng rng(kSeed);
  for (const double q : {0.5, 0.95, 0.99}) {
    const double truth = -5e6 * std::log1p(-q);
    int covered = 0;
    for (int run = 0; run < kRuns; ++run) {
      Histogram histogram;
      for (int i = 0; i < 600; ++i) {
        histogram.record(Duration{static_cast<std::int64_t>(rng.exponential(5e6))});
      }
      const DurationInterval interval = histogram.quantile_interval(q);
      covered += static_cast<double>(interval.low.count()) <= truth &&
                         truth <= static_cast<double>(interval.high.count())
                     ? 1
                     : 0;
    }
    EXPECT_GE(covered / double{kRuns}, 0.95 - 0.0275) << q;  // 4 standard errors
  }
}

}  // namespace
}  // namespace tailward::stats
