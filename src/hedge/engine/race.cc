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
  for (AttemptIndex i = 0; i < ticket_.attempts; ++i) {
    if (running(i)) end_attempt(i, AttemptEnd::kAbandoned, ticket_.started);
  }
  route_->abandon_request();
}

Actions Race::start(const RequestInfo& request, TimePoint now) {
  TAILWARD_CHECK(state_ == State::kIdle);
  state_ = State::kRunning;
  request_ = request;
  route_->begin_request(request, now, ticket_);
  Actions out;
  if (ticket_.host == kNoHost) {
    finish(Ending::kFailed, kNoAttempt, now, out);
    return out;
  }
  begin({.host = ticket_.host, .started = now}, out);
  arm(out);
  return out;
}

void Race::begin(const Attempt& attempt, Actions& out) {
  const auto index = static_cast<AttemptIndex>(ticket_.attempts - 1);
  runners_[index] = {Runner::State::kRunning, attempt};
  out.push({.kind = Action::Kind::kStart, .attempt = index, .host = attempt.host});
}

Actions Race::on_outcome(AttemptIndex attempt, const Outcome& outcome, TimePoint now) {
  Actions out;
  if (state_ != State::kRunning || !running(attempt)) return out;
  switch (outcome.result) {
    case Outcome::Class::kGood:
      end_attempt(attempt, AttemptEnd::kGood, now);
      end_all(AttemptEnd::kSuperseded, attempt, now, out);
      finish(Ending::kAnswered, attempt, now, out);
      break;
    case Outcome::Class::kFatal:
      end_attempt(attempt,
                  outcome.has_response ? AttemptEnd::kBadResponse : AttemptEnd::kNoResponse, now);
      end_all(AttemptEnd::kSuperseded, attempt, now, out);
      finish(Ending::kFailed, attempt, now, out);
      break;
    case Outcome::Class::kNotSent:
      end_attempt(attempt, AttemptEnd::kNotSent, now);
      hold_or_release(attempt, false, out);
      if (!anything_running()) finish(Ending::kFailed, held_, now, out);
      break;
    case Outcome::Class::kBad:
      end_attempt(attempt,
                  outcome.has_response ? AttemptEnd::kBadResponse : AttemptEnd::kNoResponse, now);
      hold_or_release(attempt, outcome.has_response, out);
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
    const AttemptIndex held = held_has_response() ? held_ : kNoAttempt;
    end_all(AttemptEnd::kCancelled, held, now, out);
    finish(Ending::kTimedOut, held, now, out);
    return out;
  }
  if (waits_for_pushback_) {
    if (now >= not_before_ && !try_hedge(true, now, out)) {
      finish(Ending::kFailed, held_, now, out);
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
  end_all(AttemptEnd::kCancelled, kNoAttempt, now, out);
  finish(Ending::kCallerGone, kNoAttempt, now, out);
  return out;
}

// One stage at a time: a driver that wakes late must not send all copies at once.
void Race::run_due_stage(TimePoint now, Actions& out) {
  const Stage& stage = ticket_.plan.stage[next_stage_++];
  last_stage_at_ = now;
  if (!route_->stage_due(ticket_, stage, running(0), now)) return;
  static_cast<void>(try_hedge(false, now, out));
}

void Race::go_on_after_failure(TimePoint now, Actions& out) {
  const bool may_go_on = ticket_.attempts <= ticket_.hedges_max && !no_more_;
  if (may_go_on && now >= not_before_) {
    if (try_hedge(true, now, out)) {
      arm(out);
      return;
    }
  } else if (may_go_on && !anything_running() && worth_waiting_for(now)) {
    waits_for_pushback_ = true;
    arm(out);
    return;
  }
  if (anything_running()) {
    arm(out);
  } else {
    finish(Ending::kFailed, held_, now, out);
  }
}

// Whether an attempt at not_before_ is likely to be allowed: otherwise the caller has its response
// now.
bool Race::worth_waiting_for(TimePoint now) {
  if (!ticket_.could_hedge || not_before_ >= request_.deadline ||
      not_before_ - now > route_->config().pushback_wait_max) {
    return false;
  }
  std::array<HostIndex, kAttemptsMax> used;
  return route_->would_hedge(used_hosts(used), now);
}

std::span<const HostIndex> Race::used_hosts(std::array<HostIndex, kAttemptsMax>& used) const {
  for (std::size_t i = 0; i < ticket_.attempts; ++i) used[i] = runners_[i].attempt.host;
  return {used.data(), ticket_.attempts};
}

bool Race::try_hedge(bool after_failure, TimePoint now, Actions& out) {
  if (const std::optional<Denied> why = refused(now)) {
    route_->deny(ticket_, *why);
    return false;
  }
  std::array<HostIndex, kAttemptsMax> used;
  const std::optional<Attempt> hedge =
      route_->begin_hedge(ticket_, used_hosts(used), after_failure, now);
  if (!hedge) return false;
  waits_for_pushback_ = false;
  // A hedge after a failure takes the place of the next stage: the later ones keep their times.
  if (after_failure && next_stage_ < ticket_.plan.stages) ++next_stage_;
  begin(*hedge, out);
  return true;
}

std::optional<Denied> Race::refused(TimePoint now) const {
  if (!request_.idempotent) return Denied::kNotIdempotent;
  if (!request_.replayable) return Denied::kNotReplayable;
  if (request_.is_hedge) return Denied::kNested;
  if (no_more_ || now < not_before_) return Denied::kPushback;
  if (request_.deadline != kNever && request_.deadline - now < ticket_.plan.fresh_median) {
    return Denied::kDeadline;
  }
  return std::nullopt;
}

void Race::end_attempt(AttemptIndex index, AttemptEnd end, TimePoint now) {
  runners_[index].state = Runner::State::kOver;
  route_->end_attempt(ticket_, runners_[index].attempt, end, now);
}

void Race::end_all(AttemptEnd end, AttemptIndex except, TimePoint now, Actions& out) {
  for (AttemptIndex i = 0; i < ticket_.attempts; ++i) {
    if (i == except) continue;
    if (runners_[i].state == Runner::State::kRunning) {
      end_attempt(i, end, now);
    } else if (runners_[i].state != Runner::State::kHeld) {
      continue;
    }
    runners_[i].state = Runner::State::kOver;
    out.push({.kind = Action::Kind::kCancel, .attempt = i});
  }
}

// Keeps the answer of the failure that tells the caller most, and lets go of the others.
void Race::hold_or_release(AttemptIndex index, bool has_response, Actions& out) {
  const int rank = (has_response ? 2 : 0) + (index == 0 ? 1 : 0);
  AttemptIndex release = index;
  if (rank > held_rank_) {
    release = std::exchange(held_, index);
    held_rank_ = rank;
    runners_[index].state = Runner::State::kHeld;
  }
  if (release == kNoAttempt) return;
  runners_[release].state = Runner::State::kOver;
  out.push({.kind = Action::Kind::kCancel, .attempt = release});
}

void Race::obey(const Outcome& outcome, TimePoint now) {
  if (outcome.overloaded || outcome.pushback.kind == Pushback::Kind::kNever) no_more_ = true;
  if (outcome.pushback.kind == Pushback::Kind::kAfter) {
    not_before_ = std::max(not_before_, now + outcome.pushback.after);
  }
}

void Race::finish(Ending ending, AttemptIndex winner, TimePoint now, Actions& out) {
  state_ = State::kFinished;
  route_->end_request(ticket_, ending, winner, now);
  out.push({.kind = Action::Kind::kFinish, .attempt = winner, .ending = ending});
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

bool Race::anything_running() const {
  for (AttemptIndex i = 0; i < ticket_.attempts; ++i) {
    if (running(i)) return true;
  }
  return false;
}

bool Race::stages_left() const { return next_stage_ < ticket_.plan.stages && !no_more_; }

TimePoint Race::next_stage_at() const {
  const Duration delay = ticket_.plan.stage[next_stage_].delay;
  TimePoint at = std::max(ticket_.started + delay, not_before_);
  if (next_stage_ > 0) {
    at = std::max(at, last_stage_at_ + (delay - ticket_.plan.stage[next_stage_ - 1].delay));
  }
  return at;
}

}  // namespace tailward::hedge
