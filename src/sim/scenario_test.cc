// The published measurements, in virtual time: what the engine makes of them.
#include "sim/scenario.h"

#include <gtest/gtest.h>

namespace tailward::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kSeed = 20260101;

hedge::Policy policy(std::string_view text) {
  const Result<hedge::Policy> parsed = hedge::parse_policy(text);
  EXPECT_TRUE(parsed.has_value()) << text;
  return *parsed;
}

double p_ms(const SimulationResult& result, double q) { return to_ms(result.latency.quantile(q)); }

// 200,000 requests, 20 in flight, without a budget.
SimulationResult reference(std::string_view hedging) {
  SimulationConfig config;
  config.route.policy = policy(hedging);
  config.route.budget.unlimited = true;
  config.service = reference_service();
  config.load = ClosedLoad{.in_flight = 20, .requests = 200'000};
  config.seed = kSeed;
  SimulationResult result = simulate(config);
  EXPECT_EQ(result.answered, 200'000u) << "seed " << kSeed;
  EXPECT_EQ(result.service.attempts, result.counters.attempts);
  return result;
}

TEST(ReferenceServiceTest, UnhedgedItHasThePublishedTail) {
  const SimulationResult result = reference("off");
  for (const double q : {0.5, 0.9}) {
    const double exact = to_ms(reference_law().quantile(q));
    EXPECT_NEAR(p_ms(result, q), exact, 0.02 * exact) << "seed " << kSeed;
  }
  EXPECT_GE(p_ms(result, 0.99), 60) << "seed " << kSeed;
  EXPECT_LE(p_ms(result, 0.99), 68) << "seed " << kSeed;
  EXPECT_EQ(result.counters.hedges, 0u);
}

TEST(ReferenceServiceTest, HedgingAtALearnedQuantileCutsTheTailForTheLoadThatItStates) {
  const SimulationResult result = reference("quantile:0.9");
  EXPECT_GE(result.counters.extra_load(), 0.09) << "seed " << kSeed;
  EXPECT_LE(result.counters.extra_load(), 0.105) << "seed " << kSeed;
  EXPECT_LE(p_ms(result, 0.95), 12.6) << "seed " << kSeed;
  EXPECT_LE(p_ms(result, 0.99), 16.5) << "seed " << kSeed;
  EXPECT_EQ(result.verdict.layer, findings::Layer::kHealthy) << result.verdict.sentence;
}

TEST(ReferenceServiceTest, FixedDelaysCostWhatWasPublished) {
  const SimulationResult early = reference("fixed:10ms");
  EXPECT_NEAR(early.counters.extra_load(), 0.074, 0.005) << "seed " << kSeed;
  EXPECT_NEAR(p_ms(early, 0.99), 17, 1) << "seed " << kSeed;
  const SimulationResult late = reference("fixed:50ms");
  EXPECT_NEAR(late.counters.extra_load(), 0.021, 0.003) << "seed " << kSeed;
  EXPECT_NEAR(p_ms(late, 0.99), 54.7, 1.5) << "seed " << kSeed;
}

TEST(ReferenceServiceTest, ASecondHedgeCutsTheFarTail) {
  const SimulationResult one = reference("quantile:0.9");
  const SimulationResult two = reference("quantile:0.9:2");
  EXPECT_LE(p_ms(two, 0.999), 0.6 * p_ms(one, 0.999)) << "seed " << kSeed;
  EXPECT_LE(two.counters.extra_load(), one.counters.extra_load() + 0.01);
}

TEST(LockedServiceTest, HedgingFeedsAContendedLock) {
  for (std::uint64_t seed = kSeed; seed < kSeed + 5; ++seed) {
    const SimulationResult none = simulate(locked_experiment(1, policy("off"), seed));
    Simulation hedged_simulation(locked_experiment(1, policy("fixed:50ms"), seed));
    hedged_simulation.run();
    const SimulationResult hedged = hedged_simulation.result();
    ASSERT_EQ(none.answered, 2000u);
    ASSERT_EQ(hedged.answered, 2000u);
    EXPECT_EQ(none.service.attempts, 2000u);
    EXPECT_GT(p_ms(hedged, 0.5), 1.5 * p_ms(none, 0.5)) << "seed " << seed;
    EXPECT_GE(hedged.counters.trigger_rate(), 0.9) << "seed " << seed;
    EXPECT_GE(hedged.service.attempts, 3800u) << "seed " << seed;
    EXPECT_GE(to_ms(hedged.lock_wait), 4 * to_ms(none.lock_wait)) << "seed " << seed;
    // The client's figure alone would call it a success.
    EXPECT_LT(p_ms(hedged, 0.99), p_ms(none, 0.99)) << "seed " << seed;
    const hedge::Verdict verdict = hedged_simulation.route().verdict(
        hedged_simulation.now(), to_ms(hedged.lock_wait) / to_ms(none.lock_wait));
    EXPECT_EQ(verdict.layer, findings::Layer::kCause) << verdict.sentence;
    EXPECT_EQ(hedged.verdict.layer, findings::Layer::kCause) << "the rate alone says it, too";
  }
}

TEST(LockedServiceTest, ShardingTheLockMakesTheSameHedgingHelp) {
  for (std::uint64_t seed = kSeed; seed < kSeed + 5; ++seed) {
    const SimulationResult none = simulate(locked_experiment(1, policy("off"), seed));
    const SimulationResult sharded = simulate(locked_experiment(16, policy("fixed:50ms"), seed));
    ASSERT_EQ(sharded.answered, 2000u);
    EXPECT_GE(sharded.counters.trigger_rate(), 0.10) << "seed " << seed;
    EXPECT_LE(sharded.counters.trigger_rate(), 0.20) << "seed " << seed;
    EXPECT_LT(p_ms(sharded, 0.5), p_ms(none, 0.5)) << "seed " << seed;
    EXPECT_LT(p_ms(sharded, 0.95), 0.5 * p_ms(none, 0.95)) << "seed " << seed;
    EXPECT_LT(to_ms(sharded.lock_wait), 0.1 * to_ms(none.lock_wait)) << "seed " << seed;
    EXPECT_TRUE(sharded.verdict.layer == findings::Layer::kHealthy ||
                sharded.verdict.layer == findings::Layer::kWatch)
        << "seed " << seed << ": " << sharded.verdict.sentence;
  }
}

TEST(LockedServiceTest, AServerThatLooksForCancellationsUnderTheLockSparesIt) {
  SimulationConfig config = locked_experiment(1, policy("fixed:50ms"), kSeed);
  const SimulationResult blind = simulate(config);
  for (HostConfig& host : config.service.hosts) host.heeds_cancel = HeedsCancel::kEverywhere;
  const SimulationResult looking = simulate(config);
  EXPECT_LT(looking.lock_wait, blind.lock_wait) << "seed " << kSeed;
  EXPECT_LT(looking.locks[0].held, blind.locks[0].held) << "seed " << kSeed;
}

}  // namespace
}  // namespace tailward::sim
