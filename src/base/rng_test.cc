#include "base/rng.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <set>

namespace tailward {
namespace {

constexpr std::uint64_t kSeed = 12345;
constexpr int kDraws = 200'000;

TEST(RngTest, HashIsOneStepOfTheReferenceSplitmix64) {
  // The reference generator's first outputs from state 1234567.
  constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15U;
  EXPECT_EQ(mix64(1234567), 6457827717110365317U);
  EXPECT_EQ(mix64(1234567 + kStep), 3203168211198807973U);
  EXPECT_EQ(mix64(1234567 + 2 * kStep), 9817491932198370423U);
}

TEST(RngTest, DrawsWhatTheReferenceXoshiro256PlusPlusDraws) {
  // From a state that splitmix64 makes of 0.
  Rng rng(0);
  EXPECT_EQ(rng.next(), 5987356902031041503U);
  EXPECT_EQ(rng.next(), 7051070477665621255U);
  EXPECT_EQ(rng.next(), 6633766593972829180U);
  EXPECT_EQ(rng.next(), 211316841551650330U);
}

TEST(RngTest, ReplaysFromItsSeed) {
  Rng one(kSeed);
  Rng two(kSeed);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(one.next(), two.next());
}

TEST(RngTest, NeighbouringSeedsAndStreamsHaveNothingInCommon) {
  std::set<std::uint64_t> firsts;
  for (std::uint64_t i = 0; i < 100; ++i) {
    firsts.insert(Rng(i).next());
    firsts.insert(Rng::stream(kSeed, i).next());
    firsts.insert(Rng::stream(i + 1'000'000, 7).next());
  }
  EXPECT_EQ(firsts.size(), 300U);
}

TEST(RngTest, AStreamReplaysFromSeedAndNumber) {
  Rng one = Rng::stream(kSeed, 3);
  Rng two = Rng::stream(kSeed, 3);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(one.next(), two.next());
}

TEST(RngTest, StreamsOfOneSeedAreUncorrelated) {
  std::cout << "seed " << kSeed << '\n';
  Rng one = Rng::stream(kSeed, 0);
  Rng two = Rng::stream(kSeed, 1);
  double product = 0;
  for (int i = 0; i < kDraws; ++i) product += one.normal() * two.normal();
  EXPECT_NEAR(product / kDraws, 0, 5 / std::sqrt(kDraws));
}

TEST(RngTest, UniformStaysInItsRangeAndFillsIt) {
  std::cout << "seed " << kSeed << '\n';
  Rng rng(kSeed);
  double sum = 0;
  double lowest = 1;
  double highest = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double value = rng.uniform();
    sum += value;
    lowest = std::min(lowest, value);
    highest = std::max(highest, value);
  }
  EXPECT_GE(lowest, 0);
  EXPECT_LT(lowest, 1e-4);
  EXPECT_LT(highest, 1);
  EXPECT_GT(highest, 1 - 1e-4);
  EXPECT_NEAR(sum / kDraws, 0.5, 5 * 0.289 / std::sqrt(kDraws));
  for (int i = 0; i < 1000; ++i) {
    const double value = rng.uniform(-3, 7);
    ASSERT_GE(value, -3);
    ASSERT_LT(value, 7);
  }
}

TEST(RngTest, ChanceIsNeverAtZeroAndAlwaysAtOne) {
  Rng rng(kSeed);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_FALSE(rng.chance(0));
    ASSERT_TRUE(rng.chance(1));
  }
}

TEST(RngTest, ChanceHappensAsOftenAsItSays) {
  std::cout << "seed " << kSeed << '\n';
  Rng rng(kSeed);
  int happened = 0;
  for (int i = 0; i < kDraws; ++i) happened += rng.chance(0.03) ? 1 : 0;
  EXPECT_NEAR(happened / double{kDraws}, 0.03, 5 * std::sqrt(0.03 * 0.97 / kDraws));
}

TEST(RngTest, BelowGivesEveryNumberEquallyOften) {
  std::cout << "seed " << kSeed << '\n';
  Rng rng(kSeed);
  std::array<int, 7> counts{};
  for (int i = 0; i < kDraws; ++i) ++counts.at(rng.below(7));
  double chi_squared = 0;
  for (const int count : counts) {
    const double expected = kDraws / 7.0;
    chi_squared += (count - expected) * (count - expected) / expected;
  }
  EXPECT_LT(chi_squared, 22.5);  // 6 degrees of freedom: 99.9 %
  for (int i = 0; i < 100; ++i) ASSERT_EQ(rng.below(1), 0U);
}

// Mean and variance of `draw`, within 5 standard errors given the fourth moment's size.
template <class Draw>
void expect_moments(Draw draw, double mean, double sd, double mean_slack, double sd_slack) {
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double value = draw();
    ASSERT_TRUE(std::isfinite(value));
    sum += value;
    squares += value * value;
  }
  const double seen = sum / kDraws;
  EXPECT_NEAR(seen, mean, mean_slack);
  EXPECT_NEAR(std::sqrt(squares / kDraws - seen * seen), sd, sd_slack);
}

TEST(RngTest, DistributionsHaveTheMomentsAskedFor) {
  std::cout << "seed " << kSeed << '\n';
  Rng rng(kSeed);
  expect_moments([&] { return rng.normal(); }, 0, 1, 0.012, 0.01);
  expect_moments([&] { return rng.exponential(20); }, 20, 20, 0.25, 0.35);
  expect_moments([&] { return rng.lognormal(5, 2); }, 5, 2, 0.025, 0.03);
}

TEST(RngTest, NormalTailsAreThoseOfTheTables) {
  std::cout << "seed " << kSeed << '\n';
  Rng rng(kSeed);
  int above_two = 0;
  int below_minus_one = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double value = rng.normal();
    above_two += value > 2 ? 1 : 0;
    below_minus_one += value < -1 ? 1 : 0;
  }
  EXPECT_NEAR(above_two / double{kDraws}, 0.02275, 0.0017);
  EXPECT_NEAR(below_minus_one / double{kDraws}, 0.15866, 0.0041);
}

TEST(RngTest, ExponentialAndLognormalAreNeverNegative) {
  Rng rng(kSeed);
  for (int i = 0; i < 10'000; ++i) {
    ASSERT_GE(rng.exponential(1), 0);
    ASSERT_GT(rng.lognormal(1, 10), 0);
  }
}

}  // namespace
}  // namespace tailward
