#include "sync/contention_profile.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "base/rng.h"

namespace tailward::sync {
namespace {

Stack stack_of(std::uintptr_t address) {
  Stack stack;
  stack.frames[0] = address;
  stack.depth = 1;
  return stack;
}

void observe(ContentionProfile& profile, ContentionView view, std::uintptr_t address,
             Duration wait) {
  if (StackRow* row = profile.sample(view, stack_of(address))) row->add(wait);
}

TEST(ContentionProfileTest, KeepsEveryStackWhenOneInOneIsAskedFor) {
  ContentionProfile profile({.sample_every = 1});
  observe(profile, ContentionView::kHolders, 1, Duration{5});
  observe(profile, ContentionView::kHolders, 1, Duration{6});
  observe(profile, ContentionView::kWaiters, 2, Duration{50});
  const ContentionSnapshot snapshot = profile.snapshot();
  ASSERT_EQ(snapshot.holders.rows.size(), 1U);
  EXPECT_EQ(snapshot.holders.rows[0].contentions, 2U);
  EXPECT_EQ(snapshot.holders.rows[0].wait, Duration{11});
  ASSERT_EQ(snapshot.waiters.rows.size(), 1U);
  EXPECT_EQ(snapshot.rows(ContentionView::kWaiters).rows[0].stack, std::vector<std::uintptr_t>{2});
}

TEST(ContentionProfileTest, KeepsNoStackWhenNoneIsAskedFor) {
  ContentionProfile profile({.sample_every = 0});
  EXPECT_EQ(profile.sample(ContentionView::kHolders, stack_of(1)), nullptr);
  EXPECT_TRUE(profile.snapshot().holders.rows.empty());
}

TEST(ContentionProfileTest, PutsTheLongestWaitFirst) {
  ContentionProfile profile({.sample_every = 1});
  observe(profile, ContentionView::kHolders, 1, Duration{5});
  observe(profile, ContentionView::kHolders, 2, Duration{9});
  observe(profile, ContentionView::kHolders, 3, Duration{7});
  const auto rows = profile.snapshot().holders.rows;
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].stack[0], 2U);
  EXPECT_EQ(rows[2].stack[0], 1U);
}

// The sum over samples, weighted, has the true sum as its mean and (n − 1) Σ x² as its variance.
TEST(ContentionProfileTest, WeighsSamplesSoThatSumsAreUnbiased) {
  constexpr int kEvents = 60'000;
  constexpr std::uint32_t kEvery = 10;
  constexpr double kSigmas = 4;
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    SCOPED_TRACE(seed);
    ContentionProfile profile({.sample_every = kEvery, .seed = seed});
    Rng rng(seed);
    std::array<double, 3> waits{};
    std::array<double, 3> squares{};
    std::array<double, 3> counts{};
    for (int i = 0; i < kEvents; ++i) {
      const std::size_t who = i % 2 == 0 ? 0 : rng.chance(0.1) ? 2 : 1;
      const double wait = std::floor(rng.exponential(1e5 * static_cast<double>(who + 1)));
      observe(profile, ContentionView::kHolders, who, Duration{static_cast<std::int64_t>(wait)});
      waits[who] += wait;
      squares[who] += wait * wait;
      counts[who] += 1;
    }
    const auto rows = profile.snapshot().holders.rows;
    ASSERT_EQ(rows.size(), 3U);
    for (const ContentionRow& row : rows) {
      const std::size_t who = row.stack[0];
      EXPECT_NEAR(static_cast<double>(row.wait.count()), waits[who],
                  kSigmas * std::sqrt((kEvery - 1) * squares[who]));
      EXPECT_NEAR(static_cast<double>(row.contentions), counts[who],
                  kSigmas * std::sqrt((kEvery - 1) * counts[who]));
      EXPECT_EQ(row.contentions, row.samples * kEvery);
    }
  }
}

TEST(ContentionProfileTest, DrawsTheSameSamplesFromTheSameSeed) {
  const auto drawn = [](std::uint64_t seed) {
    ContentionProfile profile({.sample_every = 4, .seed = seed});
    std::vector<bool> result;
    for (int i = 0; i < 200; ++i) {
      result.push_back(profile.sample(ContentionView::kWaiters, stack_of(1)) != nullptr);
    }
    return result;
  };
  EXPECT_EQ(drawn(5), drawn(5));
  EXPECT_NE(drawn(5), drawn(6));
}

TEST(ContentionProfileTest, IsBoundedAndCountsWhatIsLost) {
  constexpr std::uintptr_t kStacks = 10'000;
  ContentionProfile profile({.sample_every = 1, .stacks_max = 100});
  for (std::uintptr_t i = 0; i < kStacks; ++i) {
    observe(profile, ContentionView::kHolders, i, Duration{2});
  }
  const ContentionRows rows = profile.snapshot().holders;
  EXPECT_EQ(rows.rows.size(), 100U);
  EXPECT_EQ(rows.lost.contentions, 9'900U);
  EXPECT_EQ(rows.lost.wait, Duration{19'800});
}

TEST(ContentionCountersTest, AddsUpWaitsAndHolds) {
  ContentionCounters counters;
  counters.wait_ended(Duration{10}, Duration{1});
  counters.wait_ended(Duration{30}, Duration{2});
  counters.wait_ended(Duration{20}, Duration{3});
  counters.hold_ended(Duration{7}, Duration{54});
  const ContentionTotals totals = counters.totals();
  EXPECT_EQ(totals.contentions, 3U);
  EXPECT_EQ(totals.wait, Duration{60});
  EXPECT_EQ(totals.wait_max, Duration{30});
  EXPECT_EQ(totals.handover, Duration{6});
  EXPECT_EQ(totals.contended_holds, 1U);
  EXPECT_EQ(totals.hold, Duration{7});
  EXPECT_EQ(totals.hold_max, Duration{7});
  EXPECT_EQ(totals.charged, Duration{54});
  EXPECT_EQ(counters.wait(), Duration{60});
}

}  // namespace
}  // namespace tailward::sync
