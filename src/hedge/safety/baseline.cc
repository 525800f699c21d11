#include "hedge/safety/baseline.h"

#include <algorithm>
#include <cmath>

#include "stats/curve.h"

namespace tailward::hedge {
namespace {

constexpr double kUpperQuartile = 0.75;

double ns(Duration duration) { return static_cast<double>(duration.count()); }

Duration from_ns(double ns) { return Duration{std::llround(ns)}; }

}  // namespace

std::optional<Duration> Baseline::delay() const {
  if (!levels_) return std::nullopt;
  return from_ns(levels_->delay);
}

std::optional<Duration> Baseline::median() const {
  if (!levels_) return std::nullopt;
  return from_ns(levels_->median);
}

Duration Baseline::mean() const { return from_ns(levels_->mean); }

Duration Baseline::limit() const { return from_ns(levels_->limit); }

// All or nothing: a sample whose tail is all censored tells no quantile yet.
std::optional<Baseline::Levels> Baseline::measured(const stats::Survival& first_attempts) const {
  const std::optional<Duration> delay = first_attempts.quantile(config_.quantile);
  const std::optional<Duration> median = first_attempts.quantile(0.5);
  const std::optional<Duration> quartile = first_attempts.quantile(kUpperQuartile);
  if (!delay || !median || !quartile) return std::nullopt;
  const stats::Curve curve(first_attempts);
  return Levels{ns(*delay), ns(*median), ns(curve.remaining(Duration{}, curve.longest())),
                std::max(ns(*median) * config_.limit_times, ns(*quartile))};
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
    if (first_attempts.above(from_ns(levels_->delay)) > expected + 4 * noise) return;
  }
  const std::optional<Levels> levels = measured(first_attempts);
  if (!levels) return;
  levels_ = levels;
  lowest_ = *levels;
  lowest_since_ = Duration{};
  set_above_limit(first_attempts);
  learned_from_ = samples;
}

void Baseline::set_above_limit(const stats::Survival& first_attempts) {
  above_limit_ = std::clamp(first_attempts.above(limit()), 0.02, 1 - kUpperQuartile);
}

void Baseline::follow(const stats::Survival& first_attempts, Duration elapsed, bool unhedged) {
  const std::optional<Levels> now = measured(first_attempts);
  if (!now) return;
  const double time_constants = to_seconds(elapsed) / to_seconds(config_.adapt);
  for (double Levels::*level : {&Levels::delay, &Levels::median, &Levels::mean, &Levels::limit}) {
    double& value = levels_.value().*level;
    const bool rises = (*now).*level > value;
    if (rises && !unhedged) continue;
    // A lower reading is followed ten times as fast as a higher one.
    value += ((*now).*level - value) * (1 - std::exp(-time_constants * (rises ? 1 : 10)));
    value = std::min(value, lowest_.*level * config_.rise_max);
    lowest_.*level = std::min(lowest_.*level, value);
  }
  set_above_limit(first_attempts);
  lowest_since_ += elapsed;
  if (lowest_since_ < config_.day) return;
  lowest_ = *levels_;
  lowest_since_ = Duration{};
}

void Baseline::update(const stats::Survival& first_attempts, Duration elapsed, bool unhedged,
                      std::int64_t unfinished) {
  if (first_attempts.weight() <= 0) return;
  learn(first_attempts, unfinished);
  if (!levels_) return;
  rate_ = first_attempts.above(from_ns(levels_->delay));
  if (rate_ < config_.healthy_rate) follow(first_attempts, elapsed, unhedged);
}

}  // namespace tailward::hedge
