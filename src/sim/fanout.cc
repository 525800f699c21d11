#include "sim/fanout.h"

#include <cmath>

#include "base/check.h"
#include "sim/scenario.h"

namespace tailward::sim {

FanoutResult simulate_fanout(std::uint32_t n, std::uint64_t samples, std::uint64_t seed) {
  TAILWARD_CHECK(samples > 0);
  SimulationConfig config;
  config.service.hosts.push_back({.name = "node", .work = fanout_law()});
  config.load = ClosedLoad{.in_flight = 1, .requests = samples};
  config.legs = n;
  config.seed = seed;
  // Its own count of the slow ones: a histogram's bucket would straddle the limit.
  FanoutResult result;
  Simulation simulation(config);
  simulation.on_request([&result](Duration latency, bool) {
    if (latency >= std::chrono::seconds(1)) ++result.slow;
  });
  simulation.run();
  result.n = n;
  result.samples = samples;
  const auto slow = static_cast<double>(result.slow);
  const auto all = static_cast<double>(samples);
  result.slow_share = slow / all;
  result.interval = stats::share_interval(slow, all);
  result.theory = 1 - std::pow(0.99, n);
  result.latency = simulation.result().latency;
  return result;
}

}  // namespace tailward::sim
