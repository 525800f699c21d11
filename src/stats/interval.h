// Confidence intervals and ranks.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <span>

#include "base/time.h"

namespace tailward::stats {

struct DurationInterval {
  Duration low{};
  Duration high{};
  // False: the sample is too small for one of the ends, which is then its smallest or largest value
  // and bounds nothing.
  bool bounded = true;
};

struct ShareInterval {
  double low = 0;
  double high = 1;
};

// Wilson's score interval of a share (Wilson 1927; Brown, Cai, DasGupta 2001 recomfix it for small
// counts). n = 0 gives 0…1. Counts need not be whole: decayed weights will do.
// REQUIRES: 0 < confidence < 1.
ShareInterval share_interval(double successes, double n, double confidence = 0.95);

// Ranks (1-based) of the order statistics that enclose the q-quantile of n values with at least
// that confidence, whatever the distribution, ties included (exact binomial, equal tails; David and
// Nagaraja, "Order Statistics", 2003, section 7.1). low 0 or high n+1: no such bound in this
// sample. REQUIRES: 0 < confidence < 1. A q outside 0…1 is taken as the nearer end. A few µs.
struct RankInterval {
  std::uint64_t low;
  std::uint64_t high;
};
RankInterval quantile_ranks(std::uint64_t n, double q, double confidence = 0.95);

// The rank (1-based) of the q-quantile among n values, nearest rank: ⌈q·n⌉, at least 1. The
// product's rounding is forgiven: 0.07 of 100 is rank 7. 0 when n is 0.
std::uint64_t nearest_rank(std::uint64_t n, double q);

// Student's interval of a mean, from independent values: exact for normal ones, good for means of
// anything from ten values on ("Student", Biometrika 1908). Fewer than two values: −∞…∞ around what
// there is.
struct MeanInterval {
  double mean = 0;
  double low = 0;
  double high = 0;
};
MeanInterval mean_interval(std::span<const double> values, double confidence = 0.95);

// The standard normal quantile. REQUIRES: 0 < p < 1.
double normal_quantile(double p);

}  // namespace tailward::stats
