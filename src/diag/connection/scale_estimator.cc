#include "diag/connection/scale_estimator.h"

#include <cmath>

#include "base/check.h"
#include "diag/thresholds.h"
#include "tcp/sequence.h"

namespace tailward::diag {

// The scale that this window would mean, and how exactly.
std::optional<int> ScaleEstimator::measure(std::uint16_t window, std::uint32_t ack, double& ratio) {
  const bool grew = !begun_ || window > last_window_;
  begun_ = true;
  last_window_ = window;
  const std::int32_t shrunk = anchor_window_ - window;
  const std::int32_t acked = tcp::distance(ack, anchor_ack_);
  // A step that is small against the rounding waits for more.
  if (!grew && (shrunk < thresholds.window.scale_shrunk_min || acked < shrunk)) return {};
  anchor_window_ = window;
  anchor_ack_ = ack;
  if (grew) return {};
  ratio = static_cast<double>(acked) / shrunk;
  const int scale = static_cast<int>(std::lround(std::log2(ratio)));
  TAILWARD_CHECK(scale >= 0);  // acked ≥ shrunk
  if (scale > kScaleMax) return {};
  return scale;
}

std::optional<std::uint8_t> ScaleEstimator::add(std::uint16_t window, std::uint32_t ack) {
  double ratio = 0;
  const std::optional<int> scale = measure(window, ack, ratio);
  if (!scale) return {};
  const auto at = static_cast<std::size_t>(*scale);
  if (++tries_[at] == UINT8_MAX) {
    for (std::uint8_t& count : votes_) count /= 2;
    for (std::uint8_t& count : tries_) count /= 2;
  }
  if (std::abs(ratio / static_cast<double>(1 << *scale) - 1) > thresholds.window.scale_near) {
    return {};
  }
  ++votes_[at];
  TAILWARD_CHECK(votes_[at] <= tries_[at] + 1);
  int lower = 0;
  for (std::size_t i = 0; i < at; ++i) lower += votes_[i];
  const bool lowest = !scale_ || *scale < *scale_;
  if (!lowest || votes_[at] < thresholds.window.scale_votes_min ||
      votes_[at] < thresholds.window.scale_votes_per_lower * lower) {
    return {};
  }
  if (2 * votes_[at] < tries_[at]) return {};  // as many as chance has
  scale_ = static_cast<std::uint8_t>(*scale);
  return scale_;
}

}  // namespace tailward::diag
