// Services that the published measurements were made with, ready to be simulated.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>

#include "sim/simulation.h"

namespace tailward::sim {

// The reference benchmark of bhope/hedge: lognormal, mean 5 ms, standard deviation 2 ms; 5 % of the
// attempts take ten times as long.
Law reference_law();
ServiceConfig reference_service(int hosts = 3);

// Hedging against a contended lock: held 1–2 ms, then outside of it 90 % 10–50 ms, 10 % 200–500 ms.
// One server, which does not look for cancellations in its lock phase, reached in two ways, so that
// a hedge has somewhere to go. `shards` locks by key.
Law locked_work_law();
Law locked_hold_law();
ServiceConfig locked_service(std::uint32_t shards = 1);
// What its measurements did: 2,000 requests, 50 in flight, no budget.
SimulationConfig locked_experiment(std::uint32_t shards, const hedge::Policy& policy,
                                   std::uint64_t seed);

// A node of the fan-out measurement: 99 % 10–100 ms, 1 % 1–2 s.
Law fanout_law();

// A node of the production story: lognormal, mean 16 ms, standard deviation 8 ms; 7 requests in
// 10,000 take 0.8–1.2 s. Its hot lock is held 0.3–0.7 ms.
Law production_work_law();
Law production_hold_law();

}  // namespace tailward::sim
