#include "hedge/engine/route.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "hedge/planning/per_host_delay.h"

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
      overload_(config_.overload),
      control_(config_.proof.control_window),
      switchback_(config_.proof.switchback),
      auto_off_(config_.auto_off, config_.retrial, config_.retrial_max),
      windows_(config_.window) {
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
  // Counters only grow, so what is wrong once stays wrong: a look at each tick finds it, and costs
  // a request nothing (3 ns of 85 when it was checked at every end). The budget counts what is in
  // flight by itself: two books that must agree.
  TAILWARD_CHECK(counters_.add_up(
      static_cast<std::uint64_t>(budget_.primaries_in_flight() + budget_.hedges_in_flight()),
      without_host_));
  TAILWARD_CHECK(counters_.parts_within_wholes());
  hosts_.decay(factor, now);
  merged_ = first_attempts_now();
  if (adaptive()) {
    dependence_.decay(factor);
    first_curve_ = stats::Curve(merged_);
    watch_service(now, elapsed);
    auto_off_.tick(switchback_, now);
    calibrate(elapsed);
    at_tick_ = counters_;
  } else {
    baseline_.update(merged_, elapsed, true, measured_in_flight_);
  }
  const Plan plan = make_plan();
  if (adaptive()) set_per_host_delays(plan);
  board_.publish(plan);
}

void Route::calibrate(Duration elapsed) {
  if (overload_.state() != Overload::State::kClear) return;
  // A hedge that the budget denied was asked for as well.
  const auto budget = static_cast<std::size_t>(Denied::kBudget);
  const auto asked = [&](const Counters& counters) {
    return counters.hedges_after_delay + counters.denied[budget];
  };
  const auto eligible = static_cast<double>(counters_.eligible - at_tick_.eligible);
  calibration_.record(planned_.extra_load * eligible,
                      static_cast<double>(asked(counters_) - asked(at_tick_)), elapsed);
}

void Route::watch_service(TimePoint now, Duration elapsed) {
  // Hedging may have made slower what is measured, unless it is off or known not to.
  const bool hedging = planned_.plan.stages > 0 && !auto_off_.off();
  baseline_.update(merged_, elapsed, !hedging || harmless(switchback_.effect()),
                   measured_in_flight_);
  overload_.tick(hosts_, baseline_, measured_in_flight_, counters_.requests - at_tick_.requests,
                 now);
  if (!overloaded()) in_overload_.clear();
  if (hedging && overload_.state() == Overload::State::kClear) {
    switchback_.tick(now, baseline_.median().value_or(Duration{}), overload_.arrivals_per_s(),
                     rng_);
  } else {
    switchback_.pause();
  }
}

void Route::forget_baseline() {
  baseline_.forget();
  hosts_.forget_latencies();
  merged_.clear();
  in_overload_.clear();
  dependence_ = TailDependence();
  overload_ = Overload(config_.overload);
  switchback_.restart();
  auto_off_.reset();
}

