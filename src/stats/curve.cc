#include "stats/curve.h"

#include <algorithm>
#include <cmath>

namespace tailward::stats {
namespace {

constexpr std::size_t kLast = kBucketCount - 1;

// Latencies below kLowest are counted in the first bucket, which therefore begins at 0.
double begin_ns(std::size_t bucket) {
  return bucket == 0 ? 0 : static_cast<double>(bucket_low(bucket).count());
}
double end_ns(std::size_t bucket) { return static_cast<double>(bucket_high(bucket).count()); }

}  // namespace

Curve::Curve(const Survival& samples) { survival_curve(samples, above_); }

Curve::Curve(const Histogram& samples) {
  const auto total = static_cast<double>(samples.count());
  std::uint64_t left = samples.count();
  for (std::size_t i = 0; i < kBucketCount; ++i) {
    left -= samples.bucket(i);
    set(i, total > 0 ? static_cast<double>(left) / total : 1);
  }
}

Curve Curve::mix(const Curve& a, const Curve& b, double weight) {
  Curve mixed;
  for (std::size_t i = 0; i < kBucketCount; ++i) {
    mixed.set(i, weight * b.at(i) + (1 - weight) * a.at(i));
  }
  return mixed;
}

double Curve::above(Duration t) const {
  if (t <= Duration{0}) return 1;
  if (t > kHighest) return at(kLast);
  const std::size_t i = bucket_of(t);
  const double before = i == 0 ? 1 : at(i - 1);
  const double after = at(i);
  if (before <= after) return after;
  const double begin = begin_ns(i);
  return before + (after - before) * (static_cast<double>(t.count()) - begin) / (end_ns(i) - begin);
}

std::optional<Duration> Curve::quantile(double q) const {
  const double target = (1 - std::clamp(q, 0.0, 1.0)) * kRounding;
  if (target >= 1) return Duration{0};
  const auto* const found = std::partition_point(above_.begin(), above_.end(),
                                                 [target](float above) { return above > target; });
  if (found == above_.end()) return std::nullopt;
  const auto i = static_cast<std::size_t>(found - above_.begin());
  const double before = i == 0 ? 1 : at(i - 1);
  const double share = (before - target) / (before - at(i));
  const double begin = begin_ns(i);
  // Rounded up, so that P(latency > t) is low enough at the whole nanosecond too.
  return Duration{static_cast<std::int64_t>(std::ceil(begin + (end_ns(i) - begin) * share))};
}

Duration Curve::remaining(Duration t, Duration horizon) const {
  t = std::max(t, Duration{0});
  const double reached = above(t);
  if (horizon <= t || reached <= 0) return Duration{0};
  // The trapezia from t to each bucket's end, the last one cut at the horizon.
  const auto last = static_cast<double>(horizon.count());
  auto from = static_cast<double>(t.count());
  double height = reached;
  double area = 0;
  for (std::size_t i = bucket_of(t); i < kBucketCount && from < last; ++i) {
    const double end = std::min(end_ns(i), last);
    if (end <= from) continue;
    const double next = end < end_ns(i) ? above(horizon) : at(i);
    area += (end - from) * (height + next) / 2;
    from = end;
    height = next;
  }
  if (from < last) area += (last - from) * height;
  return Duration{static_cast<std::int64_t>(area / reached)};
}

Duration Curve::longest() const {
  for (std::size_t i = kBucketCount; i-- > 0;) {
    if (at(i) < (i == 0 ? 1 : at(i - 1))) return bucket_high(i);
  }
  return Duration{0};
}

}  // namespace tailward::stats
