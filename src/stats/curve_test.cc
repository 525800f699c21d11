#include "stats/curve.h"

#include <gtest/gtest.h>

#include <cmath>
#include <iostream>

#include "base/rng.h"

namespace tailward::stats {
namespace {

using namespace std::chrono_literals;

Curve random_curve(Rng& rng, double end) {
  Curve curve;
  double above = 1;
  for (std::size_t i = 200; i < 900; ++i) {
    if (rng.chance(0.3)) above -= (above - end) * rng.uniform(0, 0.1);
    curve.set(i, above);
  }
  for (std::size_t i = 900; i < kBucketCount; ++i) curve.set(i, end);
  return curve;
}

TEST(CurveTest, KnowsNothingWhenEmpty) {
  for (const Curve& curve : {Curve(), Curve(Survival()), Curve(Histogram())}) {
    EXPECT_EQ(curve.above(0ns), 1);
    EXPECT_EQ(curve.above(5ms), 1);
    EXPECT_EQ(curve.above(2h), 1);
    EXPECT_EQ(curve.quantile(0), 0ns);
    EXPECT_FALSE(curve.quantile(0.5).has_value());
    EXPECT_EQ(curve.longest(), 0ns);
    EXPECT_EQ(curve.remaining(1ms, 5ms), 4ms);
  }
}

TEST(CurveTest, IsLinearWithinABucket) {
  const std::size_t bucket = bucket_of(5ms);
  Curve curve;
  curve.set(bucket, 0.5);
  for (std::size_t i = bucket + 1; i < kBucketCount; ++i) curve.set(i, 0);
  const Duration low = bucket_low(bucket);
  const Duration high = bucket_high(bucket);
  EXPECT_EQ(curve.above(low), 1);
  EXPECT_NEAR(curve.above(low + (high - low) / 4), 0.875, 1e-4);
  EXPECT_NEAR(curve.above(low + (high - low) / 2), 0.75, 1e-4);
  EXPECT_EQ(curve.above(high), 0.5);
  EXPECT_EQ(curve.above(bucket_high(bucket + 1)), 0);
  EXPECT_EQ(curve.longest(), bucket_high(bucket + 1));
}

TEST(CurveTest, BeginsAtZeroForLatenciesBelowTheScale) {
  Survival samples;
  samples.record(100ns);
  const Curve curve(samples);
  const Duration end = bucket_high(0);
  EXPECT_EQ(curve.above(-1ns), 1);
  EXPECT_EQ(curve.above(0ns), 1);
  EXPECT_NEAR(curve.above(end / 2), 0.5, 1e-9);
  EXPECT_EQ(curve.above(end), 0);
  EXPECT_EQ(curve.quantile(0.5), end / 2);
}

TEST(CurveTest, EqualsItsBucketsEndsAndNeverRises) {
  constexpr std::uint64_t kSeed = 5;
  std::cout << "seed " << kSeed << '\n';
  Rng rng(kSeed);
  const Curve curve = random_curve(rng, 0.1);
  double before = 1;
  for (std::size_t i = 0; i < kBucketCount; ++i) {
    ASSERT_EQ(curve.above(bucket_high(i)), curve.at(i)) << i;
    const Duration width = bucket_high(i) - bucket_low(i);
    for (int k = 0; k < 8; ++k) {
      const double above = curve.above(bucket_low(i) + width * k / 8);
      ASSERT_LE(above, before) << i;
      before = above;
    }
  }
}

TEST(CurveTest, QuantileIsTheEarliestNanosecondThatIsLowEnough) {
  constexpr std::uint64_t kSeed = 6;
  std::cout << "seed " << kSeed << '\n';
  Rng rng(kSeed);
  for (int round = 0; round < 50; ++round) {
    const Curve curve = random_curve(rng, round % 2 == 0 ? 0 : 0.05);
    for (int k = 0; k < 200; ++k) {
      const double q = rng.uniform(0, 0.94);
      const std::optional<Duration> t = curve.quantile(q);
      ASSERT_TRUE(t.has_value());
      ASSERT_LE(curve.above(*t), (1 - q) * Curve::kRounding);
      ASSERT_GT(curve.above(*t - 1ns), 1 - q);
    }
  }
}

TEST(CurveTest, DoesNotMissAQuantileThatFallsOnAStep) {
  Histogram samples;
  samples.record(1ms, 90);
  samples.record(1s, 10);
  const Curve curve(samples);
  EXPECT_EQ(curve.quantile(0.9), bucket_high(bucket_of(1ms)));
  EXPECT_GE(curve.quantile(0.901), bucket_low(bucket_of(1s)));
  EXPECT_EQ(curve.quantile(1), bucket_high(bucket_of(1s)));
}

TEST(CurveTest, AgreesWithTheSamplesItIsMadeOf) {
  constexpr std::uint64_t kSeed = 7;
  std::cout << "seed " << kSeed << '\n';
  Rng rng(kSeed);
  Survival survival;
  Histogram histogram;
  for (int i = 0; i < 20'000; ++i) {
    const Duration latency = from_ms(rng.lognormal(5, 2));
    survival.record(latency);
    histogram.record(latency);
  }
  const Curve one(survival);
  const Curve other(histogram);
  for (std::size_t i = 0; i < kBucketCount; ++i) {
    ASSERT_NEAR(one.at(i), other.at(i), 1e-6) << i;
    ASSERT_NEAR(one.at(i), survival.above(bucket_low(i)), 1e-6) << i;
  }
  for (const double q : {0.1, 0.5, 0.9, 0.99, 0.999}) {
    EXPECT_NEAR(to_ms(one.quantile(q).value()), to_ms(histogram.quantile(q)),
                0.02 * to_ms(histogram.quantile(q)));
  }
}

TEST(CurveTest, EndsAboveZeroWhereTheLongestSamplesAreCensored) {
  Survival samples;
  for (int i = 0; i < 2; ++i) samples.record(10ms);
  samples.record_censored(5s);
  const Curve curve(samples);
  EXPECT_NEAR(curve.above(20ms), 1.0 / 3, 1e-6);
  EXPECT_NEAR(curve.above(10s), 1.0 / 3, 1e-6);
  EXPECT_NEAR(curve.above(2h), 1.0 / 3, 1e-6);
  EXPECT_TRUE(curve.quantile(0.66).has_value());
  EXPECT_FALSE(curve.quantile(0.67).has_value());
  EXPECT_EQ(curve.longest(), bucket_high(bucket_of(10ms)));
  EXPECT_NEAR(to_ms(curve.remaining(1s, 4s)), 3000, 1e-3);
  EXPECT_NEAR(to_ms(curve.remaining(1h, 3h)), to_ms(2h), 1e-3);
}

TEST(CurveTest, RemainingIsWhatAnExponentialNeverForgets) {
  Curve curve;
  for (std::size_t i = 0; i < kBucketCount; ++i) {
    curve.set(i, std::exp(-to_ms(bucket_high(i)) / 20));
  }
  for (const Duration t : {0ms, 1ms, 20ms, 100ms}) {
    EXPECT_NEAR(to_ms(curve.remaining(t, 2s)), 20, 0.03) << to_ms(t);
  }
  EXPECT_NEAR(to_ms(curve.remaining(10ms, 15ms)), 20 * (1 - std::exp(-0.25)), 0.001);
  EXPECT_EQ(curve.remaining(10ms, 10ms), 0ns);
  EXPECT_EQ(curve.remaining(10ms, 5ms), 0ns);
}

TEST(CurveTest, NothingRemainsAfterTheLongest) {
  Survival samples;
  samples.record(10ms);
  const Curve curve(samples);
  EXPECT_EQ(curve.remaining(curve.longest(), 1s), 0ns);
  EXPECT_NEAR(to_ms(curve.remaining(0ns, 1s)), 10, 0.1);
  EXPECT_NEAR(to_ms(curve.remaining(4ms, 1s)), 6, 0.1);
}

TEST(CurveTest, MixesPointByPoint) {
  Survival fast;
  fast.record(1ms);
  Survival slow;
  slow.record(100ms);
  const Curve mixed = Curve::mix(Curve(fast), Curve(slow), 0.25);
  EXPECT_EQ(mixed.above(500us), 1);
  EXPECT_EQ(mixed.above(10ms), 0.25);
  EXPECT_EQ(mixed.above(1s), 0);
  EXPECT_EQ(mixed.longest(), bucket_high(bucket_of(100ms)));
}

}  // namespace
}  // namespace tailward::stats
