#include "hedge/safety/baseline.h"

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

TEST(BaselineTest, RisesOnlyOnWhatWasMeasuredUnhedged) {
  Baseline baseline = hedge::baseline();
  baseline.update(even(2000, 100ms), 100ms, true);
  const stats::Survival slower = even(2000, 104ms);
  for (int minute = 0; minute < 100; ++minute) baseline.update(slower, 60s, false);
  expect_near(baseline.delay(), 90ms);
  EXPECT_NEAR(to_ms(baseline.mean()), 50, 0.5);
  for (int minute = 0; minute < 100; ++minute) baseline.update(slower, 60s, true);
  expect_near(baseline.delay(), 93600us);
  EXPECT_NEAR(to_ms(baseline.mean()), 52, 0.5);
}

TEST(BaselineTest, FallsOnWhatWasMeasuredHedgedToo) {
  Baseline baseline = hedge::baseline();
  baseline.update(even(2000, 100ms), 100ms, true);
  for (int minute = 0; minute < 10; ++minute) baseline.update(even(2000, 80ms), 60s, false);
  expect_near(baseline.delay(), 72ms);
  expect_near(baseline.median(), 40ms);
}

// A ramp of which every step looks healthy: 3 % in ten minutes, for the hours that are given.
void ramp(Baseline& baseline, double& longest_ms, int hours) {
  for (int step = 0; step < 6 * hours; ++step) {
    longest_ms = std::min(longest_ms * 1.03, 1.05 * 100 / 90 * to_ms(*baseline.delay()));
    const stats::Survival samples = even(2000, from_ms(longest_ms));
    for (int minute = 0; minute < 10; ++minute) baseline.update(samples, 60s, true);
  }
}

TEST(BaselineTest, RisesByNoMoreThanAQuarterInADay) {
  Baseline baseline = hedge::baseline();
  double longest_ms = 100;
  baseline.update(even(2000, 100ms), 100ms, true);
  ramp(baseline, longest_ms, 23);
  expect_near(baseline.delay(), 112500us);
  expect_near(baseline.median(), 62500us);
  EXPECT_LE(*baseline.delay(), from_ms(1.25 * 91.1));
  ramp(baseline, longest_ms, 23);
  EXPECT_GT(to_ms(*baseline.delay()), 1.3 * 90) << "on the next day it may rise again";
  EXPECT_LT(to_ms(*baseline.delay()), 1.25 * 1.25 * 91.1);
}

TEST(BaselineTest, TheQuarterIsThatOfTheLowestValueOfTheDay) {
  Baseline baseline = hedge::baseline();
  double longest_ms = 80;
  baseline.update(even(2000, 100ms), 100ms, true);
  for (int minute = 0; minute < 60; ++minute) baseline.update(even(2000, 80ms), 60s, true);
  expect_near(baseline.delay(), 72ms);
  ramp(baseline, longest_ms, 22);
  expect_near(baseline.delay(), 90ms);
}

TEST(BaselineTest, TheLimitIsTwiceTheMedianOrTheUpperQuartile) {
  Baseline narrow = hedge::baseline();
  narrow.update(even(2000, 100ms), 100ms, true);
  EXPECT_NEAR(to_ms(narrow.limit()), 100, 1.5);
  EXPECT_EQ(narrow.above_limit(), 0.02) << "nothing is longer; still, something may be";
  // 60 % take 10 ms, the others 100 ms.
  stats::Survival samples;
  for (int i = 0; i < 2000; ++i) samples.record(i % 10 < 6 ? 10ms : 100ms);
  Baseline wide = hedge::baseline();
  wide.update(samples, 100ms, true);
  EXPECT_NEAR(to_ms(wide.limit()), 100, 1);
  EXPECT_NEAR(to_ms(wide.mean()), 46, 0.5);
  // 85 % take 10 ms, the others 30 ms.
  samples.clear();
  for (int i = 0; i < 2000; ++i) samples.record(i % 20 < 17 ? 10ms : 30ms);
  Baseline tail = hedge::baseline();
  tail.update(samples, 100ms, true);
  EXPECT_NEAR(to_ms(tail.limit()), 20, 0.2);
  EXPECT_NEAR(tail.above_limit(), 0.15, 0.001);
}

TEST(BaselineTest, WhileManyAreUnfinishedNothingIsLearnedFromThoseThatAreNot) {
  Baseline baseline = hedge::baseline();
  baseline.update(even(300, 100ms), 100ms, true, 16);
  EXPECT_FALSE(baseline.learned());
  baseline.update(even(300, 100ms), 100ms, true, 15);
  EXPECT_TRUE(baseline.learned());
}

TEST(BaselineTest, ForgottenItIsLearnedAnew) {
  Baseline baseline = hedge::baseline();
  baseline.update(even(2000, 100ms), 100ms, true);
  baseline.forget();
  EXPECT_FALSE(baseline.learned());
  EXPECT_EQ(baseline.trigger_rate(), 0);
  baseline.update(even(200, 500ms), 100ms, true);
  expect_near(baseline.delay(), 450ms);
}

}  // namespace
}  // namespace tailward::hedge
