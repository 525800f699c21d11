#include "stats/buckets.h"

namespace tailward::stats::detail {
namespace {

// The bounds are searched for with bucket_of itself, not computed by an inverse: they then agree
// with it to the nanosecond by construction. A bucket's end is at most 2.1 % above its start, and
// bucket_of sees kMantissaBits of the latency only, hence the step.
constexpr std::int64_t next_bound(std::int64_t low, std::size_t bucket) {
  const int width = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(low)));
  const std::int64_t step = std::int64_t{1} << std::max(0, width - 1 - kMantissaBits);
  std::int64_t inside = low / step;
  std::int64_t beyond = inside + inside / 45 + 1;
  while (beyond - inside > 1) {
    const std::int64_t between = (inside + beyond) / 2;
    (bucket_of(Duration{between * step}) > bucket ? beyond : inside) = between;
  }
  return beyond * step;
}

constexpr auto make_bounds() {
  std::array<std::int64_t, kBucketCount + 1> bounds{};
  bounds[0] = kLowest.count();
  for (std::size_t i = 0; i + 1 < kBucketCount; ++i) bounds[i + 1] = next_bound(bounds[i], i);
  bounds[kBucketCount] = kHighest.count() + 1;
  return bounds;
}

// The harmonic mean of the ends: it errs by the same share at both.
constexpr auto make_middles(const std::array<std::int64_t, kBucketCount + 1>& bounds) {
  std::array<std::int64_t, kBucketCount> middles{};
  for (std::size_t i = 0; i < kBucketCount; ++i) {
    const auto low = static_cast<double>(bounds[i]);
    const auto last = static_cast<double>(bounds[i + 1] - 1);
    middles[i] = static_cast<std::int64_t>(2 * low * last / (low + last) + 0.5);
  }
  return middles;
}

}  // namespace

constexpr std::array<std::int64_t, kBucketCount + 1> kBounds = make_bounds();
constexpr std::array<std::int64_t, kBucketCount> kMiddles = make_middles(kBounds);

}  // namespace tailward::stats::detail
