#include "stats/survival.h"

#include "base/check.h"

namespace tailward::stats {
namespace {

constexpr float kNegligible = 1e-6F;
// A quantile that falls on a step exactly must not be missed by the product's rounding.
constexpr double kRounding = 1 + 1e-9;

}  // namespace

void Survival::decay(double factor) {
  const auto by = static_cast<float>(factor > 0 ? std::min(factor, 1.0) : 0.0);
  std::uint32_t lowest = kBucketCount;
  std::uint32_t highest = 0;
  finished_weight_ = 0;
  censored_weight_ = 0;
  for (std::uint32_t i = lowest_; i <= highest_; ++i) {
    const float finished = finished_[i] * by;
    const float censored = censored_[i] * by;
    finished_[i] = finished < kNegligible ? 0 : finished;
    censored_[i] = censored < kNegligible ? 0 : censored;
    finished_weight_ += static_cast<double>(finished_[i]);
    censored_weight_ += static_cast<double>(censored_[i]);
    if (finished_[i] > 0 || censored_[i] > 0) {
      lowest = std::min(lowest, i);
      highest = i;
    }
  }
  lowest_ = lowest;
  highest_ = highest;
}

void Survival::merge(const Survival& other, double weight) {
  TAILWARD_CHECK(weight >= 0);
  if (other.empty() || weight == 0) return;
  const auto by = static_cast<float>(weight);
  float largest = 0;
  for (std::uint32_t i = other.lowest_; i <= other.highest_; ++i) {
    finished_[i] += other.finished_[i] * by;
    censored_[i] += other.censored_[i] * by;
    largest = std::max({largest, finished_[i], censored_[i]});
  }
  lowest_ = std::min(lowest_, other.lowest_);
  highest_ = std::max(highest_, other.highest_);
  double factor = 1;
  while (static_cast<double>(largest) * factor >= static_cast<double>(kFull)) factor /= 2;
  decay(factor);  // with 1, sums up and drops what `weight` has made negligible
}

Survival::Step Survival::walk(std::size_t last, double target) const {
  const auto finished = [this](std::size_t i) { return static_cast<double>(finished_[i]); };
  const auto censored = [this](std::size_t i) { return static_cast<double>(censored_[i]); };
  const std::size_t end = std::min<std::size_t>(last, highest_);
  double at_risk = weight();
  double above = 1;
  std::size_t i = lowest_;
  // Four buckets at a time, with one division and short chains of dependent operations: this is
  // what the hedging delay waits for on every tick. Stops short of the highest bucket, of which the
  // loop below takes care, and where rounding has used up the weight at risk.
  for (; i + 4 <= end; i += 4) {
    const double f0 = finished(i), f1 = finished(i + 1), f2 = finished(i + 2), f3 = finished(i + 3);
    const double w0 = f0 + censored(i);
    const double w01 = w0 + (f1 + censored(i + 1));
    const double w2 = f2 + censored(i + 2);
    const double risk1 = at_risk - w0;
    const double risk2 = at_risk - w01;
    const double risk3 = at_risk - (w01 + w2);
    const double rest = at_risk - (w01 + (w2 + (f3 + censored(i + 3))));
    if (!(rest > 0)) break;
    const double left = ((at_risk - f0) * (risk1 - f1)) * ((risk2 - f2) * (risk3 - f3));
    const double next = above * (left / ((at_risk * risk1) * (risk2 * risk3)));
    if (next <= target) break;
    above = next;
    at_risk = rest;
  }
  for (; i <= end; ++i) {
    const double f = finished(i);
    const double own = f + censored(i);
    if (own <= 0) continue;
    // At the end no rounding may be left over: S is 0 when the longest sample has finished.
    at_risk = i == highest_ ? own : std::max(at_risk, own);
    above *= (at_risk - f) / at_risk;
    at_risk -= own;
    if (f > 0 && above <= target) return {above, i, true};
  }
  return {above, end, false};
}

double Survival::above(Duration t) const {
  const std::size_t last = bucket_of(t);
  if (empty() || last < lowest_) return 1;
  return walk(last, -1).above;
}

std::optional<Duration> Survival::quantile(double q) const {
  if (empty()) return std::nullopt;
  const double share = q > 0 ? std::min(q, 1.0) : 0.0;
  const Step step = walk(kBucketCount - 1, (1 - share) * kRounding);
  if (!step.found) return std::nullopt;
  return bucket_middle(step.bucket);
}

void survival_curve(const Survival& from, std::array<float, kBucketCount>& above) {
  double at_risk = from.weight();
  double share = 1;
  for (std::size_t i = 0; i < kBucketCount; ++i) {
    const auto finished = static_cast<double>(from.finished_[i]);
    const double own = finished + static_cast<double>(from.censored_[i]);
    if (own > 0) {
      at_risk = i == from.highest_ ? own : std::max(at_risk, own);
      share *= (at_risk - finished) / at_risk;
      at_risk -= own;
    }
    above[i] = static_cast<float>(share);
  }
}

}  // namespace tailward::stats
