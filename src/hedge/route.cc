#include "hedge/route.h"

#include <algorithm>
#include <cmath>

namespace tailward::hedge {
namespace {

Baseline::Config baseline_config(const RouteConfig& config) {
  Baseline::Config baseline;
  if (config.policy.kind == Policy::Kind::kQuantile) baseline.quantile = config.policy.quantile;
  baseline.healthy_rate = config.limits.healthy_below;
  return baseline;
}

// Enough samples to know the q-quantile: the floor, and ten beyond the quantile.
double samples_for(double quantile, double floor) {
  return std::max(floor, std::round(10 / (1 - quantile)));
}

}  // namespace

std::string_view to_string(Denied denied) {
  switch (denied) {
    case Denied::kBudget:
      return "budget";
    case Denied::kNoOtherHost:
      return "no_other_host";
    case Denied::kNotIdempotent:
      return "not_idempotent";
    case Denied::kBreaker:
      return "breaker";
    case Denied::kBrownout:
      return "brownout";
    case Denied::kNested:
      return "nested";
    case Denied::kDeadline:
      return "deadline";
    case Denied::kPushback:
      return "pushback";
    case Denied::kNotReplayable:
      return "not_replayable";
    case Denied::kProbability:
      return "probability";
  }
  return "unknown";
}

Route::Route(RouteConfig config, Budget* shared_budget)
    : config_(std::move(config)),
      rng_(config_.seed),
      hosts_(config_.hosts),
      budget_(config_.budget, shared_budget),
      breaker_(config_.breaker),
      baseline_(baseline_config(config_)),
      client_(config_.window),
      hedged_(config_.window),
      due_(config_.window),
      hedges_(config_.window) {
  board_.publish(make_plan());
}

stats::Survival Route::first_attempts_now() const {
  stats::Survival merged;
  for (std::size_t host = 0; host < hosts_.size(); ++host) {
    const Host& one = hosts_.at(static_cast<HostIndex>(host));
    if (one.first_attempts != nullptr) merged.merge(*one.first_attempts);
  }
  return merged;
}

void Route::tick(TimePoint now) {
  const Duration elapsed = last_tick_ == TimePoint{} ? Duration{} : now - last_tick_;
  last_tick_ = now;
  // A service with little traffic keeps its few samples: old ones are better than none.
  const bool enough = merged_.weight() > 2 * samples_needed();
  const double factor =
      enough ? std::exp2(-to_seconds(elapsed) / to_seconds(config_.half_life)) : 1.0;
  hosts_.decay(factor, now);
  merged_ = first_attempts_now();
  baseline_.update(merged_, elapsed);
  board_.publish(make_plan());
}

double Route::samples_needed() const {
  const double floor = std::max(config_.samples_min, Baseline::Config{}.samples_min);
  return config_.policy.kind == Policy::Kind::kQuantile
             ? samples_for(config_.policy.quantile, floor)
             : floor;
}

Plan Route::make_plan() const {
  Plan plan;
  plan.fresh_median = merged_.quantile(0.5).value_or(Duration{});
  const Policy& policy = config_.policy;
  Duration delay{};
  switch (policy.kind) {
    case Policy::Kind::kOff:
      return plan;
    case Policy::Kind::kFixed:
      delay = policy.delay;
      break;
    case Policy::Kind::kQuantile: {
      const std::optional<Duration> learned = merged_.quantile(policy.quantile);
      const bool enough =
          merged_.finished_weight() >= samples_for(policy.quantile, config_.samples_min);
      if (!learned || !enough) return plan;
      delay = *learned;
      break;
    }
  }
  plan.stages = policy.copies;
  for (int i = 0; i < policy.copies; ++i) {
    plan.stage[static_cast<std::size_t>(i)] = Stage{delay * (i + 1), 1.0};
  }
  return plan;
}

Verdict Route::verdict(TimePoint now, std::optional<double> lock_wait_ratio) {
  const stats::WindowedShare::Totals hedged = hedged_.totals(now);
  const stats::WindowedShare::Totals hedges = hedges_.totals(now);
  VerdictInput input;
  input.eligible = hedged.trials;
  input.hedged = hedged.successes;
  input.due = due_.totals(now).successes;
  input.attempts = hedges.trials;
  input.requests = hedges.trials - hedges.successes;
  if (baseline_.learned()) input.baseline_rate = baseline_.trigger_rate();
  input.error_rate = breaker_.error_rate(now);
  input.median = merged_.quantile(0.5);
  input.baseline_median = baseline_.median();
  input.lock_wait_ratio = lock_wait_ratio;
  input.hedging = config_.policy.kind != Policy::Kind::kOff;
  input.breaker_open = breaker_.state() != Breaker::State::kClosed;
  return judge(input, config_.limits);
}

}  // namespace tailward::hedge
