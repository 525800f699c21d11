#include "sim/law.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace tailward::sim {
namespace {

using namespace std::chrono_literals;

struct Named {
  std::string name;
  Law law;
};

std::vector<Named> laws() {
  const Law lognormal = Law::lognormal(5ms, 2ms);
  return {
      {"uniform", Law::uniform(10ms, 50ms)},
      {"exponential", Law::exponential(20ms)},
      {"lognormal", lognormal},
      {"lognormal of a wide spread", Law::lognormal(5ms, 20ms)},
      {"pareto", Law::pareto(2ms, 1.5)},
      {"mixture", Law::mixture({{0.95, lognormal}, {0.05, lognormal.scaled(10)}})},
      {"mixture by weight",
       Law::mixture({{3, Law::uniform(1ms, 2ms)}, {1, Law::exponential(5ms)}})},
      {"scaled mixture",
       Law::mixture({{0.5, Law::uniform(1ms, 2ms)}, {0.5, Law::uniform(3ms, 4ms)}}).scaled(3)},
  };
}

TEST(LawTest, DrawsFollowTheStatedDistribution) {
  constexpr int kDraws = 100'000;
  for (const auto& [name, law] : laws()) {
    Rng rng(1);
    std::vector<Duration> draws;
    for (int i = 0; i < kDraws; ++i) draws.push_back(law.draw(rng));
    for (const double q : {0.01, 0.1, 0.5, 0.9, 0.99, 0.999}) {
      const Duration limit = law.quantile(q);
      const auto longer =
          std::count_if(draws.begin(), draws.end(), [&](Duration d) { return d > limit; });
      const double sd = std::sqrt(q * (1 - q) / kDraws);
      EXPECT_NEAR(static_cast<double>(longer) / kDraws, 1 - q, 5 * sd) << name << " at " << q;
    }
  }
}

TEST(LawTest, TheQuantileIsTheSmallestDurationThatEnoughOfThemStayWithin) {
  for (const auto& [name, law] : laws()) {
    for (const double q : {0.0, 0.25, 0.5, 0.9, 0.999}) {
      const Duration t = law.quantile(q);
      EXPECT_LE(law.above(t), 1 - q) << name << " at " << q;
      if (t > Duration{0}) {
        EXPECT_GT(law.above(t - 1ns), 1 - q) << name << " at " << q;
      }
    }
  }
}

TEST(LawTest, ALognormalHasTheGivenMeanAndSpread) {
  const Law law = Law::lognormal(5ms, 2ms);
  Rng rng(2);
  constexpr int kDraws = 200'000;
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double ms = to_ms(law.draw(rng));
    sum += ms;
    squares += ms * ms;
  }
  const double mean = sum / kDraws;
  EXPECT_NEAR(mean, 5, 0.03);
  EXPECT_NEAR(std::sqrt(squares / kDraws - mean * mean), 2, 0.05);
}

TEST(LawTest, AConstantIsAlwaysItself) {
  Rng rng(3);
  EXPECT_EQ(Law().draw(rng), Duration{0});
  const Law law = Law::constant(7ms);
  EXPECT_EQ(law.draw(rng), 7ms);
  EXPECT_EQ(law.above(7ms - 1ns), 1);
  EXPECT_EQ(law.above(7ms), 0);
  EXPECT_EQ(law.quantile(0.99), 7ms);
  EXPECT_EQ(Law::uniform(7ms, 7ms).draw(rng), 7ms);
  EXPECT_EQ(Law::lognormal(7ms, 0ms).above(8ms), 0);
  EXPECT_EQ(law.scaled(0).draw(rng), Duration{0});
  EXPECT_EQ(law.scaled(2).scaled(3).draw(rng), 42ms);
}

TEST(LawTest, AnEndlessTailIsCutAtTheLongestDraw) {
  const Law law = Law::pareto(1ms, 0.01);
  Rng rng(4);
  Duration longest{};
  for (int i = 0; i < 1000; ++i) longest = std::max(longest, law.draw(rng));
  EXPECT_EQ(longest, kLongestDraw);
}

TEST(LawTest, TheSameSeedDrawsTheSame) {
  for (const auto& [name, law] : laws()) {
    Rng one(5);
    Rng other(5);
    for (int i = 0; i < 100; ++i) EXPECT_EQ(law.draw(one), law.draw(other)) << name;
  }
}

}  // namespace
}  // namespace tailward::sim
