#include "plan/analysis.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"

namespace tailward::plan {
namespace {

using std::chrono::milliseconds;

// 5 ms, and ten times longer in 5 of 100 cases.
Reading reading_of(int count, std::uint64_t seed = 1) {
  Rng rng(seed);
  Recorder recorder(Unit::kMs);
  for (int i = 0; i < count; ++i) {
    recorder.latency(from_ms(rng.lognormal(5, 2) * (rng.chance(0.05) ? 10 : 1)));
  }
  Reading reading;
  reading.samples = recorder.take();
  reading.latencies = reading.samples.histogram.count();
  return reading;
}

double ms(const Analysis& analysis, const Forecast& policy, double q) {
  return to_ms(analysis.quantile(policy, q).value_or(Duration{-1'000'000}));
}

TEST(AnalysisTest, ComparesFourPolicies) {
  const Reading reading = reading_of(100'000);
  const Analysis analysis(reading, {});
  ASSERT_EQ(analysis.policies().size(), 4u);
  EXPECT_EQ(analysis.policies()[0].name, "off");
  EXPECT_EQ(analysis.policies()[1].name, "static");
  EXPECT_EQ(analysis.policies()[2].name, "quantile");
  EXPECT_EQ(analysis.policies()[3].name, "adaptive");
  const Forecast& off = analysis.off();
  EXPECT_EQ(off.plan.stages, 0);
  EXPECT_EQ(off.extra_load, 0);
  for (const double q : {0.5, 0.9, 0.95, 0.99, 0.999}) {
    const double measured = to_ms(reading.samples.histogram.quantile(q));
    EXPECT_NEAR(ms(analysis, off, q), measured, 0.02 * measured);
  }
  const Forecast& fixed = analysis.policies()[1];
  ASSERT_EQ(fixed.plan.stages, 1);
  EXPECT_NEAR(to_ms(fixed.plan.stage[0].delay), ms(analysis, off, 0.95), 0.01);
  EXPECT_NEAR(fixed.extra_load, 0.05, 0.002);
  EXPECT_LT(ms(analysis, fixed, 0.99), 0.6 * ms(analysis, off, 0.99));
  EXPECT_LE(analysis.adaptive().extra_load, 0.0501);
  EXPECT_LE(ms(analysis, analysis.adaptive(), 0.99), 1.001 * ms(analysis, fixed, 0.99));
  EXPECT_EQ(analysis.best().name, "adaptive");
}

TEST(AnalysisTest, KeepsToTheBudget) {
  const Reading reading = reading_of(100'000);
  const Analysis analysis(reading, {.budget = 0.02});
  EXPECT_NEAR(analysis.policies()[2].extra_load, 0.02, 0.002);
  EXPECT_LE(analysis.adaptive().extra_load, 0.0201);
  EXPECT_NE(analysis.best().name, "static") << "it costs 5 %";
  const Analysis broke(reading, {.budget = 0});
  EXPECT_EQ(broke.policies()[2].plan.stages, 0);
  EXPECT_EQ(broke.adaptive().plan.stages, 0);
  EXPECT_EQ(broke.best().name, "off");
}

TEST(AnalysisTest, PrefersTheFartherTailWhereTheGoalIsTheSame) {
  // What is done about those that wait for 200 ms hardly touches P99.
  Rng rng(3);
  Recorder recorder(Unit::kMs);
  for (int i = 0; i < 100'000; ++i) {
    const double wait = rng.chance(0.005) ? 40 : rng.chance(0.004) ? 200 : 0;
    recorder.latency(from_ms(rng.lognormal(5, 2) + wait));
  }
  Reading reading;
  reading.samples = recorder.take();
  const Analysis analysis(reading, {});
  const Forecast& quantile = analysis.policies()[2];
  const Forecast& adaptive = analysis.adaptive();
  ASSERT_LT(ms(analysis, adaptive, 0.99), ms(analysis, quantile, 0.99));
  ASSERT_LT(ms(analysis, quantile, 0.99), 1.02 * ms(analysis, adaptive, 0.99));
  ASSERT_LT(ms(analysis, quantile, 0.999), 0.5 * ms(analysis, adaptive, 0.999));
  EXPECT_EQ(analysis.best().name, "quantile");
}

TEST(AnalysisTest, HasNoBestPolicyWhereNoneHelps) {
  Recorder recorder(Unit::kMs);
  for (int i = 0; i < 10'000; ++i) recorder.latency(milliseconds(10));
  Reading reading;
  reading.samples = recorder.take();
  const Analysis analysis(reading, {});
  EXPECT_EQ(analysis.best().name, "off");
  EXPECT_EQ(analysis.adaptive().plan.stages, 0);
}

TEST(AnalysisTest, KnowsNoQuantileThatTheLogIsTooShortFor) {
  const Reading reading = reading_of(500);
  const Analysis analysis(reading, {});
  EXPECT_TRUE(analysis.quantile(analysis.off(), 0.99));
  EXPECT_FALSE(analysis.quantile(analysis.off(), 0.999));
  EXPECT_FALSE(analysis.quantile(analysis.off(), 0.9999));
  for (const Forecast& policy : analysis.policies()) {
    const std::optional<Duration> value = analysis.quantile(policy, 0.999);
    if (!value) continue;
    EXPECT_GE(reading.samples.histogram.count_above(*value), Analysis::kBeyondMin);
  }
  const Reading few = reading_of(3);
  const Analysis of_few(few, {});
  EXPECT_FALSE(of_few.quantile(of_few.off(), 0.5));
}

TEST(AnalysisTest, AmplifiesByFanOut) {
  const Reading reading = reading_of(100'000);
  const Analysis analysis(reading, {.fanout = 30});
  ASSERT_EQ(analysis.fanout().size(), 5u);
  EXPECT_EQ(analysis.fanout()[2].n, 30u);
  for (const FanoutRow& row : analysis.fanout()) {
    EXPECT_NEAR(row.slow_share, 1 - std::pow(0.99, static_cast<double>(row.n)), 1e-9);
    EXPECT_LE(row.hedged_slow_share, row.slow_share);
  }
  EXPECT_NEAR(analysis.fanout()[4].slow_share, 0.634, 0.0005);
  // The median request of 100 calls sees what 0.5^(1/100) of the calls see.
  const double seen = to_ms(*analysis.fanout()[4].p50);
  EXPECT_NEAR(seen, ms(analysis, analysis.off(), std::pow(0.5, 0.01)), 0.01);
  // A fan-out that is among the usual ones is no second row.
  EXPECT_EQ(Analysis(reading, {.fanout = 50}).fanout().size(), 4u);
}

}  // namespace
}  // namespace tailward::plan
