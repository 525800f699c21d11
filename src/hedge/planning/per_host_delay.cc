#include "hedge/planning/per_host_delay.h"

#include <algorithm>

#include "stats/interval.h"

namespace tailward::hedge {

Duration earliest_worth(const stats::Curve& host, Duration worth, Duration horizon) {
  const double wanted = static_cast<double>(worth.count());
  // Backwards, the integral of P(latency > t) in hand; the last hit is the earliest.
  double integral = 0;
  Duration earliest = kForever;
  for (std::size_t i = stats::kBucketCount; i-- > 0;) {
    const Duration end = stats::bucket_high(i);
    if (end >= horizon) {
      integral = host.at(i) *
                 static_cast<double>((horizon - std::min(stats::bucket_low(i), horizon)).count());
    } else {
      const double before = i == 0 ? 1 : host.at(i - 1);
      integral +=
          (before + host.at(i)) / 2 * static_cast<double>((end - stats::bucket_low(i)).count());
    }
    const double above = i == 0 ? 1 : host.at(i - 1);
    if (above > 0 && integral / above >= wanted) earliest = stats::bucket_low(i);
  }
  return earliest <= stats::bucket_low(0) ? Duration{} : earliest;
}

bool fatter_tail(const stats::Survival& host, const stats::Curve& pool, Duration delay) {
  constexpr double kSamplesMin = 50;
  if (host.weight() < kSamplesMin) return false;
  const stats::ShareInterval own =
      stats::share_interval(host.above(delay) * host.weight(), host.weight(), 0.99);
  return own.low > 1.5 * pool.above(delay);
}

std::optional<Duration> per_host_delay(const stats::Survival& host, const stats::Curve& pool,
                                       Duration delay) {
  if (!fatter_tail(host, pool, delay)) return std::nullopt;
  const stats::Curve own(host);
  const Duration horizon = std::max(own.longest(), pool.longest());
  const Duration worth =
      std::max(pool.remaining(delay, horizon), pool.remaining(Duration{}, horizon));
  return earliest_worth(own, worth, horizon);
}

}  // namespace tailward::hedge
