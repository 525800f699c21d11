#include "hedge/baseline.h"

#include <gtest/gtest.h>

namespace tailward::hedge {
namespace {

using namespace std::chrono_literals;

// n samples, evenly from 0 to `longest`.
stats::Survival even(int n, Duration longest) {
  stats::Survival samples;
  for (int i = 1; i <= n; ++i) samples.record(longest * i / n);
  return samples;
}

Baseline baseline() { return Baseline(Baseline::Config{.quantile = 0.9}); }

void expect_near(std::optional<Duration> value, Duration expected) {
  ASSERT_TRUE(value.has_value());
  EXPECT_NEAR(to_ms(*value), to_ms(expected), 0.015 * to_ms(expected));
}

TEST(BaselineTest, KnowsNothingFromTooFewSamples) {
  Baseline baseline = hedge::baseline();
  baseline.update(even(199, 100ms), 100ms, true);
  EXPECT_FALSE(baseline.learned());
  EXPECT_EQ(baseline.trigger_rate(), 0);
  EXPECT_FALSE(baseline.median().has_value());
}

TEST(BaselineTest, LearnsDelayAndMedianOfTheHealthyService) {
  Baseline baseline = hedge::baseline();
  baseline.update(even(2000, 100ms), 100ms, true);
  ASSERT_TRUE(baseline.learned());
  expect_near(baseline.delay(), 90ms);
  expect_near(baseline.median(), 50ms);
  EXPECT_NEAR(baseline.trigger_rate(), 0.1, 0.02);
}

TEST(BaselineTest, LearnsNothingFromATailThatIsAllCensored) {
  stats::Survival samples = even(300, 100ms);
  for (int i = 0; i < 100; ++i) samples.record_censored(200ms);
  Baseline baseline = hedge::baseline();
  baseline.update(samples, 100ms, true);
  EXPECT_FALSE(baseline.learned());
}

TEST(BaselineTest, IsLearnedAnewWhileItsSamplesAreFew) {
  Baseline baseline = hedge::baseline();
  baseline.update(even(200, 92ms), 100ms, true);
  expect_near(baseline.delay(), 82800us);
  baseline.update(even(399, 100ms), 1us, true);
  expect_near(baseline.delay(), 82800us);
  baseline.update(even(400, 100ms), 1us, true);
  expect_near(baseline.delay(), 90ms);
  expect_near(baseline.median(), 50ms);
}

TEST(BaselineTest, IsNotLearnedAnewFromFewerSamplesThanBefore) {
  Baseline baseline = hedge::baseline();
  baseline.update(even(600, 100ms), 100ms, true);
  baseline.update(even(500, 300ms), 100ms, true);
  expect_near(baseline.delay(), 90ms);
}

TEST(BaselineTest, ASickServiceDoesNotMoveIt) {
  Baseline baseline = hedge::baseline();
  baseline.update(even(2000, 100ms), 100ms, true);
  for (int minute = 0; minute < 1000; ++minute) baseline.update(even(3000, 300ms), 60s, true);
  expect_near(baseline.delay(), 90ms);
  expect_near(baseline.median(), 50ms);
  EXPECT_NEAR(baseline.trigger_rate(), 0.7, 0.02);
}

TEST(BaselineTest, FollowsASlightSlowDownSlowly) {
  Baseline baseline = hedge::baseline();
  baseline.update(even(2000, 100ms), 100ms, true);
  const stats::Survival slower = even(2000, 104ms);
  baseline.update(slower, 1s, true);
  expect_near(baseline.delay(), 90ms);
  for (int minute = 0; minute < 100; ++minute) baseline.update(slower, 60s, true);
  expect_near(baseline.delay(), 93600us);
}

TEST(BaselineTest, FollowsASpeedUpWithinMinutes) {
  Baseline baseline = hedge::baseline();
  baseline.update(even(2000, 100ms), 100ms, true);
  baseline.update(even(2000, 50ms), 100ms, true);
  expect_near(baseline.delay(), 90ms);
  for (int second = 0; second < 600; ++second) baseline.update(even(2000, 50ms), 1s, true);
  expect_near(baseline.delay(), 45ms);
  expect_near(baseline.median(), 25ms);
}

// A service that slows down while its baseline is young must not get a slow baseline.
TEST(BaselineTest, ASlowDownWhileItIsLearnedIsNotLearned) {
  Baseline baseline = hedge::baseline();
  stats::Survival samples = even(300, 5ms);
  baseline.update(samples, 100ms, true);
  for (int i = 0; i < 3000; ++i) {
    samples.record(50ms);
    baseline.update(samples, 50ms, true);
  }
  expect_near(baseline.delay(), 4500us);
  EXPECT_GT(baseline.trigger_rate(), 0.9);
}

TEST(BaselineTest, TheRateGoesOnWhenTheSamplesGetFewAgain) {
  Baseline baseline = hedge::baseline();
  baseline.update(even(2000, 100ms), 100ms, true);
  baseline.update(even(50, 300ms), 100ms, true);
  EXPECT_NEAR(baseline.trigger_rate(), 0.7, 0.03);
}

}  // namespace
}  // namespace tailward::hedge
