// When a first attempt is to be hedged on a host that is not like the others.
//
// The plan's delay holds for hosts that are alike. The rule behind it is one of residuals: hedge
// when what is still to be waited for here, given what has passed, is longer than what it was worth
// at the plan's delay on the pool as a whole, and longer than a fresh attempt elsewhere. On a host
// whose tail is fatter that is the case earlier; where the rest is short, never. A marginal
// quantile cannot see that, and drifts away with the slow host's share of the traffic
// (docs/design/hedging.md).
//
// Thread safety: pure functions.
#pragma once

#include <optional>

#include "base/time.h"
#include "stats/curve.h"
#include "stats/survival.h"

namespace tailward::hedge {

// The earliest t at which E[min(latency, horizon) − t | latency > t] ≥ `worth`; kForever when there
// is none. O(buckets).
Duration earliest_worth(const stats::Curve& host, Duration worth, Duration horizon);

// Whether more of the host's first attempts outlast `delay` than of the pool's, beyond doubt (99 %)
// and by half as many again at least.
bool fatter_tail(const stats::Survival& host, const stats::Curve& pool, Duration delay);

// The delay of the first hedge on that host, or empty: as the plan says. `delay` is the plan's
// first.
std::optional<Duration> per_host_delay(const stats::Survival& host, const stats::Curve& pool,
                                       Duration delay);

}  // namespace tailward::hedge
