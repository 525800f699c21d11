#include "hedge/route.h"

#include <algorithm>
#include <cmath>

#include "hedge/trigger.h"

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

// Calls f(a's field, b's field) for every field. The bindings name each of them: it does not
// compile when a field was added to Counters and not here.
template <class F>
void for_each_field(Counters& a, const Counters& b, F&& f) {
  auto& [requests, eligible, attempts, hedges, after_delay, after_failure, hedged, due, wins,
         denied, succeeded, failed, superseded, cancelled, not_sent, hedges_not_sent, answered,
         answered_badly, timed_out, caller_gone, wasted] = a;
  f(requests, b.requests);
  f(eligible, b.eligible);
  f(attempts, b.attempts);
  f(hedges, b.hedges);
  f(after_delay, b.hedges_after_delay);
  f(after_failure, b.hedges_after_failure);
  f(hedged, b.hedged_requests);
  f(due, b.due_requests);
  f(wins, b.hedge_wins);
  for (std::size_t i = 0; i < denied.size(); ++i) f(denied[i], b.denied[i]);
  f(succeeded, b.succeeded);
  f(failed, b.failed);
  f(superseded, b.superseded);
  f(cancelled, b.cancelled);
  f(not_sent, b.not_sent);
  f(hedges_not_sent, b.hedges_not_sent);
  f(answered, b.answered);
  f(answered_badly, b.answered_badly);
  f(timed_out, b.timed_out);
  f(caller_gone, b.caller_gone);
  f(wasted, b.wasted);
}

}  // namespace

Counters& Counters::operator+=(const Counters& other) {
  for_each_field(*this, other, [](auto& mine, const auto& theirs) { mine += theirs; });
  return *this;
}

Counters& Counters::operator-=(const Counters& before) {
  for_each_field(*this, before, [](auto& mine, const auto& theirs) { mine -= theirs; });
  return *this;
}

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
    case Denied::kDryRun:
      return "dry_run";
  }
  return "unknown";
}

std::string_view to_string(Group group) {
  switch (group) {
    case Group::kHedged:
      return "hedged";
    case Group::kControl:
      return "control";
    case Group::kSliceOff:
      return "slice_off";
    case Group::kOff:
      return "off";
  }
  return "off";
}

Route::Route(RouteConfig config, Budget* shared_budget)
    : config_(std::move(config)),
      rng_(config_.seed),
      hosts_(config_.hosts),
      budget_(config_.budget, config_.dry_run ? nullptr : shared_budget),
      breaker_(config_.breaker),
      baseline_(baseline_config(config_)),
      brownout_(config_.brownout),
      control_(config_.proof.control_window),
      switchback_(config_.proof.switchback),
      off_for_(config_.retrial),
      client_(config_.window),
      hedged_(config_.window),
      due_(config_.window),
      hedges_(config_.window) {
  board_.publish(make_plan());
}

// Hosts on probation are left out: the plan is for the others.
stats::Survival Route::first_attempts_now() const {
  stats::Survival merged;
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    const auto host = static_cast<HostIndex>(i);
    const Host& one = hosts_.at(host);
    if (one.first_attempts == nullptr || hosts_.on_probation(host)) continue;
    merged.merge(*one.first_attempts);
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
  if (adaptive()) {
    dependence_.decay(factor);
    first_curve_ = stats::Curve(merged_);
    watch_service(now, elapsed);
    watch_harm(now);
    calibrate(elapsed);
    at_tick_ = counters_;
  } else {
    baseline_.update(merged_, elapsed, true, measured_in_flight_);
  }
  const Plan plan = make_plan();
  if (adaptive()) set_own_delays(plan);
  board_.publish(plan);
}

