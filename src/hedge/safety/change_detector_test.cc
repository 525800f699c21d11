#include "hedge/safety/change_detector.h"

#include <gtest/gtest.h>

#include <cmath>
#include <iostream>

#include "base/rng.h"

namespace tailward::hedge {
namespace {

// A longer sample adds ln 6 = 1.792 and a shorter one takes ln 2.25 = 0.811.
const ChangeScale kScale(0.1, 0.6, 16);

// How many such samples in a row it takes until the detector turns; 0: it does not in 10,000.
int samples_to_turn(ChangeDetector& detector, bool longer, const ChangeScale& scale = kScale) {
  const bool before = detector.shifted();
  for (int n = 1; n <= 10'000; ++n) {
    detector.sample(longer, scale);
    if (detector.shifted() != before) return n;
  }
  return 0;
}

TEST(ChangeDetectorTest, SaysSoAfterAsManyLongSamplesAsTheThresholdTakes) {
  ChangeDetector detector;
  EXPECT_FALSE(detector.shifted());
  EXPECT_EQ(samples_to_turn(detector, true), 9);  // 9 × 1.792 ≥ 16
}

TEST(ChangeDetectorTest, ComesBackAfterAsManyShortSamplesAsHalfTheThresholdTakes) {
  ChangeDetector detector;
  (void)samples_to_turn(detector, true);
  EXPECT_EQ(samples_to_turn(detector, false), 10);  // 20 × 0.811 ≥ 16
  EXPECT_EQ(samples_to_turn(detector, true), 9) << "and once more";
}

TEST(ChangeDetectorTest, WhatSpeaksForItsStateIsNotSavedUp) {
  ChangeDetector detector;
  for (int i = 0; i < 1000; ++i) detector.sample(false, kScale);
  EXPECT_EQ(samples_to_turn(detector, true), 9);
  for (int i = 0; i < 1000; ++i) detector.sample(true, kScale);
  EXPECT_EQ(samples_to_turn(detector, false), 10);
}

TEST(ChangeDetectorTest, AShortSampleTakesBackWhatItSays) {
  ChangeDetector detector;
  for (int i = 0; i < 5; ++i) detector.sample(true, kScale);
  for (int i = 0; i < 3; ++i) detector.sample(false, kScale);
  // 5 × 1.792 − 3 × 0.811 = 6.53; six more make 17.3.
  EXPECT_EQ(samples_to_turn(detector, true), 6);
}

TEST(ChangeDetectorTest, WithoutAScaleItSaysNothing) {
  ChangeDetector detector;
  EXPECT_EQ(samples_to_turn(detector, true, ChangeScale()), 0);
  EXPECT_EQ(samples_to_turn(detector, true), 9) << "nor had it counted";
}

TEST(ChangeDetectorTest, AResetForgetsStateAndSum) {
  ChangeDetector detector;
  (void)samples_to_turn(detector, true);
  for (int i = 0; i < 19; ++i) detector.sample(false, kScale);
  detector.reset();
  EXPECT_FALSE(detector.shifted());
  EXPECT_EQ(samples_to_turn(detector, true), 9);
}

// The mean number of samples until it turns, of which that share is longer.
double mean_run(double share, bool from_shifted, double threshold, Rng& rng) {
  const ChangeScale scale(0.1, 0.6, threshold);
  constexpr int kRuns = 2000;
  double samples = 0;
  for (int run = 0; run < kRuns; ++run) {
    ChangeDetector detector;
    if (from_shifted) (void)samples_to_turn(detector, true, scale);
    while (detector.shifted() == from_shifted) {
      detector.sample(rng.chance(share), scale);
      ++samples;
    }
  }
  return samples / kRuns;
}

TEST(ChangeDetectorTest, FalseAlarmsAreAsRareAsTheThresholdPromises) {
  constexpr std::uint64_t kSeed = 20250301;
  std::cout << "seed " << kSeed << '\n';
  Rng rng(kSeed);
  for (const double threshold : {3.0, 5.0}) {
    const double healthy = mean_run(0.1, false, threshold, rng);
    const double sick = mean_run(0.6, true, threshold, rng);
    std::cout << "threshold " << threshold << ": " << healthy << " and " << sick << " samples\n";
    EXPECT_GE(healthy, std::exp(threshold));
    EXPECT_GE(sick, std::exp(threshold / 2));
    // No more deaf than it has to be: the bound is exact but for what a sample overshoots it by.
    EXPECT_LE(healthy, 30 * std::exp(threshold));
  }
}

TEST(ChangeDetectorTest, AShiftIsFoundWithinTwoDozenSamples) {
  constexpr std::uint64_t kSeed = 20250302;
  std::cout << "seed " << kSeed << '\n';
  Rng rng(kSeed);
  // The threshold ÷ the divergence of the two laws, 0.751 a sample, and an overshoot.
  EXPECT_NEAR(mean_run(0.6, false, 16, rng), 16 / 0.751, 3);
  EXPECT_LT(mean_run(0.9, false, 16, rng), 12);
}

TEST(ChangeDetectorDeathTest, RefusesAScaleOnWhichNothingCanBeTold) {
  EXPECT_DEATH(ChangeScale(0, 0.6, 16), "bug");
  EXPECT_DEATH(ChangeScale(0.6, 0.6, 16), "bug");
  EXPECT_DEATH(ChangeScale(0.1, 1, 16), "bug");
  EXPECT_DEATH(ChangeScale(0.1, 0.6, 0), "bug");
}

}  // namespace
}  // namespace tailward::hedge
