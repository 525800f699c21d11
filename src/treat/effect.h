// The difference between two groups of connections, and how sure it is.
//
// Pure; safe from any thread.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/rng.h"
#include "base/time.h"

namespace tailward::treat {

// What depends on each other: the latencies of one connection, or of one slice of time.
using Cluster = std::vector<Duration>;

struct Effect {
  Duration treated{};  // median over all of that group
  Duration untreated{};
  Duration difference{};  // treated − untreated: below 0 where the treatment makes it faster
  Duration low{};
  Duration high{};
  // False: fewer than two clusters in a group; low and high are then the difference.
  bool bounded = false;
  [[nodiscard]] bool shown() const { return bounded && (high < Duration{0} || low > Duration{0}); }
};

// The difference of the medians, with a 95 % interval from a bootstrap that draws whole clusters
// (Davison and Hinkley, "Bootstrap Methods and their Application", 1997, section 3.8), since
// requests of one connection are alike. As a percentile interval of few clusters is too narrow, its
// percentiles are moved outwards by Student's factor (Hesterberg, "What Teachers Should Know About
// the Bootstrap", The American Statistician 2015, "expanded percentile interval").
// Empty when a group has no latencies at all. Empty clusters are left out.
std::optional<Effect> median_effect(std::span<const Cluster> treated,
                                    std::span<const Cluster> untreated, Rng& rng);

}  // namespace tailward::treat
