#include "hedge/engine/race.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace tailward::hedge {

void Actions::push(const Action& action) {
  TAILWARD_CHECK(size_ < kMax);
  actions_[size_++] = action;
}

Race::~Race() {
  if (state_ != State::kRunning) return;
  // Without a time there is no sample, but nothing may stay counted as in flight.
  for (AttemptIndex i = 0; i < attempts_count_; ++i) {
    if (!alive(i)) continue;
    ++route_->counters_.cancelled;
    route_->hosts_.attempt_ends(attempts_[i].host);
    i == 0 ? route_->budget_.primary_ends() : route_->budget_.hedge_ends();
    if (attempts_[i].probe) route_->breaker_.probe_withdrawn(started_);
    if (i == 0 && request_.replayable) --route_->measured_in_flight_;
  }
  ++route_->counters_.caller_gone;
}

Actions Race::start(const RequestInfo& request, TimePoint now) {
  TAILWARD_CHECK(state_ == State::kIdle);
  state_ = State::kRunning;
  request_ = request;
  started_ = now;
  const Policy& policy = route_->config_.policy;
  Counters& counters = route_->counters_;
  number_ = ++counters.requests;
  if (policy.kind != Policy::Kind::kOff) {
    plan_ = route_->board_.read();
    hedges_max_ = static_cast<std::uint8_t>(std::max(plan_.stages, policy.copies));
    could_hedge_ = request.idempotent && request.replayable && !request.is_hedge;
    if (could_hedge_) {
      group_ = route_->group_of_next();
      slice_ = route_->switchback_.slice(now);
      counts_ = plan_.stages > 0 && route_->overload_.state() == Overload::State::kClear;
    }
    eligible_ = group_ == Group::kHedged;
    if (eligible_) ++counters.eligible;
  }

  Actions out;
  const HostIndex host = choose_primary(now);
  if (host == kNoHost) {
    finish(Action::Ending::kFailed, kNoAttempt, now, out);
    return out;
  }
  if (eligible_ && route_->adaptive()) route_->adjust_plan(plan_, host);
  // The others keep their stages, so that it is counted why their hedges are denied.
  if (!eligible_ && could_hedge_) plan_.stages = 0;
  route_->budget_.request_begins();
  start_attempt(host, false, false, now, out);
  arm(out);
  return out;
}

// A host on probation gets a request now and then, where a hedge can save it if possible.
HostIndex Race::choose_primary(TimePoint now) {
  if (route_->hosts_.shifted() > 0) {
    const bool saved = eligible_ && route_->budget_.could_hedge();
    const HostIndex host = route_->hosts_.probe(now, saved);
    if (host != kNoHost) {
      counts_ = false;
      return host;
    }
  }
  return route_->hosts_.choose({}, now, route_->rng_);
}

Actions Race::on_outcome(AttemptIndex attempt, const Outcome& outcome, TimePoint now) {
  Actions out;
  if (state_ != State::kRunning || !alive(attempt)) return out;
  switch (outcome.result) {
    case Outcome::Class::kGood:
      end_attempt(attempt, End::kGood, now);
      end_all(End::kSuperseded, attempt, now, out);
      finish(Action::Ending::kAnswered, attempt, now, out);
      break;
    case Outcome::Class::kFatal:
      end_attempt(attempt, outcome.has_answer ? End::kBadAnswer : End::kNoAnswer, now);
      end_all(End::kSuperseded, attempt, now, out);
      finish(Action::Ending::kFailed, attempt, now, out);
      break;
    case Outcome::Class::kNotSent:
      end_attempt(attempt, End::kNotSent, now);
      hold_or_release(attempt, false, out);
      if (!anything_alive()) finish(Action::Ending::kFailed, held_, now, out);
      break;
    case Outcome::Class::kBad:
      end_attempt(attempt, outcome.has_answer ? End::kBadAnswer : End::kNoAnswer, now);
      hold_or_release(attempt, outcome.has_answer, out);
      obey(outcome, now);
      go_on_after_failure(now, out);
      break;
  }
  return out;
}

