#include "hedge/proof/tail_dependence.h"

#include <gtest/gtest.h>

#include <iostream>

#include "base/rng.h"

namespace tailward::hedge {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kSeed = 20250304;

// First attempts: exponential, with a mean of 10 ms. Their slowest tenth takes more than 23 ms.
Duration draw(Rng& rng) { return from_ms(rng.exponential(10)); }

stats::Curve first_attempts(Rng& rng) {
  stats::Survival samples;
  for (int i = 0; i < 20'000; ++i) samples.record(draw(rng));
  return stats::Curve(samples);
}

stats::Curve constant(Duration latency) {
  stats::Survival samples;
  for (int i = 0; i < 1000; ++i) samples.record(latency);
  return stats::Curve(samples);
}

TEST(TailDependenceTest, WithoutPairsNothingIsKnown) {
  Rng rng(kSeed);
  const TailDependence dependence;
  const DependenceEstimate tail = dependence.ratio(first_attempts(rng));
  EXPECT_EQ(tail.pairs, 0);
  EXPECT_EQ(tail.ratio, 1);
  EXPECT_EQ(dependence.ratio(stats::Curve()).pairs, 0) << "nor without first attempts";
}

TEST(TailDependenceTest, IndependentPairsHaveARatioOfOne) {
  std::cout << "seed " << kSeed << '\n';
  Rng rng(kSeed);
  TailDependence dependence;
  for (int i = 0; i < 2000; ++i) dependence.record(draw(rng), false);
  const DependenceEstimate tail = dependence.ratio(first_attempts(rng));
  EXPECT_NEAR(to_ms(tail.slow), 23, 1);
  EXPECT_NEAR(tail.ratio, 1, 0.25);
  EXPECT_LE(tail.low, 1);
  EXPECT_GE(tail.high, 1);
  EXPECT_EQ(tail.pairs, 2000);
}

// The same query: the second takes what the first does, and only slow ones get a second.
TEST(TailDependenceTest, PairsThatWaitForTheSameThingHaveAHighOne) {
  std::cout << "seed " << kSeed << '\n';
  Rng rng(kSeed);
  TailDependence dependence;
  for (int i = 0; i < 20'000; ++i) {
    const Duration latency = draw(rng);
    if (latency > 20ms) dependence.record(latency, false);
  }
  // P(> 23 ms | > 20 ms) = e^-0.3 = 0.74, of 0.1.
  const DependenceEstimate tail = dependence.ratio(first_attempts(rng));
  EXPECT_NEAR(tail.ratio, 7.4, 0.4);
  EXPECT_GT(tail.low, 6.5);
  EXPECT_LT(tail.low, tail.ratio);
  EXPECT_GT(tail.high, tail.ratio);
}

TEST(TailDependenceTest, TheIntervalIsWilsonsOfThatShare) {
  stats::Survival even;
  for (int i = 1; i <= 1000; ++i) even.record(100ms * i / 1000);
  TailDependence dependence;
  for (int i = 0; i < 20; ++i) dependence.record(i < 5 ? 99ms : 10ms, false);
  const DependenceEstimate tail = dependence.ratio(stats::Curve(even));
  // 5 of 20, of 0.1: Wilson's 0.112 to 0.469.
  EXPECT_NEAR(tail.ratio, 2.5, 0.01);
  EXPECT_NEAR(tail.low, 1.12, 0.01);
  EXPECT_NEAR(tail.high, 4.69, 0.01);
}

// Losers that were cancelled early would otherwise look fast.
TEST(TailDependenceTest, CancelledSecondAttemptsDoNotCountAsFast) {
  std::cout << "seed " << kSeed << '\n';
  Rng rng(kSeed);
  TailDependence dependence;
  for (int i = 0; i < 4000; ++i) {
    const Duration second = draw(rng);
    const Duration rival = draw(rng);
    dependence.record(std::min(second, rival), rival < second);
  }
  EXPECT_NEAR(dependence.ratio(first_attempts(rng)).ratio, 1, 0.3);
}

TEST(TailDependenceTest, TheCurveOfSecondAttemptsIsShrunkTowardsFreshOnes) {
  const stats::Curve fresh = constant(10ms);
  TailDependence dependence;
  EXPECT_EQ(dependence.second(fresh).above(50ms), 0);
  dependence.record(90ms, false);
  EXPECT_NEAR(dependence.second(fresh).above(50ms), 1.0 / 101, 1e-6);
  for (int i = 1; i < 100; ++i) dependence.record(90ms, false);
  EXPECT_NEAR(dependence.second(fresh).above(50ms), 0.5, 1e-6);
  for (int i = 100; i < 300; ++i) dependence.record(90ms, false);
  EXPECT_NEAR(dependence.second(fresh).above(50ms), 0.75, 1e-6);
  EXPECT_NEAR(dependence.second(fresh).above(5ms), 1, 1e-6);
  EXPECT_NEAR(dependence.second(fresh).above(95ms), 0, 1e-6);
}

TEST(TailDependenceTest, OldPairsFade) {
  TailDependence dependence;
  for (int i = 0; i < 100; ++i) dependence.record(90ms, false);
  dependence.decay(0.5);
  EXPECT_EQ(dependence.pairs().weight(), 50);
  EXPECT_NEAR(dependence.second(constant(10ms)).above(50ms), 1.0 / 3, 1e-6);
  dependence.decay(0);
  EXPECT_EQ(dependence.second(constant(10ms)).above(50ms), 0);
}

}  // namespace
}  // namespace tailward::hedge
