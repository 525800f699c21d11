#include "hedge/safety/budget.h"

#include <gtest/gtest.h>

#include <array>

#include "base/rng.h"

namespace tailward::hedge {
namespace {

// No bound on what is in flight, to see the tokens alone.
BudgetConfig tokens(double share, double burst, double floor) {
  return {.share = share, .burst = burst, .floor = floor, .in_flight_floor = 1e9};
}

int hedges_until_refused(Budget& budget) {
  int hedges = 0;
  while (budget.try_hedge()) ++hedges;
  return hedges;
}

TEST(BudgetTest, TheFirstRequestOfAnIdleServiceMayBeHedged) {
  Budget budget(BudgetConfig{});
  budget.request_begins();
  EXPECT_TRUE(budget.try_hedge());
}

TEST(BudgetTest, StartsWithTheFloorAndRefusesBeyondIt) {
  Budget budget(tokens(0.05, 10, 3));
  EXPECT_EQ(hedges_until_refused(budget), 3);
  EXPECT_DOUBLE_EQ(budget.balance(), 0);
}

TEST(BudgetTest, TheFloorIsNeverAboveTheBurst) {
  Budget budget(tokens(0.05, 2, 5));
  EXPECT_EQ(hedges_until_refused(budget), 2);
}

TEST(BudgetTest, EveryRequestDepositsItsShareToTheLastHedge) {
  Budget budget(tokens(0.1, 10, 0));
  for (int i = 0; i < 9; ++i) budget.request_begins();
  EXPECT_FALSE(budget.try_hedge()) << "0.9 tokens";
  budget.request_begins();
  EXPECT_TRUE(budget.try_hedge()) << "ten tenths are one, exactly";
  EXPECT_FALSE(budget.try_hedge());
}

TEST(BudgetTest, ManyDepositsAddUpExactly) {
  Budget budget(tokens(0.05, 1e6, 0));
  for (int i = 0; i < 1'000'000; ++i) budget.request_begins();
  EXPECT_EQ(hedges_until_refused(budget), 50'000);
}

TEST(BudgetTest, SavesUpNoMoreThanTheBurst) {
  Budget budget(tokens(0.5, 4, 0));
  for (int i = 0; i < 1000; ++i) budget.request_begins();
  EXPECT_DOUBLE_EQ(budget.balance(), 4);
  EXPECT_EQ(hedges_until_refused(budget), 4);
}

TEST(BudgetTest, AShareOfZeroSpendsTheFloorAndNothingMore) {
  Budget budget(tokens(0, 5, 1));
  for (int i = 0; i < 1000; ++i) budget.request_begins();
  EXPECT_EQ(hedges_until_refused(budget), 1);
}

TEST(BudgetTest, HedgesInFlightAreBoundByThePrimariesInFlight) {
  Budget budget(
      {.share = 1, .burst = 1000, .floor = 1000, .in_flight_share = 0.2, .in_flight_floor = 3});
  EXPECT_EQ(hedges_until_refused(budget), 3) << "the small constant";
  for (int i = 0; i < 10; ++i) budget.request_begins();
  EXPECT_EQ(hedges_until_refused(budget), 2) << "a fifth of ten primaries more";
  EXPECT_EQ(budget.hedges_in_flight(), 5);
  for (int i = 0; i < 5; ++i) budget.primary_ends();
  EXPECT_FALSE(budget.try_hedge());
  budget.hedge_ends();
  EXPECT_FALSE(budget.try_hedge()) << "four in flight are what five primaries allow";
  budget.hedge_ends();
  EXPECT_TRUE(budget.try_hedge());
}

TEST(BudgetTest, ARefusalChangesNothing) {
  Budget budget({.share = 0, .burst = 10, .floor = 10, .in_flight_share = 0, .in_flight_floor = 1});
  EXPECT_TRUE(budget.try_hedge());
  EXPECT_FALSE(budget.try_hedge());
  EXPECT_DOUBLE_EQ(budget.balance(), 9);
  EXPECT_EQ(budget.hedges_in_flight(), 1);
}

TEST(BudgetTest, UnlimitedAppliesNeitherBound) {
  Budget budget({.share = 0, .burst = 0, .floor = 0, .in_flight_floor = 0, .unlimited = true});
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(budget.try_hedge());
  EXPECT_EQ(budget.hedges_in_flight(), 100);
}

TEST(BudgetTest, AHedgeNeedsTheConsentOfTheWholeChain) {
  Budget process(tokens(0, 2, 2));
  Budget pool(tokens(0, 5, 5), &process);
  Budget route(tokens(0, 9, 9), &pool);
  EXPECT_EQ(hedges_until_refused(route), 2);
  EXPECT_DOUBLE_EQ(route.balance(), 7) << "the refusal above took nothing from those below";
  EXPECT_DOUBLE_EQ(pool.balance(), 3);
  EXPECT_DOUBLE_EQ(process.balance(), 0);
}

TEST(BudgetTest, RoutesShareWhatTheirPoolMaySpend) {
  Budget pool(tokens(0.5, 100, 0));
  Budget one(tokens(1, 100, 0), &pool);
  Budget other(tokens(1, 100, 0), &pool);
  for (int i = 0; i < 4; ++i) one.request_begins();
  for (int i = 0; i < 4; ++i) other.request_begins();
  EXPECT_EQ(pool.primaries_in_flight(), 8);
  EXPECT_EQ(hedges_until_refused(one), 4) << "its own four, all the pool's";
  EXPECT_EQ(hedges_until_refused(other), 0);
  one.primary_ends();
  one.hedge_ends();
  EXPECT_EQ(pool.primaries_in_flight(), 7);
  EXPECT_EQ(pool.hedges_in_flight(), 3);
}

// hedges ≤ share × requests + burst for every budget of the chain, whatever is called when.
TEST(BudgetTest, TheBoundHoldsAtEveryInstantOfRandomHistories) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Rng rng(seed);
    const auto random_config = [&rng] {
      return BudgetConfig{.share = rng.uniform(0, 0.6),
                          .burst = rng.uniform(0, 15),
                          .floor = rng.uniform(0, 15),
                          .in_flight_share = rng.uniform(0, 2),
                          .in_flight_floor = rng.uniform(0, 20)};
    };
    Budget pool(random_config());
    std::array<Budget, 2> routes{Budget(random_config(), &pool), Budget(random_config(), &pool)};
    std::array<double, 2> requests{};
    std::array<double, 2> hedges{};
    for (int step = 0; step < 2000; ++step) {
      const std::size_t r = rng.below(2);
      const std::uint64_t what = rng.below(5);
      if (what == 0) {
        routes[r].request_begins();
        ++requests[r];
      } else if (what == 1 && routes[r].primaries_in_flight() > 0) {
        routes[r].primary_ends();
      } else if (what == 2 && routes[r].hedges_in_flight() > 0) {
        routes[r].hedge_ends();
      } else if (what >= 3) {
        const auto flying = static_cast<double>(routes[r].hedges_in_flight() + 1);
        const BudgetConfig& config = routes[r].config();
        if (routes[r].try_hedge()) {
          ++hedges[r];
          ASSERT_LE(flying,
                    config.in_flight_share * static_cast<double>(routes[r].primaries_in_flight()) +
                        config.in_flight_floor);
        }
      }
      for (std::size_t i = 0; i < 2; ++i) {
        const BudgetConfig& config = routes[i].config();
        ASSERT_LE(hedges[i], config.share * requests[i] + config.burst + 1e-9) << "seed " << seed;
        ASSERT_GE(routes[i].balance(), 0) << "seed " << seed;
      }
      ASSERT_LE(hedges[0] + hedges[1],
                pool.config().share * (requests[0] + requests[1]) + pool.config().burst + 1e-9)
          << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace tailward::hedge
