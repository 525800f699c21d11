// A histogram of latencies: exact counts in the buckets of stats/buckets.h.
//
// Fixed memory (9 KiB), no allocation, record() in a few nanoseconds.
// Thread safety: one writer and no reader beside it; copy it to hand it to another thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/time.h"
#include "stats/buckets.h"
#include "stats/interval.h"

namespace tailward::stats {

class Histogram {
 public:
  // A negative latency, which only a faulty clock makes, counts as 0.
  void record(Duration latency, std::uint64_t times = 1) {
    if (times == 0) return;
    latency = std::max(latency, Duration{0});
    counts_[bucket_of(latency)] += times;
    count_ += times;
    sum_ns_ += static_cast<Sum>(latency.count()) * times;
    min_ = std::min(min_, latency);
    max_ = std::max(max_, latency);
    if (latency < kLowest || latency > kHighest) out_of_range_ += times;
  }
  void merge(const Histogram& other);
  void clear() { *this = Histogram(); }

  [[nodiscard]] std::uint64_t count() const { return count_; }
  // Latencies outside kLowest…kHighest: counted in the outermost buckets and here.
  [[nodiscard]] std::uint64_t out_of_range() const { return out_of_range_; }
  [[nodiscard]] Duration min() const { return count_ == 0 ? Duration{0} : min_; }  // exact
  [[nodiscard]] Duration max() const { return max_; }                              // exact
  [[nodiscard]] double mean_ns() const;  // exact sum ÷ count; 0 when empty

  // The q-quantile, nearest rank, 0 ≤ q ≤ 1, within kRelativeError and clamped to min()…max(),
  // which are also what the first and the last rank give. 0 when empty. Where out-of-range
  // latencies fill an outermost bucket, its middle stands for them.
  [[nodiscard]] Duration quantile(double q) const;
  // The distribution-free interval of the q-quantile from order statistics (binomial ranks): the
  // true quantile lies in it with at least the stated confidence. The ends are the buckets' outer
  // bounds, so that bucketing takes nothing from the confidence. Where the sample is too small for
  // an upper bound, high is max(), for a lower one, low is min(), and `bounded` is false. 0…0 and
  // not bounded when empty.
  [[nodiscard]] DurationInterval quantile_interval(double q, double confidence = 0.95) const;
  // How many were longer than `latency` (by buckets: the bucket it falls in counts as not longer).
  [[nodiscard]] std::uint64_t count_above(Duration latency) const;
  // REQUIRES: index < kBucketCount.
  [[nodiscard]] std::uint64_t bucket(std::size_t index) const { return counts_[index]; }

 private:
  // 64 bits of nanoseconds are full after 5 million latencies of one hour.
  __extension__ using Sum = unsigned __int128;

  // The bucket of the value of that rank. REQUIRES: 1 ≤ rank ≤ count_.
  [[nodiscard]] std::size_t bucket_of_rank(std::uint64_t rank) const;

  Sum sum_ns_ = 0;
  std::uint64_t count_ = 0;
  std::uint64_t out_of_range_ = 0;
  Duration min_ = Duration::max();
  Duration max_{0};
  std::array<std::uint64_t, kBucketCount> counts_{};
};

}  // namespace tailward::stats
