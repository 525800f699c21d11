// The survival function S(t) = P(latency > t) from samples of which some are censored: known only
// to have lasted at least that long, because the attempt was cancelled.
//
// Kaplan and Meier, "Nonparametric estimation from incomplete observations", JASA 1958, over the
// buckets of stats/buckets.h: S(t) = Π (1 − finished_i ÷ at_risk_i). Counting losers as finished,
// or leaving them out, is wrong in the two ways that docs/design/estimation.md shows. Within a
// bucket, finished samples come before censored ones. It asks for one thing: that what cancels an
// attempt does not depend on how long that attempt would have taken; a rival's response does not, a
// timeout just above the slow ones' latency does not either, a person's judgement would.
//
// Weights decay by decay(), so that old samples fade; they are floats, for 8 bytes a bucket all
// told. Floats count to 2^24 only: when a bucket reaches 2^23, all weights are halved, which keeps
// every share and understates weight() from then on.
//
// Fixed memory (≤ 12 KiB), no allocation, record in a few ns, queries ≤ 2 µs.
// Thread safety: one writer, no reader beside it; copy it to hand it to another thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "base/time.h"
#include "stats/buckets.h"

namespace tailward::stats {

class Survival {
 public:
  // Finished after that time.
  void record(Duration latency) { add(finished_, finished_weight_, latency); }
  // Still running when it was given up.
  void record_censored(Duration at_least) { add(censored_, censored_weight_, at_least); }
  // Multiplies all weights by `factor` (taken into 0…1) and drops what has become negligible (<
  // 1e-6 in a bucket).
  void decay(double factor);
  // Adds the other's weights, each times `weight`. REQUIRES: weight ≥ 0.
  void merge(const Survival& other, double weight = 1);
  void clear() { *this = Survival(); }

  // Finished and censored, decayed.
  [[nodiscard]] double weight() const { return finished_weight_ + censored_weight_; }
  [[nodiscard]] double finished_weight() const { return finished_weight_; }

  // P(latency > t); linear within a bucket is not attempted: the bucket's end counts. 1 when empty.
  // Beyond the longest sample it stays what it was there, which is too much if that was censored.
  [[nodiscard]] double above(Duration t) const;
  // Smallest t with P(latency > t) ≤ 1−q, as a bucket's middle. Empty when the samples do not reach
  // so far: nothing recorded, or the largest are all censored.
  [[nodiscard]] std::optional<Duration> quantile(double q) const;

 private:
  friend void survival_curve(const Survival& from, std::array<float, kBucketCount>& above);
  using Weights = std::array<float, kBucketCount>;
  static constexpr float kFull = 0x1p23F;

  void add(Weights& weights, double& total, Duration latency) {
    const std::size_t bucket = bucket_of(latency);
    const float before = weights[bucket];
    const float after = before + 1;
    weights[bucket] = after;
    total += static_cast<double>(after - before);  // what the float took: the sums must agree
    lowest_ = std::min(lowest_, static_cast<std::uint32_t>(bucket));
    highest_ = std::max(highest_, static_cast<std::uint32_t>(bucket));
    if (after >= kFull) [[unlikely]]
      decay(0.5);
  }

  // Walks up the buckets, the product in hand, to the first one that has finished samples and after
  // which S ≤ `target`, or else to `last`.
  struct Step {
    double above;
    std::size_t bucket;
    bool found;
  };
  [[nodiscard]] Step walk(std::size_t last, double target) const;
  [[nodiscard]] bool empty() const { return lowest_ > highest_; }

  double finished_weight_ = 0;
  double censored_weight_ = 0;
  std::uint32_t lowest_ = kBucketCount;  // the populated buckets lie within lowest_…highest_
  std::uint32_t highest_ = 0;
  Weights finished_{};
  Weights censored_{};
};

static_assert(sizeof(Survival) <= 12 * 1024);

// Fills `above[i]` = P(latency > bucket_high(i) − 1 ns) for all buckets: what a planner scans.
void survival_curve(const Survival& from, std::array<float, kBucketCount>& above);

}  // namespace tailward::stats
