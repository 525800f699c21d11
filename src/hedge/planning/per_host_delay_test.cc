#include "hedge/planning/per_host_delay.h"

#include <gtest/gtest.h>

#include <cmath>
#include <iostream>

#include "base/rng.h"

namespace tailward::hedge {
namespace {

using namespace std::chrono_literals;

// n samples, that share of them at `slow` and the others at `fast`.
stats::Survival two_modes(int n, double share, Duration fast, Duration slow) {
  stats::Survival samples;
  for (int i = 0; i < n; ++i) samples.record(i < std::lround(share * n) ? slow : fast);
  return samples;
}

stats::Survival even(int n, Duration longest) {
  stats::Survival samples;
  for (int i = 1; i <= n; ++i) samples.record(longest * i / n);
  return samples;
}

TEST(TriggerTest, WhatIsWorthItFromTheStartIsWorthItAtOnce) {
  const stats::Curve host(even(10'000, 100ms));  // on the average, 50 ms
  EXPECT_EQ(earliest_worth(host, 20ms, 100ms), 0ms);
  EXPECT_EQ(earliest_worth(host, 49ms, 100ms), 0ms);
}

TEST(TriggerTest, WhatIsNeverWorthItHasNoTime) {
  const stats::Curve host(even(10'000, 100ms));  // the rest grows shorter all the time
  EXPECT_EQ(earliest_worth(host, 51ms, 100ms), kForever);
  EXPECT_EQ(earliest_worth(stats::Curve(two_modes(1000, 1, 1ms, 8ms)), 9ms, 100ms), kForever);
}

// 90 % take 5 ms and the rest 100 ms: 14.5 ms on the average, and 95 ms after the first five.
TEST(TriggerTest, ItIsWorthItWhenTheUsualTimeHasPassed) {
  const stats::Curve host(two_modes(1000, 0.1, 5ms, 100ms));
  EXPECT_EQ(earliest_worth(host, 14ms, 200ms), 0ms);
  EXPECT_NEAR(to_ms(earliest_worth(host, 60ms, 200ms)), 5, 0.11);
  EXPECT_EQ(earliest_worth(host, 96ms, 200ms), kForever);
}

TEST(TriggerTest, WhatIsBeyondTheHorizonDoesNotCount) {
  const stats::Curve host(two_modes(1000, 0.1, 5ms, 100ms));
  EXPECT_EQ(earliest_worth(host, 60ms, 50ms), kForever);
  EXPECT_NEAR(to_ms(earliest_worth(host, 40ms, 50ms)), 5, 0.11);
}

TEST(TriggerTest, AHostOfWhichNothingIsKnownLastsToTheHorizon) {
  EXPECT_EQ(earliest_worth(stats::Curve(), 90ms, 100ms), 0ms);
  EXPECT_EQ(earliest_worth(stats::Curve(), 110ms, 100ms), kForever);
}

TEST(TriggerTest, IsTheFirstTimeAtWhichWhatRemainsIsEnough) {
  constexpr std::uint64_t kSeed = 20250305;
  std::cout << "seed " << kSeed << '\n';
  Rng rng(kSeed);
  for (int run = 0; run < 50; ++run) {
    stats::Survival samples;
    const double sd = rng.uniform(2, 60);
    for (int i = 0; i < 500; ++i) samples.record(from_ms(rng.lognormal(10, sd)));
    const stats::Curve host(samples);
    const Duration horizon = from_ms(rng.uniform(20, 400));
    const Duration worth = from_ms(rng.uniform(2, 100));
    const Duration at = earliest_worth(host, worth, horizon);
    // A second opinion, at every bucket's beginning; a hair's breadth is left to rounding.
    for (std::size_t i = 1; i < stats::kBucketCount && stats::bucket_low(i) < horizon; ++i) {
      const Duration t = stats::bucket_low(i);
      const double rest = to_ms(host.remaining(t, horizon));
      if (t < at) {
        EXPECT_LT(rest, 1.02 * to_ms(worth) + 0.1) << run << ' ' << to_ms(t);
      } else if (t == at) {
        EXPECT_GT(rest, 0.98 * to_ms(worth) - 0.1) << run << ' ' << to_ms(t);
      }
    }
  }
}

TEST(TriggerTest, AFatterTailIsOneBeyondDoubtAndByHalfAsMuchAgain) {
  const stats::Curve pool(two_modes(10'000, 0.1, 5ms, 100ms));
  EXPECT_FALSE(fatter_tail(two_modes(10'000, 0.1, 5ms, 100ms), pool, 10ms));
  EXPECT_FALSE(fatter_tail(two_modes(10'000, 0.14, 5ms, 100ms), pool, 10ms)) << "not by half";
  EXPECT_TRUE(fatter_tail(two_modes(10'000, 0.18, 5ms, 100ms), pool, 10ms));
  EXPECT_FALSE(fatter_tail(two_modes(100, 0.18, 5ms, 100ms), pool, 10ms)) << "not beyond doubt";
  EXPECT_FALSE(fatter_tail(two_modes(49, 1, 5ms, 100ms), pool, 10ms)) << "too few";
  EXPECT_TRUE(fatter_tail(two_modes(50, 1, 5ms, 100ms), pool, 10ms));
}

TEST(TriggerTest, AHostLikeTheOthersIsHedgedAsThePlanSays) {
  const stats::Survival host = two_modes(1000, 0.1, 5ms, 100ms);
  EXPECT_EQ(per_host_delay(host, stats::Curve(host), 10ms), std::nullopt);
  EXPECT_EQ(per_host_delay(stats::Survival(), stats::Curve(host), 10ms), std::nullopt);
}

TEST(TriggerTest, AHostThatIsSlowAllTheTimeIsHedgedAtOnce) {
  stats::Survival pool = two_modes(3000, 0.05, 5ms, 40ms);
  const stats::Survival slow = two_modes(300, 0.05, 50ms, 400ms);
  pool.merge(slow);
  EXPECT_EQ(per_host_delay(slow, stats::Curve(pool), 10ms), Duration{});
}

// 60 % take a second, the others 5 ms; elsewhere what outlasts the delay takes 700 ms more.
TEST(TriggerTest, AHostThatIsSlowAtTimesIsHedgedWhenItsUsualTimeHasPassed) {
  const stats::Curve pool(two_modes(3000, 0.05, 5ms, 711ms));
  const std::optional<Duration> delay =
      per_host_delay(two_modes(300, 0.6, 5ms, 1000ms), pool, 10ms);
  ASSERT_TRUE(delay.has_value());
  EXPECT_GT(*delay, 4ms);
  EXPECT_LT(*delay, 6ms);
}

TEST(TriggerTest, AHostWhoseRestIsShortIsNeverHedged) {
  const stats::Curve pool(two_modes(3000, 0.05, 5ms, 100ms));
  EXPECT_EQ(per_host_delay(two_modes(300, 0.5, 5ms, 14ms), pool, 10ms), kForever);
}

}  // namespace
}  // namespace tailward::hedge
