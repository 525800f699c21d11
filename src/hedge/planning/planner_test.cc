#include "hedge/planning/planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <vector>

#include "base/rng.h"

namespace tailward::hedge {
namespace {

using namespace std::chrono_literals;
using stats::Curve;
using Kind = PlannedHedges::Kind;

// P(latency > ms) of a lognormal of the given mean and standard deviation.
double lognormal_above(double ms, double mean, double sd) {
  const double variance = std::log1p(sd * sd / (mean * mean));
  return std::erfc((std::log(ms / mean) + variance / 2) / std::sqrt(2 * variance)) / 2;
}

template <class Law>
Curve exact(Law above_ms) {
  Curve curve;
  for (std::size_t i = 0; i < stats::kBucketCount; ++i) {
    curve.set(i, above_ms(to_ms(stats::bucket_high(i))));
  }
  return curve;
}

// Lognormal of mean 5 ms and sd 2 ms, 5 % of requests ten times as long.
Curve reference() {
  return exact([](double ms) {
    return 0.95 * lognormal_above(ms, 5, 2) + 0.05 * lognormal_above(ms / 10, 5, 2);
  });
}

// A share of attempts hangs for ever, the others are lognormal.
Curve hanging(double share, double mean = 5, double sd = 2) {
  return exact([=](double ms) { return share + (1 - share) * lognormal_above(ms, mean, sd); });
}

// One to four lognormals of very different means and spreads; some hang.
Curve random_law(Rng& rng) {
  struct Part {
    double weight, mean, sd;
  };
  std::vector<Part> parts(1 + rng.below(4));
  double sum = 0;
  for (Part& part : parts) {
    part.weight = rng.exponential(1);
    part.mean = std::exp(rng.uniform(std::log(0.05), std::log(2000)));
    part.sd = part.mean * std::exp(rng.uniform(std::log(0.05), std::log(2)));
    sum += part.weight;
  }
  const double hang = rng.chance(0.3) ? rng.uniform(0, 0.2) : 0;
  return exact([&](double ms) {
    double above = 0;
    for (const Part& p : parts) above += p.weight / sum * lognormal_above(ms, p.mean, p.sd);
    return hang + (1 - hang) * above;
  });
}

struct Problem {
  Curve first;
  Curve second;
  double goal;
  double budget;
};

// A hedge is like a first attempt, or of a law of its own, or something between.
Problem random_problem(Rng& rng) {
  constexpr double kGoals[] = {0.9, 0.95, 0.99, 0.999};
  Problem problem{random_law(rng), random_law(rng), kGoals[rng.below(4)],
                  std::exp(rng.uniform(std::log(0.005), std::log(0.5)))};
  const double own = rng.chance(0.5) ? 0 : rng.chance(0.5) ? rng.uniform() : 1;
  problem.second = Curve::mix(problem.first, problem.second, own);
  return problem;
}

PlannedHedges plan(const Problem& problem, int copies = 2) {
  return plan_hedges({.first = &problem.first,
                      .second = &problem.second,
                      .goal = problem.goal,
                      .budget = problem.budget,
                      .copies = copies,
                      .gain_min = 0});
}

TEST(PlannerTest, ReachesTheOptimumOfTheReferenceBenchmark) {
  const Curve curve = reference();
  struct Row {
    double goal, budget, with_ms;
    Kind kind;
  };
  const Row rows[] = {
      {0.95, 0.02, 12.7, Kind::kSingle},   {0.95, 0.05, 11.7, Kind::kSingle},
      {0.95, 0.089, 11.1, Kind::kSingle},  {0.95, 0.1, 11.0, Kind::kSingle},
      {0.99, 0.02, 48.9, Kind::kSingle},   {0.99, 0.05, 20.4, Kind::kSingle},
      {0.99, 0.089, 15.9, Kind::kSingle},  {0.99, 0.1, 15.5, Kind::kSingle},
      {0.999, 0.02, 60.7, Kind::kSingle},  {0.999, 0.05, 37.9, Kind::kStaged},
      {0.999, 0.089, 21.3, Kind::kStaged}, {0.999, 0.1, 20.4, Kind::kStaged},
  };
  for (const Row& row : rows) {
    const PlannedHedges planned =
        plan_hedges({.first = &curve, .second = &curve, .goal = row.goal, .budget = row.budget});
    SCOPED_TRACE(testing::Message() << row.goal << ' ' << row.budget);
    EXPECT_EQ(planned.kind, row.kind);
    EXPECT_LE(planned.extra_load, row.budget);
    ASSERT_TRUE(planned.with.has_value());
    EXPECT_NEAR(to_ms(*planned.with), row.with_ms, 0.02 * row.with_ms);
    const Curve predicted = predict(curve, curve, planned.plan);
    EXPECT_NEAR(to_ms(predicted.quantile(row.goal).value()), to_ms(*planned.with),
                0.002 * row.with_ms);
  }
}

TEST(PlannerTest, FindsTheDelaysOfThePublishedOptimum) {
  const Curve curve = reference();
  const PlannedHedges p95 =
      plan_hedges({.first = &curve, .second = &curve, .goal = 0.95, .budget = 0.05});
  EXPECT_NEAR(to_ms(p95.plan.stage[0].delay), 7, 0.5);
  EXPECT_NEAR(p95.plan.stage[0].probability, 0.27, 0.03);
  EXPECT_NEAR(to_ms(p95.without.value()), 17.5, 0.2);
  const PlannedHedges p99 =
      plan_hedges({.first = &curve, .second = &curve, .goal = 0.99, .budget = 0.089});
  EXPECT_NEAR(to_ms(p99.plan.stage[0].delay), 9.1, 0.3);
  EXPECT_NEAR(p99.plan.stage[0].probability, 1, 0.02);
}

TEST(PlannerTest, PlansOneStageWhereOneCopyIsAllowed) {
  Problem problem{reference(), reference(), 0.999, 0.089};
  const PlannedHedges planned = plan(problem, 1);
  EXPECT_EQ(planned.kind, Kind::kSingle);
  EXPECT_EQ(planned.plan.stages, 1);
  EXPECT_NEAR(to_ms(planned.with.value()), 45.1, 0.9);
}

// The best that any (d1, q1, d2, q2) on a fine grid can do, q2 as large as the budget allows.
class BruteForce {
 public:
  explicit BruteForce(const Problem& problem) : problem_(problem) {
    const Duration last = std::min(
        problem.first.quantile(problem.goal).value_or(problem.first.longest()), kLastHedgeMax);
    delays_.push_back(0ns);
    for (int i = 0; i < 60; ++i) {
      const double share = problem.goal * i / 60 + rng_.uniform(0, 0.02);
      const auto by_share = problem.first.quantile(std::min(share, 0.9999));
      if (by_share && *by_share < last) delays_.push_back(*by_share);
      delays_.push_back(Duration{static_cast<std::int64_t>(std::exp(rng_.uniform(
          std::log(1e4), std::log(std::max(2e4, static_cast<double>(last.count()))))))});
    }
    std::sort(delays_.begin(), delays_.end());
  }