Actions Race::on_timer(TimePoint now) {
  Actions out;
  if (state_ != State::kRunning) return out;
  armed_at_ = kNever;
  if (now >= request_.deadline) {
    // A failure that said something is better than nothing.
    const AttemptIndex answer = held_has_answer() ? held_ : kNoAttempt;
    end_all(End::kCancelled, answer, now, out);
    finish(Action::Ending::kTimedOut, answer, now, out);
    return out;
  }
  if (waits_for_pushback_) {
    if (now >= not_before_ && !try_hedge(true, now, out)) {
      finish(Action::Ending::kFailed, held_, now, out);
      return out;
    }
  } else if (stages_left() && now >= next_stage_at()) {
    run_due_stage(now, out);
  }
  arm(out);
  return out;
}

Actions Race::on_caller_gone(TimePoint now) {
  Actions out;
  if (state_ != State::kRunning) return out;
  end_all(End::kCancelled, kNoAttempt, now, out);
  finish(Action::Ending::kCallerGone, kNoAttempt, now, out);
  return out;
}

// One stage at a time: a driver that wakes late must not send all copies at once.
void Race::run_due_stage(TimePoint now, Actions& out) {
  const Stage& stage = plan_.stage[next_stage_++];
  last_stage_at_ = now;
  if (alive(0)) sample_change(now - started_, false, now);
  if (stage.probability < 1 && !route_->rng_.chance(stage.probability)) {
    denied_ = Denied::kProbability;
    route_->deny(Denied::kProbability);
    return;
  }
  if (!due_) {
    due_ = true;
    if (eligible_) ++route_->counters_.due_requests;
  }
  static_cast<void>(try_hedge(false, now, out));
}

void Race::sample_change(Duration elapsed, bool ended, TimePoint now) {
  if (shift_sampled_ || !request_.replayable || !route_->adaptive()) return;
  const bool longer = elapsed >= route_->overload_.limit();
  if (!longer && !ended) return;
  shift_sampled_ = true;
  route_->overload_.sample(route_->hosts_, attempts_[0].host, longer, now);
}

void Race::go_on_after_failure(TimePoint now, Actions& out) {
  const bool may_go_on = attempts_count_ <= hedges_max_ && !no_more_;
  if (may_go_on && now >= not_before_) {
    if (try_hedge(true, now, out)) {
      arm(out);
      return;
    }
  } else if (may_go_on && !anything_alive() && worth_waiting_for(now)) {
    waits_for_pushback_ = true;
    arm(out);
    return;
  }
  if (anything_alive()) {
    arm(out);
  } else {
    finish(Action::Ending::kFailed, held_, now, out);
  }
}

// Whether an attempt at not_before_ is likely to be allowed: otherwise the caller has its answer
// now.
bool Race::worth_waiting_for(TimePoint now) {
  if (!could_hedge_ || route_->config_.dry_run || not_before_ >= request_.deadline ||
      not_before_ - now > route_->config_.pushback_wait_max) {
    return false;
  }
  if (route_->overload_.state() == Overload::State::kOverloaded) return false;
  return route_->breaker_.allows_hedge(now) && route_->budget_.could_hedge() &&
         choose_host(now) != kNoHost;
}

HostIndex Race::choose_host(TimePoint now) {
  std::array<HostIndex, kAttemptsMax> used;
  for (std::size_t i = 0; i < attempts_count_; ++i) used[i] = attempts_[i].host;
  return route_->hosts_.choose(std::span(used.data(), attempts_count_), now, route_->rng_);
}

bool Race::try_hedge(bool after_failure, TimePoint now, Actions& out) {
  HostIndex host = kNoHost;
  if (const std::optional<Denied> why = admit_hedge(after_failure, now, host)) {
    denied_ = *why;
    route_->deny(*why);
    return false;
  }
  Counters& counters = route_->counters_;
  ++counters.hedges;
  waits_for_pushback_ = false;
  if (after_failure) {
    ++counters.hedges_after_failure;
    // It takes the place of the next stage: the later ones keep their times.
    if (next_stage_ < plan_.stages) ++next_stage_;
  } else {
    ++counters.hedges_after_delay;
    if (!hedged_) ++counters.hedged_requests;
    hedged_ = true;
  }
  start_attempt(host, route_->breaker_.hedge_sent(), !after_failure, now, out);
  return true;
}

