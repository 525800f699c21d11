#include "hedge/baseline.h"

#include <algorithm>
#include <cmath>

#include "stats/curve.h"

namespace tailward::hedge {
namespace {

constexpr double kUpperQuartile = 0.75;

Duration times(Duration duration, double factor) {
  return Duration{static_cast<std::int64_t>(static_cast<double>(duration.count()) * factor)};
}

}  // namespace

std::optional<Duration> Baseline::delay() const {
  if (!levels_) return std::nullopt;
  return levels_->delay;
}

std::optional<Duration> Baseline::median() const {
  if (!levels_) return std::nullopt;
  return levels_->median;
}

// All or nothing: a sample whose tail is all censored tells no quantile yet.
std::optional<Baseline::Levels> Baseline::measured(const stats::Survival& first_attempts) const {
  const std::optional<Duration> delay = first_attempts.quantile(config_.quantile);
  const std::optional<Duration> median = first_attempts.quantile(0.5);
  const std::optional<Duration> quartile = first_attempts.quantile(kUpperQuartile);
  if (!delay || !median || !quartile) return std::nullopt;
  const stats::Curve curve(first_attempts);
  return Levels{*delay, *median, curve.remaining(Duration{}, curve.longest()),
                std::max(times(*median, config_.limit_times), *quartile)};
}

void Baseline::learn(const stats::Survival& first_attempts, std::int64_t unfinished) {
  constexpr double kFinishedMin = 20;  // of each unfinished one
  const double samples = first_attempts.finished_weight();
  if (samples < config_.samples_min || samples < 2 * learned_from_) return;
  if (samples < kFinishedMin * static_cast<double>(unfinished)) return;
  if (levels_) {
    if (learned_from_ >= config_.samples_enough) return;
    const double expected = 1 - config_.quantile;
    const double noise = std::sqrt(expected * config_.quantile / learned_from_);
    if (first_attempts.above(levels_->delay) > expected + 4 * noise) return;
  }
  const std::optional<Levels> levels = measured(first_attempts);
  if (!levels) return;
  levels_ = levels;
  lowest_ = *levels;
  lowest_since_ = Duration{};
  above_limit_ = std::clamp(first_attempts.above(levels->limit), 0.02, 1 - kUpperQuartile);
  learned_from_ = samples;
}

void Baseline::follow(const Levels& now, Duration elapsed, bool unhedged) {
  const double time_constants = to_seconds(elapsed) / to_seconds(config_.adapt);
  const auto move = [&](Duration Levels::*level) {
    Duration& value = levels_.value().*level;
    const bool rises = now.*level > value;
    if (rises && !unhedged) return;
    // A lower reading is followed ten times as fast as a higher one.
    const double weight = 1 - std::exp(-time_constants * (rises ? 1 : 10));
    value += times(now.*level - value, weight);
    value = std::min(value, times(lowest_.*level, config_.rise_max));
    lowest_.*level = std::min(lowest_.*level, value);
  };
  for (Duration Levels::*level : {&Levels::delay, &Levels::median, &Levels::mean, &Levels::limit}) {
    move(level);
  }
  lowest_since_ += elapsed;
  if (lowest_since_ < config_.day) return;
  lowest_ = *levels_;
  lowest_since_ = Duration{};
}

void Baseline::update(const stats::Survival& first_attempts, Duration elapsed, bool unhedged,
                      std::int64_t unfinished) {
  learn(first_attempts, unfinished);
  if (!levels_) return;
  rate_ = first_attempts.above(levels_->delay);
  if (rate_ >= config_.healthy_rate) return;
  if (const std::optional<Levels> now = measured(first_attempts)) follow(*now, elapsed, unhedged);
}

}  // namespace tailward::hedge
