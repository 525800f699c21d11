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
  const double samples = first_attempts.finished_weight();
  if (samples < config_.samples_min) return;
  const std::optional<Duration> delay = first_attempts.quantile(config_.quantile);
  const std::optional<Duration> median = first_attempts.quantile(0.5);
  const bool few = learned_from_ < config_.samples_enough;
  // Both or neither: a sample whose tail is all censored tells no quantile yet.
  if (few && samples > learned_from_ && delay && median) {
    delay_ = delay;
    median_ = median;
    learned_from_ = samples;
  }
  if (!delay_) return;
  rate_ = first_attempts.above(*delay_);
  if (rate_ >= config_.healthy_rate || !delay || !median) return;
  const double weight = 1 - std::exp(-to_seconds(elapsed) / to_seconds(config_.adapt));
  delay_ = moved(*delay_, *delay, weight);
  median_ = moved(*median_, *median, weight);
}

}  // namespace tailward::hedge