std::optional<Denied> Race::admit_hedge(bool after_failure, TimePoint now, HostIndex& host) {
  if (!request_.idempotent) return Denied::kNotIdempotent;
  if (!request_.replayable) return Denied::kNotReplayable;
  if (request_.is_hedge) return Denied::kNested;
  if (no_more_ || now < not_before_) return Denied::kPushback;
  if (request_.deadline != kNever && request_.deadline - now < plan_.fresh_median) {
    return Denied::kDeadline;
  }
  if (!route_->breaker_.allows_hedge(now)) return Denied::kBreaker;
  if (route_->adaptive() && !route_->overload_.allows_hedge(now, route_->rng_)) {
    return Denied::kOverload;
  }
  host = choose_host(now);
  if (host == kNoHost) return Denied::kNoOtherHost;
  // A slow host cannot save a request from being slow.
  if (!after_failure && route_->hosts_.on_probation(host)) return Denied::kNoOtherHost;
  // Last, since it takes a token.
  if (!route_->budget_.try_hedge()) return Denied::kBudget;
  if (route_->config_.dry_run) {
    route_->budget_.hedge_ends();
    // No probe was sent; the first attempts decide.
    if (route_->breaker_.hedge_sent()) route_->breaker_.probe_withdrawn(now);
    return Denied::kDryRun;
  }
  return std::nullopt;
}

void Race::start_attempt(HostIndex host, bool probe, bool after_delay, TimePoint now,
                         Actions& out) {
  const AttemptIndex index = attempts_count_++;
  attempts_[index] = Attempt{Attempt::State::kAlive, probe, after_delay, host, now};
  if (index == 0 && request_.replayable) ++route_->measured_in_flight_;
  ++route_->counters_.attempts;
  route_->hedges_.record(now, index > 0);
  route_->hosts_.attempt_begins(host, now);
  out.push({.kind = Action::Kind::kStart, .attempt = index, .host = host});
}

void Race::end_attempt(AttemptIndex index, End end, TimePoint now) {
  Attempt& attempt = attempts_[index];
  attempt.state = Attempt::State::kOver;
  const bool primary = index == 0;
  // A body that streams through takes as long as its caller takes to send it: no latency of the
  // host's.
  const bool teaches = request_.replayable;
  const Duration elapsed = now - attempt.started;
  Counters& counters = route_->counters_;
  Breaker& breaker = route_->breaker_;
  route_->hosts_.attempt_ends(attempt.host);
  primary ? route_->budget_.primary_ends() : route_->budget_.hedge_ends();
  if (primary && teaches) --route_->measured_in_flight_;
  switch (end) {
    case End::kGood:
      ++counters.succeeded;
      route_->hosts_.attempt_answered(attempt.host);
      if (teaches) learn(attempt, primary, elapsed, false);
      if (primary) breaker.first_attempt_ended(now, false);
      if (attempt.probe) breaker.probe_ended(now, false);
      break;
    case End::kBadAnswer:
    case End::kNoAnswer:
      // Errors never enter the estimators: a server that fails fast is not fast.
      ++counters.failed;
      // A server that answers is there, whatever it answers: only silence suspends a host.
      if (end == End::kNoAnswer) {
        route_->hosts_.attempt_failed(attempt.host, now);
      } else {
        route_->hosts_.attempt_answered(attempt.host);
      }
      if (primary) breaker.first_attempt_ended(now, true);
      if (attempt.probe) breaker.probe_ended(now, true);
      break;
    case End::kSuperseded:
    case End::kCancelled:
      if (end == End::kSuperseded) {
        ++counters.superseded;
        counters.wasted += elapsed;
      } else {
        ++counters.cancelled;
      }
      if (teaches) learn(attempt, primary, elapsed, true);
      if (attempt.probe) breaker.probe_withdrawn(now);
      break;
    case End::kNotSent:
      ++counters.not_sent;
      if (!primary) ++counters.hedges_not_sent;
      if (attempt.probe) breaker.probe_withdrawn(now);
      break;
  }
}

void Race::learn(const Attempt& attempt, bool primary, Duration elapsed, bool censored) {
  if (!primary) {
    if (attempt.after_delay) route_->dependence_.record(elapsed, censored);
    return;
  }
  stats::Survival& into = route_->estimator_of(attempt.host);
  censored ? into.record_censored(elapsed) : into.record(elapsed);
  sample_change(elapsed, !censored, started_ + elapsed);
  if (slice_ == 0) return;
  const auto hedges = static_cast<std::uint32_t>(attempts_count_ - 1);
  route_->switchback_.record(slice_, elapsed, censored, hedges);
}

