// Properties of the engine that show only over many requests: what it may spend, what it learns,
// what it does when hosts hang, fail or slow down. In virtual time, from printed seeds.
#include <gtest/gtest.h>

#include <optional>

#include "sim/scenario.h"

namespace tailward::sim {
namespace {

using namespace std::chrono_literals;
using hedge::Policy;

Policy quantile(double q, int copies = 1) {
  return {.kind = Policy::Kind::kQuantile, .quantile = q, .copies = copies};
}

// --- Whatever happens, at every event
// -------------------------------------------------------------

Law random_law(Rng& rng) {
  const Duration mean = from_ms(rng.uniform(1, 30));
  switch (rng.below(5)) {
    case 0:
      return Law::constant(mean);
    case 1:
      return Law::uniform(mean / 2, 2 * mean);
    case 2:
      return Law::exponential(mean);
    case 3:
      return Law::pareto(mean / 3, rng.uniform(1.1, 3));
    default:
      return Law::mixture({{0.9, Law::lognormal(mean, mean / 2)},
                           {rng.uniform(0.02, 0.3), Law::lognormal(mean, mean).scaled(10)}});
  }
}

Fault random_fault(Rng& rng) {
  Fault fault;
  fault.from = from_ms(rng.uniform(0, 3000));
  fault.until = fault.from + from_ms(rng.exponential(800));
  switch (rng.below(4)) {
    case 0:
      fault.hang = true;
      break;
    case 1:
      fault.slow_by = rng.uniform(1, 30);
      break;
    default:
      fault.error_share = rng.uniform(0.05, 1);
      fault.error_after = from_ms(rng.uniform(0, 3));
      fault.error.has_response = rng.chance(0.5);
      fault.error.overloaded = rng.chance(0.2);
      if (rng.chance(0.2)) {
        fault.error.pushback = {hedge::Pushback::Kind::kAfter, from_ms(rng.uniform(0, 1500))};
      }
      if (rng.chance(0.05)) fault.error.result = hedge::Outcome::Class::kFatal;
      if (rng.chance(0.05)) fault.error.result = hedge::Outcome::Class::kNotSent;
  }
  return fault;
}

ServiceConfig random_service(Rng& rng) {
  ServiceConfig service;
  if (rng.chance(0.4)) {
    service.locks.push_back({.hold = Law::exponential(from_ms(rng.uniform(0.1, 3))),
                             .shards = static_cast<std::uint32_t>(1 + rng.below(8))});
  }
  const std::uint64_t hosts = 1 + rng.below(6);
  for (std::uint64_t i = 0; i < hosts; ++i) {
    HostConfig host{.name = "host", .work = random_law(rng)};
    if (!service.locks.empty() && rng.chance(0.8)) host.lock = 0;
    if (rng.chance(0.4)) host.concurrency = static_cast<std::uint32_t>(1 + rng.below(10));
    host.heeds_cancel = static_cast<HeedsCancel>(rng.below(3));
    for (std::uint64_t faults = rng.below(4); faults > 0; --faults) {
      host.faults.push_back(random_fault(rng));
    }
    service.hosts.push_back(host);
  }
  // Everything stalls at once.
  if (rng.chance(0.5)) {
    const Fault stall{.from = from_ms(rng.uniform(0, 2000)),
                      .until = from_ms(rng.uniform(2000, 4000)),
                      .hang = true};
    for (HostConfig& host : service.hosts) host.faults.push_back(stall);
  }
  if (rng.chance(0.3)) service.network = from_ms(rng.uniform(0, 2));
  return service;
}

Policy random_policy(Rng& rng) {
  const int copies = 1 + static_cast<int>(rng.below(hedge::kHedgesMax));
  if (rng.chance(0.5)) return quantile(rng.uniform(0.3, 0.99), copies);
  return {.kind = Policy::Kind::kFixed, .delay = from_ms(rng.uniform(0, 40)), .copies = copies};
}

SimulationConfig random_config(std::uint64_t seed) {
  Rng rng(seed);
  SimulationConfig config;
  config.seed = seed;
  config.service = random_service(rng);
  config.route.policy = random_policy(rng);
  config.route.budget = {.share = rng.chance(0.1) ? 0 : rng.uniform(0, 0.5),
                         .burst = rng.uniform(0, 20),
                         .floor = rng.uniform(0, 20),
                         .in_flight_share = rng.uniform(0, 1),
                         .in_flight_floor = rng.uniform(0, 10)};
  config.route.samples_min = static_cast<double>(rng.below(100));
  if (rng.chance(0.3)) config.route.breaker.error_rate = 1;
  if (rng.chance(0.5)) config.deadline = from_ms(rng.uniform(5, 2000));
  if (rng.chance(0.1)) config.legs = 3;
  if (rng.chance(0.5)) {
    config.load = ClosedLoad{.in_flight = 1 + rng.below(40), .requests = 600};
  } else {
    config.load = OpenLoad{.rate_per_s = rng.uniform(50, 400), .length = 3s};
  }
  return config;
}

// What must hold at every instant; tells the first breach only.
void expect_lawful(Simulation& simulation, const SimulationConfig& config, bool& breached) {
  if (breached) return;
  const hedge::Counters& c = simulation.route().counters();
  const hedge::Budget& budget = simulation.route().budget();
  const auto requests = static_cast<double>(c.requests);
  std::uint64_t at_hosts = 0;
  for (std::size_t i = 0; i < simulation.route().hosts().size(); ++i) {
    at_hosts += simulation.route().hosts().at(static_cast<hedge::HostIndex>(i)).in_flight;
  }
  const std::uint64_t in_flight = simulation.attempts_in_flight();
  const double spendable = config.route.budget.share * requests + config.route.budget.burst;
  const auto lawful = [&] {
    return static_cast<double>(c.hedges) <= spendable + 1e-6 &&
           c.attempts == c.requests + c.hedges &&
           c.attempts ==
               c.succeeded + c.failed + c.superseded + c.cancelled + c.not_sent + in_flight &&
           c.hedges == c.hedges_after_delay + c.hedges_after_failure &&
           c.hedged_requests <= c.due_requests && c.due_requests <= c.eligible &&
           at_hosts == in_flight && budget.balance() >= 0 &&
           static_cast<std::uint64_t>(budget.primaries_in_flight() + budget.hedges_in_flight()) ==
               in_flight;
  };
  breached = !lawful();
  EXPECT_FALSE(breached) << "seed " << config.seed << " at " << to_ms(simulation.elapsed())
                         << " ms: " << c.hedges << " hedges of " << spendable
                         << " that may be spent, " << c.attempts << " attempts, " << in_flight
                         << " in flight, " << at_hosts << " at hosts";
}

TEST(EngineTest, NeverSpendsMoreThanItsBudgetNorLosesCountInAThousandRandomRuns) {
  std::uint64_t hedges = 0;
  std::uint64_t denied = 0;
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    const SimulationConfig config = random_config(seed);
    Simulation simulation(config);
    bool breached = false;
    simulation.on_event([&] { expect_lawful(simulation, config, breached); });
    simulation.run();
    ASSERT_FALSE(breached);
    const SimulationResult result = simulation.result();
    const hedge::Counters& c = result.counters;
    ASSERT_EQ(result.unfinished, 0u) << "seed " << seed;
    ASSERT_EQ(simulation.attempts_in_flight(), 0u) << "seed " << seed;
    ASSERT_EQ(simulation.service().jobs(), 0u) << "seed " << seed;
    ASSERT_EQ(simulation.route().budget().primaries_in_flight(), 0) << "seed " << seed;
    ASSERT_EQ(simulation.route().budget().hedges_in_flight(), 0) << "seed " << seed;
    ASSERT_EQ(c.answered + c.answered_badly + c.timed_out + c.caller_gone, c.requests)
        << "seed " << seed;
    ASSERT_EQ(result.answered + result.failed, result.requests) << "seed " << seed;
    ASSERT_EQ(result.service.attempts + result.service.refused, c.attempts) << "seed " << seed;
    hedges += c.hedges;
    denied += c.denied[static_cast<std::size_t>(hedge::Denied::kBudget)];
  }
  // Otherwise it has shown nothing.
  EXPECT_GT(hedges, 10'000u);
  EXPECT_GT(denied, 10'000u);
}

// --- What it learns
// -------------------------------------------------------------------------------

// Learning from winners only, or dropping losers, drifts window by window
// (docs/design/estimation.md).
TEST(EngineTest, TheLearnedDelayStaysAtTheTrueQuantileWhileHedgingGoesOn) {
  for (const double q : {0.9, 0.99}) {
    SimulationConfig config;
    config.seed = 11;
    config.route.policy = quantile(q);
    config.route.budget.unlimited = true;
    config.service = reference_service();
    config.load = OpenLoad{.rate_per_s = 3000, .length = 230s};
    Simulation simulation(config);
    const double exact = to_ms(reference_law().quantile(q));
    TimePoint window_end = simulation.now() + 30s;
    simulation.run_until(window_end);
    for (int window = 1; window <= 20; ++window) {
      window_end += 10s;
      simulation.run_until(window_end);
      const hedge::Plan plan = simulation.route().plan_board().read();
      ASSERT_EQ(plan.stages, 1);
      EXPECT_NEAR(to_ms(plan.stage[0].delay), exact, 0.03 * exact)
          << "q " << q << ", window " << window << ", seed 11";
    }
    EXPECT_NEAR(simulation.route().counters().trigger_rate(), 1 - q, 0.1 * (1 - q));
  }
}

// With a hedge at the median, half of the first attempts are lost to view at an earlier time.
TEST(EngineTest, EarlyHedgesDoNotHideTheTailOfFirstAttempts) {
  SimulationConfig config;
  config.seed = 15;
  config.route.policy = {.kind = Policy::Kind::kFixed, .delay = 5ms};
  config.route.budget.unlimited = true;
  config.service = reference_service();
  config.load = OpenLoad{.rate_per_s = 3000, .length = 60s};
  Simulation simulation(config);
  simulation.run_until(simulation.now() + 60s);
  EXPECT_GT(simulation.route().counters().trigger_rate(), 0.4);
  for (const double q : {0.5, 0.8, 0.9}) {
    const std::optional<Duration> learned = simulation.route().first_attempts().quantile(q);
    const double exact = to_ms(reference_law().quantile(q));
    ASSERT_TRUE(learned.has_value());
    EXPECT_NEAR(to_ms(*learned), exact, 0.03 * exact) << "q " << q << ", seed 15";
  }
  EXPECT_NEAR(simulation.route().first_attempts().above(20ms), reference_law().above(20ms), 0.005)
      << "seed 15";
}

// --- When hosts hang, fail or slow down
// -----------------------------------------------------------

TEST(EngineTest, NothingIsLostWhenOneOfThreeHostsHangs) {
  SimulationConfig config;
  config.seed = 12;
  config.route.policy = quantile(0.95);
  config.route.budget = {.share = 0.05, .burst = 10, .floor = 3};
  config.service = reference_service();
  config.service.hosts[0].faults = {{.from = 10s, .until = 20s, .hang = true}};
  config.load = OpenLoad{.rate_per_s = 500, .length = 30s};
  Simulation simulation(config);
  bool breached = false;
  simulation.on_event([&] { expect_lawful(simulation, config, breached); });
  std::uint64_t slow = 0;
  simulation.on_request([&](Duration latency, bool) { slow += latency > 500ms ? 1 : 0; });
  simulation.run();
  const SimulationResult result = simulation.result();
  EXPECT_FALSE(breached);
  EXPECT_EQ(result.answered, result.requests) << "seed 12";
  EXPECT_EQ(result.unfinished, 0u);
  EXPECT_GT(result.counters.hedge_wins, 0u);
  // Its hung attempts make it look busy, so that few requests go there; those are hedged.
  EXPECT_LE(static_cast<double>(slow), 0.005 * static_cast<double>(result.requests)) << "seed 12";
}

TEST(EngineTest, ErrorsEverywhereStopHedgesButNotPrimariesUntilTheyAreOver) {
  SimulationConfig config;
  config.seed = 13;
  config.route.policy = quantile(0.9);
  config.route.budget.unlimited = true;
  config.service = reference_service();
  for (HostConfig& host : config.service.hosts) {
    host.faults = {{.from = 20s, .until = 40s, .error_share = 0.8}};
  }
  config.load = OpenLoad{.rate_per_s = 300, .length = 100s};
  Simulation simulation(config);
  const TimePoint start = simulation.now();
  simulation.run_until(start + 20s);
  EXPECT_EQ(simulation.route().breaker().state(), hedge::Breaker::State::kClosed);
  EXPECT_GT(simulation.route().counters().hedges, 0u);

  simulation.run_until(start + 25s);
  EXPECT_NE(simulation.route().breaker().state(), hedge::Breaker::State::kClosed);
  const hedge::Counters slow = simulation.route().counters();
  simulation.run_until(start + 40s);
  const hedge::Counters& c = simulation.route().counters();
  EXPECT_NEAR(static_cast<double>(c.requests - slow.requests), 15 * 300, 400) << "primaries go on";
  EXPECT_LE(c.hedges - slow.hedges, 15u) << "a probe now and then";
  EXPECT_GT(c.denied[static_cast<std::size_t>(hedge::Denied::kBreaker)], 1000u);

  simulation.run_until(start + 85s);
  EXPECT_EQ(simulation.route().breaker().state(), hedge::Breaker::State::kClosed) << "seed 13";
  const hedge::Counters recovered = simulation.route().counters();
  simulation.run_until(start + 100s);
  EXPECT_NEAR(static_cast<double>(c.hedges - recovered.hedges), 0.1 * 15 * 300, 150)
      << "hedging as before, seed 13";
}

// The baseline comes from the first few hundred samples, and its error must not count as a fault.
TEST(EngineTest, AHealthyServiceIsCalledHealthyWhateverItsFirstRequestsWereLike) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SimulationConfig config;
    config.seed = seed;
    config.route.policy = quantile(0.9);
    config.service = reference_service();
    config.load = OpenLoad{.rate_per_s = 200, .length = 25s};
    const hedge::Verdict verdict = simulate(config).verdict;
    EXPECT_EQ(verdict.layer, findings::Layer::kHealthy)
        << "seed " << seed << ": " << verdict.sentence;
  }
}

// A delay that follows a quantile fires on the same share of requests, however slow the service is.
TEST(EngineTest, ASlowerServiceShowsAtTheBaselineAndNotInTheTriggerRate) {
  SimulationConfig config;
  config.seed = 14;
  config.route.policy = quantile(0.95);
  config.route.budget.unlimited = true;
  config.service = reference_service();
  for (HostConfig& host : config.service.hosts) host.faults = {{.from = 120s, .slow_by = 3}};
  config.load = OpenLoad{.rate_per_s = 500, .length = 500s};
  Simulation simulation(config);
  const TimePoint start = simulation.now();
  simulation.run_until(start + 120s);
  const hedge::Verdict before = simulation.route().verdict(simulation.now());
  EXPECT_EQ(before.layer, findings::Layer::kHealthy) << before.sentence;
  simulation.run_until(start + 500s);
  const hedge::Verdict after = simulation.route().verdict(simulation.now());
  EXPECT_NEAR(after.trigger_rate, 0.05, 0.015) << "seed 14";
  EXPECT_GT(simulation.route().baseline().trigger_rate(), 0.2) << "seed 14";
  EXPECT_TRUE(after.layer == findings::Layer::kWatch || after.layer == findings::Layer::kCause)
      << after.sentence;
}

}  // namespace
}  // namespace tailward::sim