void Route::calibrate(Duration elapsed) {
  constexpr Duration kHalfLife = std::chrono::seconds(10);
  constexpr double kKnown = 50;  // hedges
  if (brownout_.state() != Brownout::State::kClear) return;
  const auto budget = static_cast<std::size_t>(Denied::kBudget);
  const auto asked = [&](const Counters& counters) {
    return counters.hedges_after_delay + counters.denied[budget];
  };
  const double factor = std::exp2(-to_seconds(elapsed) / to_seconds(kHalfLife));
  const auto eligible = static_cast<double>(counters_.eligible - at_tick_.eligible);
  hedges_expected_ = hedges_expected_ * factor + planned_.extra_load * eligible;
  hedges_asked_ = hedges_asked_ * factor + static_cast<double>(asked(counters_) - asked(at_tick_));
  calibration_ =
      hedges_expected_ < kKnown ? 1 : std::clamp(hedges_asked_ / hedges_expected_, 0.7, 1.4);
}

void Route::watch_service(TimePoint now, Duration elapsed) {
  // Hedging may have made slower what is measured, unless it is off or known not to.
  const bool hedging = planned_.plan.stages > 0 && !off_;
  baseline_.update(merged_, elapsed, !hedging || harmless(switchback_.effect()),
                   measured_in_flight_);
  brownout_.tick(hosts_, baseline_, measured_in_flight_, counters_.requests - at_tick_.requests,
                 now);
  if (brownout_.state() != Brownout::State::kBrownout) in_brownout_.clear();
  if (hedging && brownout_.state() == Brownout::State::kClear) {
    switchback_.tick(now, baseline_.median().value_or(Duration{}), brownout_.arrivals_per_s(),
                     rng_);
  } else {
    switchback_.pause();
  }
}

void Route::watch_harm(TimePoint now) {
  if (!config_.auto_off) return;
  if (off_) {
    if (now < retrial_at_) return;
    off_ = false;
    switchback_.restart();
    harm_looked_at_ = 0;
    return;
  }
  if (switchback_.measured() == harm_looked_at_) return;
  harm_looked_at_ = switchback_.measured();
  if (!switchback_.on_trial()) off_for_ = config_.retrial;
  if (!harms(switchback_.effect(kHarmConfidence))) return;
  off_ = true;
  off_since_ = now;
  retrial_at_ = now + off_for_;
  off_for_ = std::min(2 * off_for_, config_.retrial_max);
}

void Route::forget_baseline() {
  baseline_.forget();
  hosts_.forget_latencies();
  merged_.clear();
  in_brownout_.clear();
  dependence_ = Dependence();
  brownout_ = Brownout(config_.brownout);
  switchback_.restart();
  off_ = false;
  off_for_ = config_.retrial;
}

Group Route::group_of_next() {
  if (!adaptive()) return Group::kHedged;
  if (off_) return Group::kOff;
  if (!switchback_.hedging()) return Group::kSliceOff;
  return rng_.chance(config_.proof.control_share) ? Group::kControl : Group::kHedged;
}

void Route::adjust_plan(Plan& plan, HostIndex host) const {
  Duration delay;
  if (hosts_.on_probation(host)) {
    delay = std::min(plan.stages > 0 ? plan.stage[0].delay : kForever, brownout_.limit());
  } else if (plan.stages > 0 && hosts_.at(host).own_delay) {
    delay = *hosts_.at(host).own_delay;
  } else {
    return;
  }
  if (delay >= kForever) {
    plan.stages = 0;
    return;
  }
  plan.stages = std::max(plan.stages, 1);
  plan.stage[0].delay = delay;
  if (hosts_.on_probation(host)) plan.stage[0].probability = 1;
  if (plan.stages > 1) plan.stage[1].delay = std::max(plan.stage[1].delay, delay);
}

// A few hosts a tick: each costs a curve of its own.
void Route::set_own_delays(const Plan& plan) {
  constexpr std::size_t kHostsPerTick = 32;
  for (std::size_t i = 0; i < std::min(kHostsPerTick, hosts_.size()); ++i) {
    const auto index = static_cast<HostIndex>(next_own_delay_++ % hosts_.size());
    const Host& host = hosts_.at(index);
    std::optional<Duration> delay;
    if (plan.stages > 0 && host.first_attempts != nullptr && hosts_.size() > 1) {
      delay = own_delay(*host.first_attempts, first_curve_, plan.stage[0].delay);
    }
    hosts_.set_own_delay(index, delay);
  }
}

