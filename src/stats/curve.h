// A latency distribution made ready for being asked often: P(latency > t), linear within a bucket.
//
// Built from samples, or from other curves; then immutable in use. Where the longest samples are
// censored, or there are none, the curve ends above zero: nothing is known beyond, and the share
// that is left counts as longer than any time that is asked for.
//
// Thread safety: a const Curve may be shared. 5 KiB, no allocation.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "base/time.h"
#include "stats/buckets.h"
#include "stats/histogram.h"
#include "stats/survival.h"

namespace tailward::stats {

class Curve {
 public:
  // Shares are kept as floats; a quantile that falls on a step exactly must not be missed by their
  // rounding.
  static constexpr double kRounding = 1 + 0x1p-23;

  // Nothing is known: P(latency > t) = 1 for every t.
  Curve() { above_.fill(1); }
  explicit Curve(const Survival& samples);
  explicit Curve(const Histogram& samples);
  // Of two kinds of samples, `weight` (0…1) of the second: w·b + (1−w)·a, point by point.
  static Curve mix(const Curve& a, const Curve& b, double weight);

  // P(latency > t); 1 for t ≤ 0. A few ns. The first bucket begins at 0: it holds all below
  // kLowest.
  [[nodiscard]] double above(Duration t) const;
  // Smallest t with P(latency > t) ≤ 1−q; empty when the curve ends above that. O(log buckets).
  [[nodiscard]] std::optional<Duration> quantile(double q) const;
  // E[min(latency, horizon) − t | latency > t]: what is still to be waited for after t, the unknown
  // share counted up to the horizon. 0 when P(latency > t) is 0.
  [[nodiscard]] Duration remaining(Duration t, Duration horizon) const;
  // The end of the last bucket in which P falls; 0 when it never does.
  [[nodiscard]] Duration longest() const;

  // P(latency > bucket_high(i)): for scans and for building curves. REQUIRES: i < kBucketCount; the
  // values set must not rise.
  [[nodiscard]] double at(std::size_t i) const { return above_[i]; }
  void set(std::size_t i, double above) { above_[i] = static_cast<float>(above); }

 private:
  std::array<float, kBucketCount> above_;
};

}  // namespace tailward::stats
