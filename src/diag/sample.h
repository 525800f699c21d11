// Quantiles from few words: every value until there are 64, then every second, every fourth, …,
// evenly over all. Deterministic.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/time.h"
#include "diag/analysis.h"

namespace tailward::diag {

template <std::size_t kSize>
class Sample {
 public:
  void add(Duration value) {
    if (seen_++ % stride_ != 0) return;
    if (kept_ == kSize) {
      for (std::size_t i = 0; i < kSize / 2; ++i) values_[i] = values_[2 * i];
      kept_ = kSize / 2;
      stride_ *= 2;
      if ((seen_ - 1) % stride_ != 0) return;
    }
    const std::int64_t us = std::clamp<std::int64_t>(value.count() / 1000, 0, UINT32_MAX);
    values_[kept_++] = static_cast<std::uint32_t>(us);
  }
  [[nodiscard]] bool empty() const { return kept_ == 0; }
  // 0 when empty.
  [[nodiscard]] Duration quantile(double q) const {
    if (kept_ == 0) return {};
    auto sorted = values_;
    std::sort(sorted.begin(), sorted.begin() + kept_);
    const auto at = static_cast<std::size_t>(q * (kept_ - 1) + 0.5);
    return std::chrono::microseconds(sorted[at]);
  }
  [[nodiscard]] Spread spread() const { return {quantile(0.1), quantile(0.5), quantile(0.9)}; }

 private:
  std::array<std::uint32_t, kSize> values_{};
  std::uint32_t kept_ = 0;
  std::uint32_t seen_ = 0;
  std::uint32_t stride_ = 1;
};

}  // namespace tailward::diag