Proof Route::proof(TimePoint now) {
  Proof proof;
  for (std::size_t i = 0; i < kProofQuantiles.size(); ++i) {
    proof.savings[i] = control_.saving(kProofQuantiles[i], now);
  }
  proof.control_requests = control_.control_requests(now);
  proof.switchback = switchback_.effect();
  proof.dependence = dependence_.ratio(first_curve_);
  proof.harm = harms(switchback_.effect(kHarmConfidence));
  return proof;
}

double Route::samples_needed() const {
  const double floor = std::max(config_.samples_min, Baseline::Config{}.samples_min);
  return config_.policy.kind == Policy::Kind::kQuantile
             ? samples_for(config_.policy.quantile, floor)
             : floor;
}

// What the planner may spend: a little less than the budget, so that what is left absorbs chance,
// and less still while the balance is low. So scarcity lowers probabilities, and no hedge is denied
// that the plan has chosen.
Plan Route::adaptive_plan(const Plan& none) {
  constexpr double kAim = 0.98;
  constexpr double kSamplesMin = 200;
  // Of what may be slower than the goal: planned exactly, chance would miss it half of the time,
  // and where the next slow mode begins there, by far.
  // The fewer may be slower, the less is known of them.
  const double slower = 1 - config_.policy.goal;
  const double goal_margin = 1 - 0.1 * std::min(1.0, 0.01 / slower);
  planned_ = {};
  const double samples = merged_.finished_weight();
  if (samples < std::max(config_.samples_min, kSamplesMin)) return none;
  const BudgetConfig& budget = budget_.config();
  const double fill = budget.burst > 0 ? budget_.balance() / budget.burst : 0.5;
  const double aim = budget.unlimited ? 1 : kAim * std::clamp(0.5 + fill, 0.5, 1.0);
  const double unhedged = std::min(0.5, config_.proof.control_share + switchback_.share_off());
  const stats::Curve second = dependence_.second(first_curve_);
  planned_ = plan_hedges({.first = &first_curve_,
                          .second = &second,
                          // A quantile with fewer than five samples beyond it is not known.
                          .goal = std::min(1 - goal_margin * slower, 1 - 5 / samples),
                          .budget = budget.share * aim / (1 - unhedged) / calibration_,
                          .copies = config_.policy.copies,
                          .unhedged = unhedged});
  planned_.plan.fresh_median = none.fresh_median;
  return planned_.plan;
}

Plan Route::make_plan() {
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
    case Policy::Kind::kAdaptive:
      return adaptive_plan(plan);
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
  const bool brownout = brownout_.state() == Brownout::State::kBrownout;
  const stats::Survival& first = brownout ? in_brownout_ : merged_;
  if (baseline_.learned()) {
    input.baseline_rate =
        brownout ? in_brownout_.above(*baseline_.delay()) : baseline_.trigger_rate();
  }
  input.error_rate = breaker_.error_rate(now);
  input.median = first.quantile(0.5);
  input.baseline_median = baseline_.median();
  input.lock_wait_ratio = lock_wait_ratio;
  input.hedging = config_.policy.kind != Policy::Kind::kOff;
  input.breaker_open = breaker_.state() != Breaker::State::kClosed;
  if (adaptive()) {
    input.proof = proof(now);
    input.off_by_verdict = off_;
    input.brownout = brownout;
    for (std::size_t i = 0; i < hosts_.size(); ++i) {
      const auto host = static_cast<HostIndex>(i);
      if (hosts_.on_probation(host)) input.on_probation.push_back(hosts_.at(host).name);
    }
  }
  return judge(input, config_.limits);
}

}  // namespace tailward::hedge
