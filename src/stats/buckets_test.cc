#include "stats/buckets.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tailward::stats {
namespace {

// How far the middle of its bucket is from a latency, as a share of the latency.
double error_of(Duration latency) {
  const auto middle = static_cast<double>(bucket_middle(bucket_of(latency)).count());
  const auto exact = static_cast<double>(latency.count());
  return std::abs(middle - exact) / exact;
}

TEST(BucketsTest, TileTheRangeWithoutGaps) {
  EXPECT_EQ(bucket_low(0), kLowest);
  EXPECT_EQ(bucket_high(kBucketCount - 1), kHighest + Duration{1});
  for (std::size_t i = 0; i < kBucketCount; ++i) {
    ASSERT_LT(bucket_low(i), bucket_high(i)) << i;
    if (i > 0) {
      ASSERT_EQ(bucket_high(i - 1), bucket_low(i)) << i;
    }
  }
}

TEST(BucketsTest, NumberAboutElevenHundred) {
  EXPECT_GT(kBucketCount, 1100U);
  EXPECT_LT(kBucketCount, 1150U);
}

TEST(BucketsTest, BoundsAgreeWithBucketOfToTheNanosecond) {
  for (std::size_t i = 0; i < kBucketCount; ++i) {
    ASSERT_EQ(bucket_of(bucket_low(i)), i);
    ASSERT_EQ(bucket_of(bucket_high(i) - Duration{1}), i);
    ASSERT_EQ(bucket_of(bucket_middle(i)), i);
    if (i > 0) {
      ASSERT_EQ(bucket_of(bucket_low(i) - Duration{1}), i - 1);
    }
    if (i + 1 < kBucketCount) {
      ASSERT_EQ(bucket_of(bucket_high(i)), i + 1);
    }
  }
}

// Within a bucket the error is largest at its ends, so that these stand for every latency there is.
TEST(BucketsTest, MiddleIsWithinOnePercentAtBothEndsOfEveryBucket) {
  double worst = 0;
  for (std::size_t i = 0; i < kBucketCount; ++i) {
    ASSERT_LE(bucket_low(i), bucket_middle(i));
    ASSERT_LT(bucket_middle(i), bucket_high(i));
    worst = std::max({worst, error_of(bucket_low(i)), error_of(bucket_high(i) - Duration{1})});
  }
  EXPECT_LE(worst, kRelativeError);
  EXPECT_GT(worst, 0.95 * kRelativeError) << "more buckets than the error needs";
}

TEST(BucketsTest, EveryNanosecondOfTheFirstMillisecondIsInOrderAndWithinOnePercent) {
  std::size_t before = 0;
  for (Duration t = kLowest; t <= std::chrono::milliseconds(1); ++t) {
    const std::size_t bucket = bucket_of(t);
    ASSERT_GE(bucket, before) << t.count();
    ASSERT_LE(bucket, before + 1) << t.count();
    ASSERT_LE(error_of(t), kRelativeError) << t.count();
    before = bucket;
  }
}

TEST(BucketsTest, ADenseSweepToOneHourIsInOrderAndWithinOnePercent) {
  std::size_t before = 0;
  for (double ns = 1e6; ns < 3.6e12; ns *= 1.00001) {
    const Duration t{static_cast<std::int64_t>(ns)};
    const std::size_t bucket = bucket_of(t);
    ASSERT_GE(bucket, before) << t.count();
    ASSERT_LE(error_of(t), kRelativeError) << t.count();
    before = bucket;
  }
  EXPECT_EQ(before, kBucketCount - 1);
}

TEST(BucketsTest, NeighboursAroundEveryBoundAndOctaveAreInOrder) {
  const auto expect_order = [](std::int64_t around) {
    for (std::int64_t ns = around - 3; ns < around + 3; ++ns) {
      ASSERT_LE(bucket_of(Duration{ns}), bucket_of(Duration{ns + 1})) << ns;
    }
  };
  for (std::size_t i = 0; i < kBucketCount; ++i) expect_order(bucket_low(i).count());
  for (int bit = 2; bit < 62; ++bit) expect_order(std::int64_t{1} << bit);
}

TEST(BucketsTest, WhatIsOutOfRangeFallsIntoTheOutermostBuckets) {
  EXPECT_EQ(bucket_of(Duration::min()), 0U);
  EXPECT_EQ(bucket_of(Duration{-1}), 0U);
  EXPECT_EQ(bucket_of(Duration{0}), 0U);
  EXPECT_EQ(bucket_of(kLowest - Duration{1}), 0U);
  EXPECT_EQ(bucket_of(kHighest), kBucketCount - 1);
  EXPECT_EQ(bucket_of(kHighest + Duration{1}), kBucketCount - 1);
  EXPECT_EQ(bucket_of(kForever), kBucketCount - 1);
  EXPECT_EQ(bucket_of(Duration::max()), kBucketCount - 1);
}

TEST(BucketsTest, AreKnownToTheCompiler) {
  static_assert(bucket_of(kLowest) == 0);
  static_assert(bucket_of(kHighest) + 1 == kBucketCount);
  static_assert(bucket_of(2 * kLowest) == detail::kBucketsPerOctave);
}

}  // namespace
}  // namespace tailward::stats
