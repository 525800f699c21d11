#include "stats/window.h"

#include <gtest/gtest.h>

#include <deque>
#include <iostream>

#include "base/rng.h"

namespace tailward::stats {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr TimePoint kStart{seconds(1000)};

TEST(WindowedShareTest, IsZeroBeforeAnythingWasTried) {
  WindowedShare share(seconds(10));
  EXPECT_EQ(share.totals(kStart).trials, 0U);
  EXPECT_EQ(share.totals(kStart).share(), 0);
}

TEST(WindowedShareTest, CountsSuccessesAndTrials) {
  WindowedShare share(seconds(10));
  share.record(kStart, true);
  share.record(kStart, false, 3);
  EXPECT_EQ(share.totals(kStart).successes, 1U);
  EXPECT_EQ(share.totals(kStart).trials, 4U);
  EXPECT_EQ(share.totals(kStart).share(), 0.25);
}

TEST(WindowedShareTest, ForgetsASliceWhenTheTenthAfterItBegins) {
  WindowedShare share(seconds(10));
  share.record(kStart + milliseconds(999), true);  // the first of ten slices of a second
  EXPECT_EQ(share.totals(kStart + seconds(10) - nanoseconds(1)).trials, 1U);
  EXPECT_EQ(share.totals(kStart + seconds(10)).trials, 0U);
}

TEST(WindowedShareTest, ForgetsSliceBySlice) {
  WindowedShare share(seconds(10));
  for (int i = 0; i < 10; ++i) share.record(kStart + seconds(i), i % 2 == 0);
  EXPECT_EQ(share.totals(kStart + seconds(9)).trials, 10U);
  for (int i = 0; i < 10; ++i) {
    const WindowedShare::Totals totals = share.totals(kStart + seconds(10 + i));
    EXPECT_EQ(totals.trials, static_cast<std::uint64_t>(9 - i));
    EXPECT_EQ(totals.successes, static_cast<std::uint64_t>((9 - i) / 2));
  }
}

TEST(WindowedShareTest, AJumpFarAheadEmptiesIt) {
  WindowedShare share(seconds(10));
  share.record(kStart, true, 50);
  share.record(kStart + hours(1), false);
  EXPECT_EQ(share.totals(kStart + hours(1)).trials, 1U);
  EXPECT_EQ(share.totals(kStart + hours(1)).successes, 0U);
  EXPECT_EQ(share.totals(kNever).trials, 0U);
}

TEST(WindowedShareTest, AClockThatGoesBackStandsStill) {
  WindowedShare share(seconds(10));
  share.record(kStart, true);
  share.record(kStart - hours(1), true);
  EXPECT_EQ(share.totals(kStart - hours(1)).trials, 2U);
  EXPECT_EQ(share.totals(kStart + seconds(9)).trials, 2U);
  EXPECT_EQ(share.totals(kStart + seconds(10)).trials, 0U);
}

TEST(WindowedShareTest, TakesTimesBeforeTheClocksZero) {
  WindowedShare share(seconds(10));
  const TimePoint before{seconds(-5)};
  share.record(before, true);
  EXPECT_EQ(share.totals(before + seconds(10) - nanoseconds(1)).trials, 1U);
  EXPECT_EQ(share.totals(before + seconds(10)).trials, 0U);
  WindowedShare wide(seconds(10));
  wide.record(TimePoint::min(), true);
  EXPECT_EQ(wide.totals(TimePoint::max()).trials, 0U);
}

TEST(WindowedShareTest, ClearForgetsEverything) {
  WindowedShare share(seconds(10));
  share.record(kStart, true);
  share.clear();
  EXPECT_EQ(share.totals(kStart).trials, 0U);
  share.record(kStart, false);
  EXPECT_EQ(share.totals(kStart + seconds(5)).trials, 1U);
}

TEST(WindowedShareTest, AlwaysCoversAtLeastNineTenthsAndAtMostTheWholeWindow) {
  constexpr std::uint64_t kSeed = 5;
  std::cout << "seed " << kSeed << '\n';
  Rng rng(kSeed);
  WindowedShare share(seconds(1));
  std::deque<TimePoint> events;
  TimePoint now = kStart;
  for (int i = 0; i < 20000; ++i) {
    now += Duration{static_cast<std::int64_t>(rng.exponential(rng.chance(0.01) ? 3e8 : 3e6))};
    share.record(now, true);
    events.push_back(now);
    const auto within = [&](Duration span) {
      std::uint64_t count = 0;
      for (auto at = events.rbegin(); at != events.rend() && now - *at < span; ++at) ++count;
      return count;
    };
    const std::uint64_t trials = share.totals(now).trials;
    ASSERT_GE(trials, within(milliseconds(900)));
    ASSERT_LE(trials, within(milliseconds(1000)));
    if (events.size() > 2000) events.pop_front();
  }
}

TEST(WindowedShareTest, AWindowShorterThanItsSlicesStillWorks) {
  WindowedShare share(nanoseconds(3));
  share.record(kStart, true);
  EXPECT_EQ(share.totals(kStart).trials, 1U);
  EXPECT_EQ(share.totals(kStart + nanoseconds(10)).trials, 0U);
}

TEST(WindowedHistogramTest, CoversTheHalfUnderWayAndTheOneBefore) {
  WindowedHistogram window(seconds(10));
  window.record(kStart, milliseconds(1));                                // half 200
  window.record(kStart + seconds(5) - nanoseconds(1), milliseconds(2));  // still half 200
  window.record(kStart + seconds(5), milliseconds(3));                   // half 201
  EXPECT_EQ(window.count(kStart + seconds(10) - nanoseconds(1)), 3U);
  EXPECT_EQ(window.count(kStart + seconds(10)), 1U);
  EXPECT_EQ(window.merged(kStart + seconds(10)).max(), milliseconds(3));
  EXPECT_EQ(window.count(kStart + seconds(15) - nanoseconds(1)), 1U);
  EXPECT_EQ(window.count(kStart + seconds(15)), 0U);
}

TEST(WindowedHistogramTest, MergesBothHalves) {
  WindowedHistogram window(seconds(10));
  window.record(kStart, milliseconds(1), 60);
  window.record(kStart + seconds(5), milliseconds(9), 40);
  const Histogram both = window.merged(kStart + seconds(6));
  EXPECT_EQ(both.count(), 100U);
  EXPECT_EQ(both.min(), milliseconds(1));
  EXPECT_EQ(both.max(), milliseconds(9));
  EXPECT_EQ(both.count_above(milliseconds(1)), 40U);
}

TEST(WindowedHistogramTest, AJumpOverTwoHalvesEmptiesIt) {
  WindowedHistogram window(seconds(10));
  window.record(kStart, milliseconds(1));
  window.record(kStart + seconds(5), milliseconds(1));
  window.record(kStart + seconds(15), milliseconds(2));
  EXPECT_EQ(window.count(kStart + seconds(15)), 1U);
  EXPECT_EQ(window.count(kNever), 0U);
}

TEST(WindowedHistogramTest, AClockThatGoesBackStandsStill) {
  WindowedHistogram window(seconds(10));
  window.record(kStart + seconds(5), milliseconds(1));
  window.record(kStart, milliseconds(2));
  EXPECT_EQ(window.count(kStart), 2U);
  EXPECT_EQ(window.count(kStart + seconds(14)), 2U);
  EXPECT_EQ(window.count(kStart + seconds(15)), 0U);
}

TEST(WindowedHistogramTest, ClearForgetsEverything) {
  WindowedHistogram window(seconds(10));
  window.record(kStart, milliseconds(1));
  window.record(kStart + seconds(5), milliseconds(1));
  window.clear();
  EXPECT_EQ(window.count(kStart + seconds(5)), 0U);
}

TEST(WindowDeathTest, RefusesAnEmptyWindow) {
  EXPECT_DEATH(WindowedShare(Duration{0}), "bug");
  EXPECT_DEATH(WindowedHistogram(Duration{-1}), "bug");
}

}  // namespace
}  // namespace tailward::stats
