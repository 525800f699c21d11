#include "hedge/baseline.h"

#include <cmath>

namespace tailward::hedge {
namespace {

// A lower reading is followed ten times as fast as a higher one.
Duration moved(Duration from, Duration to, double time_constants) {
  const double weight = 1 - std::exp(-time_constants * (to < from ? 10 : 1));
  return from +
         Duration{static_cast<std::int64_t>(static_cast<double>((to - from).count()) * weight)};
}

}  // namespace

void Baseline::learn(const stats::Survival& first_attempts) {
  const double samples = first_attempts.finished_weight();
  if (samples < config_.samples_min || samples < 2 * learned_from_) return;
  if (delay_) {
    if (learned_from_ >= config_.samples_enough) return;
    const double expected = 1 - config_.quantile;
    const double noise = std::sqrt(expected * config_.quantile / learned_from_);
    if (first_attempts.above(*delay_) > expected + 4 * noise) return;
  }
  const std::optional<Duration> delay = first_attempts.quantile(config_.quantile);
  const std::optional<Duration> median = first_attempts.quantile(0.5);
  // Both or neither: a sample whose tail is all censored tells no quantile yet.
  if (!delay || !median) return;
  delay_ = delay;
  median_ = median;
  learned_from_ = samples;
}

void Baseline::update(const stats::Survival& first_attempts, Duration elapsed) {
  learn(first_attempts);
  if (!delay_) return;
  rate_ = first_attempts.above(*delay_);
  const std::optional<Duration> delay = first_attempts.quantile(config_.quantile);
  const std::optional<Duration> median = first_attempts.quantile(0.5);
  if (rate_ >= config_.healthy_rate || !delay || !median) return;
  const double time_constants = to_seconds(elapsed) / to_seconds(config_.adapt);
  delay_ = moved(*delay_, *delay, time_constants);
  median_ = moved(*median_, *median, time_constants);
}

}  // namespace tailward::hedge