  // Empty when it finds no plan that reaches the goal.
  std::optional<Duration> best() {
    best_ = problem_.first.quantile(problem_.goal);
    for (std::size_t i = 0; i < delays_.size(); ++i) {
      for (std::size_t j = i; j < delays_.size(); ++j) {
        for (int k = 0; k <= 10; ++k) try_plan(delays_[i], 0.1 * k, delays_[j]);
      }
    }
    return best_;
  }

 private:
  void try_plan(Duration d1, double q1, Duration d2) {
    const double left1 = problem_.budget - q1 * problem_.first.above(d1);
    if (left1 < 0) return;
    const double due = problem_.first.above(d2) * (1 - q1 + q1 * problem_.second.above(d2 - d1));
    const double q2 = std::min(1.0, due > 0 ? left1 / due : 1);
    const auto reaches = [&](Duration t) {
      return problem_.first.above(t) * (1 - q1 + q1 * problem_.second.above(t - d1)) *
                 (1 - q2 + q2 * problem_.second.above(t - d2)) <=
             1 - problem_.goal;
    };
    Duration high = best_.value_or(2 * problem_.first.longest() + problem_.second.longest());
    if (!reaches(high - high / 2000)) return;
    Duration low{0};
    while (high - low > std::max(high / 20000, 1ns)) {
      const Duration t = (low + high) / 2;
      (reaches(t) ? high : low) = t;
    }
    best_ = high;
  }

