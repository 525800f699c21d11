// How a rare slow response becomes the common one: a request that needs all of its N legs is as
// slow as the slowest.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>

#include "stats/histogram.h"
#include "stats/interval.h"

namespace tailward::sim {

struct FanoutResult {
  std::uint32_t n = 0;
  std::uint64_t samples = 0;
  std::uint64_t slow = 0;  // requests of 1 s and more
  double slow_share = 0;
  stats::ShareInterval interval;  // Wilson, 95 %
  double theory = 0;              // 1 − 0.99^n
  stats::Histogram latency;
};

// `samples` requests of n legs, one request after the other, through the event queue, unhedged;
// every leg from fanout_law() (sim/scenario.h). REQUIRES: n > 0, samples > 0.
FanoutResult simulate_fanout(std::uint32_t n, std::uint64_t samples, std::uint64_t seed);

}  // namespace tailward::sim
