#include "stats/histogram.h"

#include "base/check.h"

namespace tailward::stats {

void Histogram::merge(const Histogram& other) {
  for (std::size_t i = 0; i < kBucketCount; ++i) counts_[i] += other.counts_[i];
  sum_ns_ += other.sum_ns_;
  count_ += other.count_;
  out_of_range_ += other.out_of_range_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
}

double Histogram::mean_ns() const {
  return count_ == 0 ? 0 : static_cast<double>(sum_ns_) / static_cast<double>(count_);
}

std::size_t Histogram::bucket_of_rank(std::uint64_t rank) const {
  TAILWARD_CHECK(rank >= 1 && rank <= count_);
  // From the nearer end: it is mostly high quantiles that are asked for.
  if (rank > count_ / 2) {
    std::uint64_t above = count_ - rank;
    std::size_t i = bucket_of(max_);
    while (counts_[i] <= above) above -= counts_[i--];
    return i;
  }
  std::uint64_t below = rank - 1;
  std::size_t i = bucket_of(min_);
  while (counts_[i] <= below) below -= counts_[i++];
  return i;
}

Duration Histogram::quantile(double q) const {
  if (count_ == 0) return Duration{0};
  const std::uint64_t rank = nearest_rank(count_, q);
  if (rank == count_) return max_;
  if (rank == 1) return min_;
  return std::clamp(bucket_middle(bucket_of_rank(rank)), min_, max_);
}

DurationInterval Histogram::quantile_interval(double q, double confidence) const {
  if (count_ == 0) return {Duration{0}, Duration{0}, false};
  const RankInterval ranks = quantile_ranks(count_, q, confidence);
  DurationInterval interval{min_, max_, ranks.low >= 1 && ranks.high <= count_};
  // The outermost buckets also hold what lies beyond their bounds.
  if (ranks.low >= 1) {
    const std::size_t bucket = bucket_of_rank(ranks.low);
    if (bucket > 0) interval.low = std::max(min_, bucket_low(bucket));
  }
  if (ranks.high <= count_) {
    const std::size_t bucket = bucket_of_rank(ranks.high);
    if (bucket + 1 < kBucketCount) interval.high = std::min(max_, bucket_high(bucket));
  }
  return interval;
}

std::uint64_t Histogram::count_above(Duration latency) const {
  std::uint64_t above = 0;
  for (std::size_t i = bucket_of(latency) + 1; i < kBucketCount; ++i) above += counts_[i];
  return above;
}

}  // namespace tailward::stats
