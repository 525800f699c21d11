#include "treat/effect.h"

#include <gtest/gtest.h>

namespace tailward::treat {
namespace {

using std::chrono::milliseconds;

// Connections that differ among themselves by `between` ms, with requests that differ by `within`.
std::vector<Cluster> connections(std::size_t count, double mean_ms, double between, double within,
                                 Rng& rng) {
  std::vector<Cluster> made(count);
  for (Cluster& one : made) {
    const double own = mean_ms + between * rng.normal();
    for (int i = 0; i < 40; ++i) one.push_back(from_ms(own + within * rng.normal()));
  }
  return made;
}

TEST(EffectTest, FindsADifferenceThatIsFarBeyondChance) {
  Rng rng(1);
  const auto fast = connections(4, 0.1, 0.01, 0.01, rng);
  const auto slow = connections(4, 44, 0.5, 0.5, rng);
  const std::optional<Effect> effect = median_effect(fast, slow, rng);
  ASSERT_TRUE(effect);
  EXPECT_NEAR(to_ms(effect->difference), -43.9, 1);
  EXPECT_TRUE(effect->shown());
  EXPECT_LT(effect->high, milliseconds(-42));
  EXPECT_GT(effect->low, milliseconds(-46));
}

TEST(EffectTest, TheIntervalHoldsTheTruthNineteenTimesInTwentyAlsoWithFewConnections) {
  for (const std::size_t count : {4, 8, 30}) {
    Rng rng(count);
    int held = 0;
    constexpr int kRuns = 200;
    for (int run = 0; run < kRuns; ++run) {
      // Between connections there is far more difference than within: the hard case.
      const auto one = connections(count, 10, 1, 0.2, rng);
      const auto two = connections(count, 12, 1, 0.2, rng);
      const std::optional<Effect> effect = median_effect(one, two, rng);
      ASSERT_TRUE(effect);
      held += effect->low <= milliseconds(-2) && milliseconds(-2) <= effect->high ? 1 : 0;
    }
    // 0.95 less three standard errors of 200 runs.
    EXPECT_GE(held, 0.90 * kRuns) << count << " connections";
  }
}

TEST(EffectTest, ShowsNothingWhereThereIsNothing) {
  Rng rng(3);
  int shown = 0;
  for (int run = 0; run < 100; ++run) {
    const auto one = connections(6, 10, 1, 1, rng);
    const auto two = connections(6, 10, 1, 1, rng);
    shown += median_effect(one, two, rng)->shown() ? 1 : 0;
  }
  EXPECT_LE(shown, 12);
}

TEST(EffectTest, HasNoIntervalFromOneConnection) {
  Rng rng(4);
  const std::vector<Cluster> one{{milliseconds(1), milliseconds(2), milliseconds(3)}, {}};
  const std::vector<Cluster> two{{milliseconds(7)}, {milliseconds(8)}};
  const std::optional<Effect> effect = median_effect(one, two, rng);
  ASSERT_TRUE(effect);
  EXPECT_EQ(effect->difference, milliseconds(-5));
  EXPECT_FALSE(effect->bounded);
  EXPECT_FALSE(effect->shown());
}

TEST(EffectTest, IsNotThereWithoutLatencies) {
  Rng rng(5);
  const std::vector<Cluster> none{{}, {}};
  const std::vector<Cluster> some{{milliseconds(7)}};
  EXPECT_FALSE(median_effect(none, some, rng));
  EXPECT_FALSE(median_effect(some, {}, rng));
}

TEST(EffectTest, ReplaysFromItsSeed) {
  Rng data(6);
  const auto one = connections(9, 10, 1, 1, data);
  const auto two = connections(9, 12, 1, 1, data);
  Rng first(7);
  Rng second(7);
  EXPECT_EQ(median_effect(one, two, first)->low, median_effect(one, two, second)->low);
}

TEST(EffectTest, TakesThousandsOfConnections) {
  Rng rng(8);
  const auto one = connections(2000, 10, 1, 1, rng);
  const auto two = connections(2000, 9, 1, 1, rng);
  const std::optional<Effect> effect = median_effect(one, two, rng);
  ASSERT_TRUE(effect);
  EXPECT_TRUE(effect->shown());
  EXPECT_NEAR(to_ms(effect->difference), 1, 0.3);
}

}  // namespace
}  // namespace tailward::treat