void Race::end_all(End end, AttemptIndex except, TimePoint now, Actions& out) {
  for (AttemptIndex i = 0; i < attempts_count_; ++i) {
    if (i == except) continue;
    if (attempts_[i].state == Attempt::State::kAlive) {
      end_attempt(i, end, now);
    } else if (attempts_[i].state != Attempt::State::kHeld) {
      continue;
    }
    attempts_[i].state = Attempt::State::kOver;
    out.push({.kind = Action::Kind::kCancel, .attempt = i});
  }
}

// Keeps the answer of the failure that tells the caller most, and lets go of the others.
void Race::hold_or_release(AttemptIndex index, bool has_answer, Actions& out) {
  const int rank = (has_answer ? 2 : 0) + (index == 0 ? 1 : 0);
  AttemptIndex release = index;
  if (rank > held_rank_) {
    release = std::exchange(held_, index);
    held_rank_ = rank;
    attempts_[index].state = Attempt::State::kHeld;
  }
  if (release == kNoAttempt) return;
  attempts_[release].state = Attempt::State::kOver;
  out.push({.kind = Action::Kind::kCancel, .attempt = release});
}

void Race::obey(const Outcome& outcome, TimePoint now) {
  if (outcome.overloaded || outcome.pushback.kind == Pushback::Kind::kNever) no_more_ = true;
  if (outcome.pushback.kind == Pushback::Kind::kAfter) {
    not_before_ = std::max(not_before_, now + outcome.pushback.after);
  }
}

void Race::finish(Action::Ending ending, AttemptIndex answer, TimePoint now, Actions& out) {
  state_ = State::kFinished;
  Counters& counters = route_->counters_;
  switch (ending) {
    case Action::Ending::kAnswered:
      ++counters.answered;
      if (answer != 0) ++counters.hedge_wins;
      route_->client_.record(now, now - started_);
      if (counts_ && (group_ == Group::kHedged || group_ == Group::kControl)) {
        route_->control_.record(now, group_ == Group::kControl, now - started_);
      }
      break;
    case Action::Ending::kFailed:
      ++counters.answered_badly;
      break;
    case Action::Ending::kTimedOut:
      ++counters.timed_out;
      break;
    case Action::Ending::kCallerGone:
      ++counters.caller_gone;
      break;
  }
  if (eligible_) {
    route_->hedged_.record(now, hedged_);
    route_->due_.record(now, due_);
  }
  remember(answer, now);
  out.push({.kind = Action::Kind::kFinish, .attempt = answer, .ending = ending});
}

void Race::remember(AttemptIndex answer, TimePoint now) {
  route_->decisions_.record(
      {.request = number_,
       .at = now,
       .latency = now - started_,
       .delay = plan_.stages > 0 ? plan_.stage[0].delay : kForever,
       .host = attempts_[0].host,
       .group = group_,
       .due = due_,
       .hedges = static_cast<std::uint8_t>(attempts_count_ == 0 ? 0 : attempts_count_ - 1),
       .winner = answer,
       .was_denied = denied_.has_value(),
       .denied = denied_.value_or(Denied::kBudget)});
}

void Race::arm(Actions& out) {
  TimePoint at = request_.deadline;
  if (waits_for_pushback_) {
    at = std::min(at, not_before_);
  } else if (stages_left()) {
    at = std::min(at, next_stage_at());
  }
  if (at == armed_at_) return;
  armed_at_ = at;
  out.push({.kind = Action::Kind::kArm, .at = at});
}

bool Race::anything_alive() const {
  for (AttemptIndex i = 0; i < attempts_count_; ++i) {
    if (alive(i)) return true;
  }
  return false;
}

bool Race::stages_left() const { return next_stage_ < plan_.stages && !no_more_; }

TimePoint Race::next_stage_at() const {
  const Duration delay = plan_.stage[next_stage_].delay;
  TimePoint at = std::max(started_ + delay, not_before_);
  if (next_stage_ > 0) {
    at = std::max(at, last_stage_at_ + (delay - plan_.stage[next_stage_ - 1].delay));
  }
  return at;
}

}  // namespace tailward::hedge