// A few hosts a tick: each costs a curve of its own.
void Route::set_per_host_delays(const Plan& plan) {
  constexpr std::size_t kHostsPerTick = 32;
  for (std::size_t i = 0; i < std::min(kHostsPerTick, hosts_.size()); ++i) {
    const auto index = static_cast<HostIndex>(next_delayed_host_++ % hosts_.size());
    const Host& host = hosts_.at(index);
    std::optional<Duration> delay;
    if (plan.stages > 0 && host.first_attempts != nullptr && hosts_.size() > 1) {
      delay = per_host_delay(*host.first_attempts, first_curve_, plan.stage[0].delay);
    }
    hosts_.set_per_host_delay(index, delay);
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
                          .budget = budget.share * aim / (1 - unhedged) / calibration_.factor(),
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
  const stats::WindowedShare::Totals hedged = windows_.hedged.totals(now);
  const stats::WindowedShare::Totals hedges = windows_.hedges.totals(now);
  VerdictInput input;
  input.eligible = hedged.trials;
  input.hedged = hedged.successes;
  input.due = windows_.due.totals(now).successes;
  input.attempts = hedges.trials;
  input.requests = hedges.trials - hedges.successes;
  const stats::Survival& first = overloaded() ? in_overload_ : merged_;
  if (baseline_.learned()) {
    input.baseline_rate =
        overloaded() ? in_overload_.above(*baseline_.delay()) : baseline_.trigger_rate();
  }
  input.error_rate = breaker_.error_rate(now);
  input.median = first.quantile(0.5);
  input.baseline_median = baseline_.median();
  input.lock_wait_ratio = lock_wait_ratio;
  input.hedging = config_.policy.kind != Policy::Kind::kOff;
  input.breaker_open = breaker_.state() != Breaker::State::kClosed;
  if (adaptive()) {
    input.proof = proof(now);
    input.off_by_verdict = auto_off_.off();
    input.overloaded = overloaded();
    for (std::size_t i = 0; i < hosts_.size(); ++i) {
      const auto host = static_cast<HostIndex>(i);
      if (hosts_.on_probation(host)) input.on_probation.push_back(hosts_.at(host).name);
    }
  }
  return judge(input, config_.limits);
}

// ---- how a request passes through the route ---------------------------------------------------

Group Route::group_of_next() {
  if (!adaptive()) return Group::kHedged;
  if (auto_off_.off()) return Group::kOff;
  if (!switchback_.hedging()) return Group::kSliceOff;
  return rng_.chance(config_.proof.control_share) ? Group::kControl : Group::kHedged;
}

void Route::adjust_plan(Plan& plan, HostIndex host) const {
  Duration delay;
  if (hosts_.on_probation(host)) {
    delay = std::min(plan.stages > 0 ? plan.stage[0].delay : kForever, overload_.limit());
  } else if (plan.stages > 0 && hosts_.at(host).per_host_delay) {
    delay = *hosts_.at(host).per_host_delay;
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

void Route::begin_request(const RequestInfo& request, TimePoint now, Ticket& ticket) {
  ticket.number = ++counters_.requests;
  ticket.started = now;
  ticket.replayable = request.replayable;
  if (config_.policy.kind != Policy::Kind::kOff) {
    ticket.plan = board_.read();
    ticket.hedges_max =
        static_cast<std::uint8_t>(std::max(ticket.plan.stages, config_.policy.copies));
    ticket.could_hedge = request.idempotent && request.replayable && !request.is_hedge;
    if (ticket.could_hedge) {
      ticket.group = group_of_next();
      ticket.slice = switchback_.slice(now);
      ticket.compared = ticket.plan.stages > 0 && overload_.state() == Overload::State::kClear;
    }
    ticket.eligible = ticket.group == Group::kHedged;
    if (ticket.eligible) ++counters_.eligible;
  }
  ticket.host = choose_primary(ticket);
  if (ticket.host == kNoHost) {
    ++without_host_;
    return;
  }
  if (ticket.eligible && adaptive()) adjust_plan(ticket.plan, ticket.host);
  // The others keep their stages, so that it is counted why their hedges are denied.
  if (!ticket.eligible && ticket.could_hedge) ticket.plan.stages = 0;
  budget_.request_begins();
  begin_attempt(ticket, ticket.host, true, now);
}

// A host on probation gets a request now and then, where a hedge can save it if possible. Such a
// request says nothing of hedging: it was sent where nobody else is.
HostIndex Route::choose_primary(Ticket& ticket) {
  if (hosts_.shifted() > 0) {
    const bool saved = ticket.eligible && budget_.could_hedge();
    const HostIndex host = hosts_.probe(ticket.started, saved);
    if (host != kNoHost) {
      ticket.compared = false;
      return host;
    }
  }
  return hosts_.choose({}, ticket.started, rng_);
}

bool Route::stage_due(Ticket& ticket, const Stage& stage, bool primary_running, TimePoint now) {
  if (primary_running) sample_change(ticket, now - ticket.started, false, now);
  if (stage.probability < 1 && !rng_.chance(stage.probability)) {
    deny(ticket, Denied::kProbability);
    return false;
  }
  if (!ticket.due) {
    ticket.due = true;
    if (ticket.eligible) ++counters_.due_requests;
  }
  return true;
}

std::optional<Attempt> Route::begin_hedge(Ticket& ticket, std::span<const HostIndex> used,
                                          bool after_failure, TimePoint now) {
  HostIndex host = kNoHost;
  if (const std::optional<Denied> why = admit_hedge(used, after_failure, now, host)) {
    deny(ticket, *why);
    return std::nullopt;
  }
  ++counters_.hedges;
  if (after_failure) {
    ++counters_.hedges_after_failure;
  } else {
    ++counters_.hedges_after_delay;
    if (!ticket.hedged) ++counters_.hedged_requests;
    ticket.hedged = true;
  }
  begin_attempt(ticket, host, false, now);
  return Attempt{.host = host,
                 .primary = false,
                 .probe = breaker_.hedge_sent(),
                 .after_delay = !after_failure,
                 .started = now};
}

std::optional<Denied> Route::admit_hedge(std::span<const HostIndex> used, bool after_failure,
                                         TimePoint now, HostIndex& host) {
  if (!breaker_.allows_hedge(now)) return Denied::kBreaker;
  if (adaptive() && !overload_.allows_hedge(now, rng_)) return Denied::kOverload;
  host = hosts_.choose(used, now, rng_);
  if (host == kNoHost) return Denied::kNoOtherHost;
  // A slow host cannot save a request from being slow.
  if (!after_failure && hosts_.on_probation(host)) return Denied::kNoOtherHost;
  // Last, since it takes a token.
  if (!budget_.try_hedge()) return Denied::kBudget;
  if (config_.dry_run) {
    budget_.hedge_ends();
    // No probe was sent; the first attempts decide.
    if (breaker_.hedge_sent()) breaker_.probe_withdrawn(now);
    return Denied::kDryRun;
  }
  return std::nullopt;
}

bool Route::would_hedge(std::span<const HostIndex> used, TimePoint now) {
  return !config_.dry_run && !overloaded() && breaker_.allows_hedge(now) && budget_.could_hedge() &&
         hosts_.choose(used, now, rng_) != kNoHost;
}

void Route::deny(Ticket& ticket, Denied why) {
  ticket.denied = why;
  ++counters_.denied[static_cast<std::size_t>(why)];
}

void Route::begin_attempt(Ticket& ticket, HostIndex host, bool primary, TimePoint now) {
  ++ticket.attempts;
  if (primary && ticket.replayable) ++measured_in_flight_;
  ++counters_.attempts;
  windows_.hedges.record(now, !primary);
  hosts_.attempt_begins(host, now);
}

void Route::end_attempt(Ticket& ticket, const Attempt& attempt, AttemptEnd end, TimePoint now) {
  hosts_.attempt_ends(attempt.host);
  attempt.primary ? budget_.primary_ends() : budget_.hedge_ends();
  // A body that streams through takes as long as its client takes to send it: no latency of the
  // host's.
  const bool teaches = ticket.replayable;
  if (attempt.primary && teaches) --measured_in_flight_;
  count_end(attempt, end, now);
  // Errors never enter the estimators: a server that fails fast is not fast.
  const bool good = end == AttemptEnd::kGood;
  const bool censored = end == AttemptEnd::kSuperseded || end == AttemptEnd::kCancelled;
  if (teaches && (good || censored)) learn(ticket, attempt, now - attempt.started, censored);
}

void Route::count_end(const Attempt& attempt, AttemptEnd end, TimePoint now) {
  const bool failed = end == AttemptEnd::kBadResponse || end == AttemptEnd::kNoResponse;
  switch (end) {
    case AttemptEnd::kGood:
      ++counters_.succeeded;
      hosts_.attempt_answered(attempt.host);
      break;
    case AttemptEnd::kBadResponse:
      ++counters_.failed;
      // A server that responds is there, whatever it says: only silence suspends a host.
      hosts_.attempt_answered(attempt.host);
      break;
    case AttemptEnd::kNoResponse:
      ++counters_.failed;
      hosts_.attempt_failed(attempt.host, now);
      break;
    case AttemptEnd::kSuperseded:
      ++counters_.superseded;
      counters_.wasted += now - attempt.started;
      break;
    case AttemptEnd::kCancelled:
    case AttemptEnd::kAbandoned:
      ++counters_.cancelled;
      break;
    case AttemptEnd::kNotSent:
      ++counters_.not_sent;
      if (!attempt.primary) ++counters_.hedges_not_sent;
      break;
  }
  const bool told = failed || end == AttemptEnd::kGood;
  if (attempt.primary && told) breaker_.first_attempt_ended(now, failed);
  if (attempt.probe) told ? breaker_.probe_ended(now, failed) : breaker_.probe_withdrawn(now);
}

void Route::learn(Ticket& ticket, const Attempt& attempt, Duration elapsed, bool censored) {
  if (!attempt.primary) {
    if (attempt.after_delay) dependence_.record(elapsed, censored);
    return;
  }
  // What an overload does is no law of the host's.
  stats::Survival& into = overloaded() ? in_overload_ : hosts_.first_attempts(attempt.host);
  censored ? into.record_censored(elapsed) : into.record(elapsed);
  sample_change(ticket, elapsed, !censored, ticket.started + elapsed);
  if (ticket.slice == 0) return;
  const auto hedges = static_cast<std::uint32_t>(ticket.attempts - 1);
  switchback_.record(ticket.slice, elapsed, censored, hedges);
}

void Route::sample_change(Ticket& ticket, Duration elapsed, bool ended, TimePoint now) {
  if (ticket.change_sampled || !ticket.replayable || !adaptive()) return;
  const bool longer = elapsed >= overload_.limit();
  if (!longer && !ended) return;  // not known yet
  ticket.change_sampled = true;
  overload_.sample(hosts_, ticket.host, longer, now);
}

void Route::end_request(const Ticket& ticket, Ending ending, AttemptIndex winner, TimePoint now) {
  const Duration latency = now - ticket.started;
  switch (ending) {
    case Ending::kAnswered:
      ++counters_.answered;
      if (winner != 0) ++counters_.hedge_wins;
      windows_.client.record(now, latency);
      if (ticket.compared && (ticket.group == Group::kHedged || ticket.group == Group::kControl)) {
        control_.record(now, ticket.group == Group::kControl, latency);
      }
      break;
    case Ending::kFailed:
      ++counters_.answered_badly;
      break;
    case Ending::kTimedOut:
      ++counters_.timed_out;
      break;
    case Ending::kCallerGone:
      ++counters_.caller_gone;
      break;
  }
  if (ticket.eligible) {
    windows_.hedged.record(now, ticket.hedged);
    windows_.due.record(now, ticket.due);
  }
  decisions_.record({.request = ticket.number,
                     .at = now,
                     .latency = latency,
                     .delay = ticket.plan.stages > 0 ? ticket.plan.stage[0].delay : kForever,
                     .host = ticket.host,
                     .group = ticket.group,
                     .due = ticket.due,
                     .hedges = static_cast<std::uint8_t>(std::max<int>(ticket.attempts, 1) - 1),
                     .winner = winner,
                     .was_denied = ticket.denied.has_value(),
                     .denied = ticket.denied.value_or(Denied::kBudget)});
}

void Route::abandon_request() { ++counters_.caller_gone; }

}  // namespace tailward::hedge
