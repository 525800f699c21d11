#include "hedge/baseline.h"

#include <cmath>

namespace tailward::hedge {
namespace {

Duration moved(Duration from, Duration to, double weight) {
  if (to <= from) return to;
  const double step = static_cast<double>((to - from).count()) * weight;
  return from + Duration{static_cast<std::int64_t>(step)};
}

}  // namespace

void Baseline::update(const stats::Survival& first_attempts, Duration elapsed) {
  if (first_attempts.finished_weight() < config_.samples_min) return;
  const std::optional<Duration> delay = first_attempts.quantile(config_.quantile);
  const std::optional<Duration> median = first_attempts.quantile(0.5);
  if (!delay_) {
    // Both or neither: a sample whose tail is all censored tells no quantile yet.
    if (!delay || !median) return;
    delay_ = delay;
    median_ = median;
  }
  rate_ = first_attempts.above(*delay_);
  if (rate_ >= config_.healthy_rate || !delay || !median) return;
  const double weight = 1 - std::exp(-to_seconds(elapsed) / to_seconds(config_.adapt));
  delay_ = moved(*delay_, *delay, weight);
  median_ = moved(*median_, *median, weight);
}

}  // namespace tailward::hedge