  const Problem& problem_;
  Rng rng_{99};
  std::vector<Duration> delays_;
  std::optional<Duration> best_;
};

TEST(PlannerTest, IsNeverWorseThanBruteForceOnRandomLaws) {
  int staged = 0;
  int single = 0;
  // The first ones are those among 400 that a coarser search errs at.
  std::vector<std::uint64_t> seeds{36, 83, 86, 145, 151, 168, 181, 183, 212, 276, 278};
  for (std::uint64_t seed = 1; seed <= 30; ++seed) seeds.push_back(seed);
  for (const std::uint64_t seed : seeds) {
    Rng rng(seed);
    const Problem problem = random_problem(rng);
    const PlannedHedges planned = plan(problem);
    const std::optional<Duration> best = BruteForce(problem).best();
    SCOPED_TRACE(testing::Message()
                 << "seed " << seed << " goal " << problem.goal << " budget " << problem.budget);
    staged += planned.kind == Kind::kStaged;
    single += planned.kind == Kind::kSingle;
    if (!best) continue;
    ASSERT_TRUE(planned.with.has_value());
    EXPECT_LE(to_ms(*planned.with), 1.002 * to_ms(*best));
  }
  EXPECT_GE(staged, 3);
  EXPECT_GE(single, 3);
}

// At a given time and given delays, by trying all q1: the cheapest is at an end of what is
// possible.
TEST(PlannerTest, OneOfTwoStagesIsCertainWhereTheyAreCheapest) {
  constexpr std::uint64_t kSeed = 11;
  std::cout << "seed " << kSeed << '\n';
  Rng rng(kSeed);
  int tried = 0;
  for (int round = 0; round < 3000; ++round) {
    const double s1 = rng.uniform();
    const double s2 = s1 * rng.uniform();
    const double a = rng.uniform();      // answered by t, sent at d1
    const double b = a * rng.uniform();  // sent later
    const double c = a * rng.uniform();  // sent at d1, answered by d2
    const double r = rng.uniform();
    const auto load = [&](double q1) {
      const double q2 = std::max(0.0, (1 - r / (1 - q1 * a)) / b);
      return q2 > 1 ? 1e9 : q1 * s1 + q2 * s2 * (1 - q1 * c);
    };
    const double low = std::max(0.0, (1 - r / (1 - b)) / a);
    const double high = std::min(1.0, (1 - r) / a);
    if (low > high) continue;
    ++tried;
    const double ends = std::min(load(std::nextafter(low, 2.0) * (1 + 1e-12)), load(high));
    for (int k = 1; k < 100; ++k) ASSERT_GE(load(low + (high - low) * k / 100), ends - 1e-9);
  }
  EXPECT_GT(tried, 500);
}

TEST(PlannerTest, NeverSpendsMoreThanTheBudgetAndReachesWhatItSays) {
  constexpr std::uint64_t kSeed = 12;
  std::cout << "seed " << kSeed << '\n';
  Rng rng(kSeed);
  int kinds[4] = {};
  for (int round = 0; round < 500; ++round) {
    const Problem problem = random_problem(rng);
    const int copies = rng.chance(0.3) ? 1 : 2;
    const PlannedHedges planned = plan(problem, copies);
    SCOPED_TRACE(testing::Message() << "round " << round);
    ++kinds[static_cast<int>(planned.kind)];
    ASSERT_EQ(planned.extra_load, expected_extra_load(problem.first, problem.second, planned.plan));
    ASSERT_LE(planned.extra_load, problem.budget);
    ASSERT_LE(planned.plan.stages, copies);
    Duration before{0};
    double above = 1;
    for (std::size_t i = 0; i < static_cast<std::size_t>(planned.plan.stages); ++i) {
      const Stage& stage = planned.plan.stage[i];
      ASSERT_GE(stage.delay, before);
      ASSERT_LE(stage.delay, kLastHedgeMax);
      ASSERT_GT(stage.probability, 0);
      ASSERT_LE(stage.probability, 1);
      before = stage.delay;
      if (planned.with) {
        above *= 1 - stage.probability * (1 - problem.second.above(*planned.with - stage.delay));
      }
    }
    if (planned.with) {
      above *= problem.first.above(*planned.with);
      ASSERT_LE(above, (1 - problem.goal) * (1 + 1e-6));
    }
  }
  for (const int count : kinds) EXPECT_GE(count, 5);
}

TEST(PlannerTest, ALargerBudgetNeverGivesALargerQuantile) {
  constexpr std::uint64_t kSeed = 13;
  std::cout << "seed " << kSeed << '\n';
  Rng rng(kSeed);
  for (int law = 0; law < 30; ++law) {
    Problem problem = random_problem(rng);
    Duration before = kForever;
    for (problem.budget = 0.004; problem.budget < 1.2; problem.budget *= 1.3) {
      const PlannedHedges planned = plan(problem);
      ASSERT_LE(planned.with.value_or(kForever), before)
          << "law " << law << " budget " << problem.budget;
      before = planned.with.value_or(kForever);
    }
  }
}

// The model itself, drawn: what is said of a plan holds within the statistical error.
void expect_drawn(Rng& rng, const Problem& problem, const Plan& plan) {
  constexpr int kDraws = 200'000;
  const Curve predicted = predict(problem.first, problem.second, plan);
  const auto draw = [&rng](const Curve& curve) {
    return curve.quantile(rng.uniform()).value_or(kForever);
  };
  const std::vector<double> quantiles{0.3, 0.5, 0.9, 0.99, 0.999};
  std::vector<int> above(quantiles.size());
  double hedges = 0;
  double squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    Duration answered = draw(problem.first);
    int sent = 0;
    for (std::size_t k = 0; k < static_cast<std::size_t>(plan.stages); ++k) {
      const Stage& stage = plan.stage[k];
      if (answered <= stage.delay || !rng.chance(stage.probability)) continue;
      ++sent;
      answered = std::min(answered, stage.delay + std::min(draw(problem.second), kForever / 2));
    }
    hedges += sent;
    squares += sent * sent;
    for (std::size_t q = 0; q < quantiles.size(); ++q) {
      above[q] += answered > predicted.quantile(quantiles[q]).value_or(kForever);
    }
  }
  for (std::size_t q = 0; q < quantiles.size(); ++q) {
    const std::optional<Duration> at = predicted.quantile(quantiles[q]);
    if (!at) continue;
    const double share = 1 - quantiles[q];
    // 4.5 standard errors, and what interpolating the product of curves takes from its exactness.
    const double error = 4.5 * std::sqrt(share * quantiles[q] / kDraws) + 0.002 * share;
    EXPECT_NEAR(static_cast<double>(above[q]) / kDraws, share, error) << quantiles[q];
  }
  const double mean = hedges / kDraws;
  const double error = 4.5 * std::sqrt((squares / kDraws - mean * mean) / kDraws);
  EXPECT_NEAR(mean, expected_extra_load(problem.first, problem.second, plan), error + 1e-9);
}

TEST(PlannerTest, PredictsWhatDrawingFromTheModelGives) {
  constexpr std::uint64_t kSeed = 14;
  std::cout << "seed " << kSeed << '\n';
  Rng rng(kSeed);
  const Problem problem{reference(), reference(), 0.999, 0.089};
  const PlannedHedges planned = plan(problem);
  ASSERT_EQ(planned.kind, Kind::kStaged);
  expect_drawn(rng, problem, planned.plan);
  // Any plan, also one of three stages that nobody would choose.
  Plan three{.stages = 3, .stage = {{{2ms, 0.3}, {6ms, 0.7}, {6ms, 0.5}}}};
  expect_drawn(rng, problem, three);
  expect_drawn(rng, {hanging(0.3), reference(), 0.9, 0.1}, three);
}

TEST(PlannerTest, PredictsTheFirstAttemptsWhereThereIsNoPlan) {
  const Curve curve = reference();
  const Curve predicted = predict(curve, curve, Plan{});
  for (std::size_t i = 0; i < stats::kBucketCount; ++i) ASSERT_EQ(predicted.at(i), curve.at(i));
  EXPECT_EQ(expected_extra_load(curve, curve, Plan{}), 0);
}

void expect_none(const PlannedHedges& planned) {
  EXPECT_EQ(planned.kind, Kind::kNone);
  EXPECT_EQ(planned.plan.stages, 0);
  EXPECT_EQ(planned.extra_load, 0);
  EXPECT_EQ(planned.with, planned.without);
}

TEST(PlannerTest, PlansNothingWhereNothingIsKnownOrMayBeSpent) {
  const Curve nothing;
  const Curve known = reference();
  expect_none(plan_hedges({.first = &nothing, .second = &nothing}));
  expect_none(plan_hedges({.first = &nothing, .second = &known}));
  expect_none(plan_hedges({.first = &known, .second = &nothing}));
  expect_none(plan_hedges({.first = &known, .second = &known, .budget = 0}));
  expect_none(plan_hedges({.first = &known, .second = &known, .budget = -1}));
  expect_none(plan_hedges({.first = &known, .second = &known, .copies = 0}));
}

TEST(PlannerTest, PlansNothingWhereAHedgeIsAsSlowAsWhatItIsSentFor) {
  const Curve first = reference();
  // A request that is slow is slow everywhere.
  const Curve second = exact([](double ms) { return lognormal_above(ms / 10, 12, 2); });
  const PlannedHedges planned = plan_hedges({.first = &first, .second = &second});
  expect_none(planned);
  EXPECT_TRUE(planned.without.has_value());
}

TEST(PlannerTest, PlansNothingForAGainThatIsNotWorthIt) {
  const Curve curve = reference();
  PlannerInput input{.first = &curve, .second = &curve, .goal = 0.95, .budget = 0.02};
  ASSERT_EQ(plan_hedges(input).kind, Kind::kSingle);  // 17.5 → 12.7 ms, by 27 %
  input.gain_min = 0.26;
  EXPECT_EQ(plan_hedges(input).kind, Kind::kSingle);
  input.gain_min = 0.29;
  expect_none(plan_hedges(input));
}

TEST(PlannerTest, RationsByProbabilityWhereMoreHangsThanTheBudgetCovers) {
  stats::Survival samples;
  constexpr std::uint64_t kSeed = 15;
  std::cout << "seed " << kSeed << '\n';
  Rng rng(kSeed);
  for (int i = 0; i < 30'000; ++i) {
    i % 3 == 0 ? samples.record_censored(5s) : samples.record(from_ms(rng.lognormal(5, 2)));
  }
  for (const Curve& curve : {Curve(samples), hanging(1.0 / 3)}) {
    const PlannedHedges planned =
        plan_hedges({.first = &curve, .second = &curve, .goal = 0.9, .budget = 0.1});
    EXPECT_EQ(planned.kind, Kind::kRationed);
    ASSERT_EQ(planned.plan.stages, 1);
    EXPECT_GE(planned.plan.stage[0].delay, 8ms);
    EXPECT_LE(planned.plan.stage[0].delay, 20ms);
    EXPECT_NEAR(planned.plan.stage[0].probability, 0.29, 0.02);
    EXPECT_NEAR(planned.extra_load, 0.1, 1e-9);
    EXPECT_FALSE(planned.without.has_value());
    EXPECT_FALSE(planned.with.has_value());
  }
}

TEST(PlannerTest, RationsAfterTheHealthyModeHoweverNarrowItIs) {
  const Curve curve = hanging(1.0 / 3, 5, 0.05);
  const PlannedHedges planned =
      plan_hedges({.first = &curve, .second = &curve, .goal = 0.9, .budget = 0.1});
  EXPECT_EQ(planned.kind, Kind::kRationed);
  EXPECT_NEAR(to_ms(planned.plan.stage[0].delay), 5.2, 0.2);
  EXPECT_NEAR(planned.plan.stage[0].probability, 0.3, 0.01);
}

TEST(PlannerTest, ReachesTheGoalOverHangingAttemptsWhereTheBudgetCoversThem) {
  const Curve first = hanging(1.0 / 3);
  const Curve second = reference();
  const PlannedHedges planned =
      plan_hedges({.first = &first, .second = &second, .goal = 0.9, .budget = 0.35});
  EXPECT_EQ(planned.kind, Kind::kSingle);
  EXPECT_FALSE(planned.without.has_value());
  ASSERT_TRUE(planned.with.has_value());
  EXPECT_LT(*planned.with, 25ms);
}

TEST(PlannerTest, PlansNothingWhereEverythingHangsTogether) {
  const Curve first = hanging(1.0 / 3);
  const Curve never;
  expect_none(plan_hedges({.first = &first, .second = &never, .goal = 0.9, .budget = 0.1}));
}

TEST(PlannerTest, SendsAllCopiesAtOnceWhereTheBudgetIsNoLimit) {
  const Curve curve = reference();
  const PlannedHedges planned =
      plan_hedges({.first = &curve, .second = &curve, .goal = 0.99, .budget = 2});
  const Plan at_once{.stages = 2, .stage = {{{0ns, 1}, {0ns, 1}}}};
  EXPECT_NEAR(to_ms(planned.with.value()),
              to_ms(predict(curve, curve, at_once).quantile(0.99).value()), 0.01);
}

// One attempt in ten takes 200 ms and more, and one hedge in ten of those too: at the P99 there is
// no room for a control group, unless the plan makes it.
TEST(PlannerTest, CountsTheRequestsThatAreNeverHedgedTowardsTheGoal) {
  const auto uniform_above = [](double ms, double low, double high) {
    return 1 - std::clamp((ms - low) / (high - low), 0.0, 1.0);
  };
  const Curve curve = exact([&](double ms) {
    return 0.9 * uniform_above(ms, 10, 50) + 0.1 * uniform_above(ms, 200, 500);
  });
  constexpr double kUnhedged = 0.03;
  const auto p99 = [&](double unhedged) {
    const PlannedHedges planned = plan_hedges(
        {.first = &curve, .second = &curve, .goal = 0.99, .budget = 0.135, .unhedged = unhedged});
    const Curve all = Curve::mix(predict(curve, curve, planned.plan), curve, kUnhedged);
    return std::pair(to_ms(planned.with.value()), to_ms(all.quantile(0.99).value()));
  };
  const auto [expected, reached] = p99(kUnhedged);
  EXPECT_NEAR(expected, reached, 0.1);
  const auto [blindly_expected, blindly_reached] = p99(0);
  EXPECT_LT(blindly_expected, 0.99 * blindly_reached) << "or the test shows nothing";
  EXPECT_LE(reached, 1.001 * blindly_reached);
}

}  // namespace
}  // namespace tailward::hedge
