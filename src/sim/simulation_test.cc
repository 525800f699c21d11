#include "sim/simulation.h"

#include <gtest/gtest.h>

#include <numeric>

namespace tailward::sim {
namespace {

using namespace std::chrono_literals;

hedge::Policy fixed(Duration delay) {
  return {.kind = hedge::Policy::Kind::kFixed, .delay = delay};
}

SimulationConfig config_of(const Law& work, int hosts = 2) {
  SimulationConfig config;
  for (int i = 0; i < hosts; ++i) config.service.hosts.push_back({.name = "host", .work = work});
  config.route.budget.unlimited = true;
  return config;
}

TEST(SimulationTest, TheSameSeedGivesTheSameRunAndAnotherSeedAnother) {
  SimulationConfig config = config_of(Law::exponential(10ms), 3);
  config.route.policy = fixed(15ms);
  config.load = OpenLoad{.rate_per_s = 500, .length = 5s};
  config.seed = 1;
  const SimulationResult once = simulate(config);
  const SimulationResult again = simulate(config);
  EXPECT_EQ(once.digest, again.digest);
  EXPECT_EQ(once.requests, again.requests);
  EXPECT_EQ(once.latency.quantile(0.99), again.latency.quantile(0.99));
  config.seed = 2;
  EXPECT_NE(simulate(config).digest, once.digest);
}

TEST(SimulationTest, RunningInStepsIsRunningAtOnce) {
  SimulationConfig config = config_of(Law::exponential(10ms), 3);
  config.route.policy = fixed(15ms);
  config.load = ClosedLoad{.in_flight = 5, .requests = 1000};
  Simulation steps(config);
  for (TimePoint at = steps.now(); steps.step(); at += 7ms) steps.run_until(at);
  EXPECT_EQ(steps.result().digest, simulate(config).digest);
}

TEST(SimulationTest, WatchingARunDoesNotChangeIt) {
  SimulationConfig config = config_of(Law::exponential(10ms), 3);
  config.route.policy = fixed(15ms);
  config.load = ClosedLoad{.in_flight = 5, .requests = 1000};
  Simulation watched(config);
  std::uint64_t events = 0;
  std::uint64_t requests = 0;
  watched.on_event([&] { ++events; });
  watched.on_request([&](Duration, bool answered) { requests += answered ? 1 : 0; });
  watched.run();
  EXPECT_EQ(watched.result().digest, simulate(config).digest);
  EXPECT_EQ(requests, 1000u);
  EXPECT_GT(events, 2000u);
}

TEST(SimulationTest, AClosedLoopKeepsItsNumberInFlight) {
  SimulationConfig config = config_of(Law::constant(10ms));
  config.load = ClosedLoad{.in_flight = 4, .requests = 40};
  const SimulationResult result = simulate(config);
  EXPECT_EQ(result.requests, 40u);
  EXPECT_EQ(result.answered, 40u);
  EXPECT_EQ(result.length, 100ms);
  EXPECT_EQ(result.service.attempts, 40u);
  EXPECT_EQ(result.latency.min(), 10ms);
  EXPECT_EQ(result.latency.max(), 10ms);
}

TEST(SimulationTest, AClosedLoopOfFewerRequestsThanItMaySendSendsThemAll) {
  SimulationConfig config = config_of(Law::constant(10ms));
  config.load = ClosedLoad{.in_flight = 4, .requests = 3};
  EXPECT_EQ(simulate(config).answered, 3u);
  config.load = ClosedLoad{.in_flight = 4, .requests = 0};
  EXPECT_EQ(simulate(config).requests, 0u);
}

TEST(SimulationTest, AnOpenLoopArrivesAtItsRateHoweverSlowTheService) {
  SimulationConfig config = config_of(Law::constant(3s));
  config.load =
      OpenLoad{.rate_per_s = 100, .length = 10s, .arrivals = OpenLoad::Arrivals::kUniform};
  const SimulationResult uniform = simulate(config);
  EXPECT_EQ(uniform.requests, 999u) << "at 10 ms, 20 ms … below 10 s";
  EXPECT_EQ(uniform.answered, 999u);
  EXPECT_EQ(uniform.length, 10s - 10ms + 3s);
  config.load = OpenLoad{.rate_per_s = 100, .length = 100s};
  const auto poisson = static_cast<double>(simulate(config).requests);
  EXPECT_NEAR(poisson, 10'000, 500) << "seed 1";
}

TEST(SimulationTest, AnOpenLoopCountsWhatItDrops) {
  SimulationConfig config = config_of(Law::constant(3s));
  config.load = OpenLoad{.rate_per_s = 100,
                         .length = 1s,
                         .arrivals = OpenLoad::Arrivals::kUniform,
                         .in_flight_max = 60};
  const SimulationResult result = simulate(config);
  EXPECT_EQ(result.requests, 60u);
  EXPECT_EQ(result.dropped, 39u);
}

TEST(SimulationTest, AHedgeLeavesAtItsDelayAndItsResponseCounts) {
  SimulationConfig config = config_of(Law::constant(100ms));
  config.route.policy = fixed(30ms);
  config.load = ClosedLoad{.in_flight = 1, .requests = 10};
  // Whatever was sent in the first second hangs for ever, on both hosts.
  for (HostConfig& host : config.service.hosts) host.faults = {{.until = 1s, .hang = true}};
  const SimulationResult result = simulate(config);
  EXPECT_EQ(result.counters.hedges, 10u);
  EXPECT_EQ(result.latency.max(), 1100ms);
  EXPECT_EQ(result.latency.min(), 100ms);
  EXPECT_EQ(result.counters.superseded, 10u);
}

TEST(SimulationTest, TheNetworkIsPaidTwice) {
  SimulationConfig config = config_of(Law::constant(10ms));
  config.service.network = 2ms;
  config.load = ClosedLoad{.in_flight = 1, .requests = 10};
  const SimulationResult result = simulate(config);
  EXPECT_EQ(result.latency.min(), 14ms);
  EXPECT_EQ(result.latency.max(), 14ms);
}

TEST(SimulationTest, ARequestOfManyLegsIsAsSlowAsTheSlowestOfThem) {
  SimulationConfig config = config_of(Law::uniform(10ms, 20ms));
  config.legs = 50;
  config.load = ClosedLoad{.in_flight = 2, .requests = 100};
  const SimulationResult result = simulate(config);
  EXPECT_EQ(result.answered, 100u);
  EXPECT_EQ(result.latency.count(), 100u);
  EXPECT_EQ(result.counters.requests, 5000u);
  EXPECT_GE(result.latency.quantile(0.1), 19ms);
  EXPECT_LE(result.latency.max(), 20ms);
}

TEST(SimulationTest, OneBadLegFailsTheRequest) {
  SimulationConfig config = config_of(Law::constant(10ms));
  config.service.hosts[0].faults = {{.error_share = 1}};
  config.legs = 20;
  config.load = ClosedLoad{.in_flight = 1, .requests = 10};
  const SimulationResult result = simulate(config);
  EXPECT_EQ(result.failed, 10u);
  EXPECT_EQ(result.latency.count(), 0u);
}

TEST(SimulationTest, TheDeadlineEndsWhatHangs) {
  SimulationConfig config = config_of(Law::constant(10ms));
  for (HostConfig& host : config.service.hosts) host.faults = {{.hang = true}};
  config.deadline = 200ms;
  config.load = ClosedLoad{.in_flight = 2, .requests = 10};
  const SimulationResult result = simulate(config);
  EXPECT_EQ(result.failed, 10u);
  EXPECT_EQ(result.counters.timed_out, 10u);
  EXPECT_EQ(result.length, 1s);
}

TEST(SimulationTest, EndsWhenNothingWillEverHappen) {
  SimulationConfig config = config_of(Law::constant(10ms));
  for (HostConfig& host : config.service.hosts) host.faults = {{.from = 15ms, .hang = true}};
  config.load = ClosedLoad{.in_flight = 2, .requests = 10};
  const SimulationResult result = simulate(config);
  EXPECT_EQ(result.answered, 2u);
  EXPECT_EQ(result.unfinished, 2u);
}

TEST(SimulationTest, GoesOnUntilTheHostsAreDoneWithTheLosers) {
  SimulationConfig config = config_of(Law::constant(10ms));
  config.service.hosts[1].work = Law::constant(1s);
  for (HostConfig& host : config.service.hosts) host.heeds_cancel = HeedsCancel::kNever;
  config.route.policy = fixed(1ms);
  config.load = ClosedLoad{.in_flight = 1, .requests = 10};
  Simulation simulation(config);
  simulation.run();
  EXPECT_LE(simulation.result().length, 110ms);
  EXPECT_GE(simulation.elapsed(), 1s);
  EXPECT_EQ(simulation.service().jobs(), 0u);
  EXPECT_EQ(simulation.service().counters().unwanted, 10u);
}

TEST(SimulationTest, TheSecondsAddUpToTheWhole) {
  SimulationConfig config = config_of(Law::exponential(20ms));
  config.service.locks = {{.hold = Law::exponential(2ms)}};
  for (HostConfig& host : config.service.hosts) host.lock = 0;
  config.route.policy = fixed(40ms);
  config.load = OpenLoad{.rate_per_s = 300, .length = 5s};
  const SimulationResult result = simulate(config);
  ASSERT_GE(result.seconds.size(), 5u);
  std::uint64_t requests = 0;
  std::uint64_t attempts = 0;
  Duration lock_wait{};
  for (std::size_t i = 0; i < result.seconds.size(); ++i) {
    const Second& second = result.seconds[i];
    EXPECT_EQ(second.at, std::chrono::seconds(i));
    requests += second.requests;
    attempts += second.attempts;
    lock_wait += second.lock_wait;
  }
  EXPECT_EQ(requests, result.requests);
  EXPECT_EQ(attempts, result.counters.attempts);
  EXPECT_EQ(lock_wait, result.lock_wait);
  EXPECT_GT(lock_wait, Duration{0});
  EXPECT_GT(result.seconds[2].trigger_rate, 0);
  EXPECT_GT(result.seconds[2].p99, result.seconds[2].p50);
  EXPECT_GT(result.seconds[2].in_flight, 0u);
  EXPECT_EQ(result.seconds.back().in_flight, 0u);
}

}  // namespace
}  // namespace tailward::sim
