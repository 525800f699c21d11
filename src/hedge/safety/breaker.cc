#include "hedge/safety/breaker.h"

#include <algorithm>

namespace tailward::hedge {

Breaker::Breaker(const BreakerConfig& config)
    : config_(config), errors_(config.window), cool_down_(config.cool_down) {}

bool Breaker::failing(TimePoint now) {
  const stats::WindowedShare::Totals totals = errors_.totals(now);
  return totals.trials >= config_.samples_min && totals.share() > config_.error_rate;
}

void Breaker::open(TimePoint now, Duration cool_down) {
  state_ = State::kOpen;
  probing_ = false;
  cool_down_ = std::min(cool_down, config_.cool_down_max);
  open_until_ = now + cool_down_;
  ++times_opened_;
}

void Breaker::first_attempt_ended(TimePoint now, bool failed) {
  errors_.record(now, failed);
  // Only a failure can open it: the answers that go well need not pay for the sum.
  if (failed && state_ == State::kClosed && failing(now)) open(now, config_.cool_down);
}

bool Breaker::allows_hedge(TimePoint now) {
  if (state_ == State::kOpen && now >= open_until_) state_ = State::kHalfOpen;
  switch (state_) {
    case State::kClosed:
      return true;
    case State::kOpen:
      return false;
    case State::kHalfOpen:
      return !probing_;
  }
  return false;
}

bool Breaker::hedge_sent() {
  if (state_ != State::kHalfOpen) return false;
  probing_ = true;
  return true;
}

void Breaker::close() {
  state_ = State::kClosed;
  probing_ = false;
  cool_down_ = config_.cool_down;
}

void Breaker::probe_ended(TimePoint now, bool failed) {
  if (state_ != State::kHalfOpen) return;
  if (failed || failing(now)) {
    open(now, 2 * cool_down_);
  } else {
    close();
  }
}

void Breaker::probe_withdrawn(TimePoint now) {
  if (state_ != State::kHalfOpen) return;
  probing_ = false;
  if (!failing(now)) close();
}

}  // namespace tailward::hedge
