#include "sim/scenario.h"

#include <fmt/format.h>

namespace tailward::sim {

using namespace std::chrono_literals;

Law reference_law() {
  const Law usual = Law::lognormal(5ms, 2ms);
  return Law::mixture({{0.95, usual}, {0.05, usual.scaled(10)}});
}

ServiceConfig reference_service(int hosts) {
  ServiceConfig service;
  for (int i = 0; i < hosts; ++i) {
    service.hosts.push_back({.name = fmt::format("host{}", i), .work = reference_law()});
  }
  return service;
}

Law locked_work_law() {
  return Law::mixture({{0.9, Law::uniform(10ms, 50ms)}, {0.1, Law::uniform(200ms, 500ms)}});
}

Law locked_hold_law() { return Law::uniform(1ms, 2ms); }

ServiceConfig locked_service(std::uint32_t shards) {
  ServiceConfig service;
  service.locks.push_back({.hold = locked_hold_law(), .shards = shards});
  for (int i = 0; i < 2; ++i) {
    service.hosts.push_back({.name = "server",
                             .work = locked_work_law(),
                             .lock = 0,
                             .heeds_cancel = HeedsCancel::kOutsideLock});
  }
  return service;
}

SimulationConfig locked_experiment(std::uint32_t shards, const hedge::Policy& policy,
                                   std::uint64_t seed) {
  SimulationConfig config;
  config.route.policy = policy;
  config.route.budget.unlimited = true;
  config.service = locked_service(shards);
  config.load = ClosedLoad{.in_flight = 50, .requests = 2000};
  config.seed = seed;
  return config;
}

Law fanout_law() {
  return Law::mixture({{0.99, Law::uniform(10ms, 100ms)}, {0.01, Law::uniform(1s, 2s)}});
}

Law production_work_law() {
  return Law::mixture({{0.9993, Law::lognormal(16ms, 8ms)}, {0.0007, Law::uniform(800ms, 1200ms)}});
}

Law production_hold_law() { return Law::uniform(300us, 700us); }

}  // namespace tailward::sim
