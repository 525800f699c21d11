#include "diag/connection/turns.h"

#include <algorithm>
#include <numeric>

#include "diag/thresholds.h"

namespace tailward::diag {
namespace {

std::uint32_t to_us(Duration duration) {
  return static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(duration.count() / 1000, 0, UINT32_MAX));
}

Duration stalled_of(const Turn& turn) {
  return std::chrono::microseconds(
      std::accumulate(turn.stalled_us.begin(), turn.stalled_us.end(), std::uint64_t{0}));
}

}  // namespace

void TurnTracker::handshake(Duration began, Duration took) {
  handshake_pending_ = true;
  handshake_began_ = began;
  handshake_took_ = std::max(took, Duration{0});
}

void TurnTracker::handshake_stall(StallKind kind, Duration amount) {
  handshake_stalled_us_[static_cast<std::size_t>(kind)] += to_us(amount);
}

void TurnTracker::begin(Phase phase, Duration at) {
  phase_ = phase;
  began_ = last_request_ = at;
  first_answer_ = last_answer_ = at;
  request_acked_ = request_acked_alone_ = answer_acked_ = Duration{0};
  covered_ = at;
  stalled_us_ = {};
}

std::optional<Turn> TurnTracker::client_data(Duration at, bool acked, bool answered,
                                             const RoundTrips& rtts) {
  std::optional<Turn> ended;
  if (phase_ == Phase::kRequest) {
    const Duration since = std::max({last_request_, request_acked_, covered_});
    if (acked && at - since >= thresholds.turn.stream_pause) {
      ended = close({}, rtts);
      begin(Phase::kRequest, at);
    }
    last_request_ = at;
    request_acked_ = request_acked_alone_ = Duration{0};
    return ended;
  }
  if (phase_ != Phase::kIdle && !answered) return ended;
  if (phase_ != Phase::kIdle) ended = close({}, rtts);
  begin(Phase::kRequest, at);
  return ended;
}

std::optional<Turn> TurnTracker::server_data(Duration at, bool acked, const RoundTrips& rtts) {
  std::optional<Turn> ended;
  const Duration pause =
      phase_ == Phase::kPush ? thresholds.turn.stream_pause : thresholds.turn.response_pause;
  switch (phase_) {
    case Phase::kRequest:
      phase_ = Phase::kAnswer;
      first_answer_ = at;
      break;
    case Phase::kAnswer:
    case Phase::kPush:
      if (!acked || at - std::max(last_answer_, covered_) < pause) break;
      ended = close({}, rtts);
      [[fallthrough]];
    case Phase::kIdle:
      greeting_ = handshake_pending_;
      begin(Phase::kPush, greeting_ ? handshake_began_ + handshake_took_ : at);
      first_answer_ = at;
      break;
  }
  last_answer_ = at;
  answer_acked_ = Duration{0};
  return ended;
}

void TurnTracker::client_data_acked(Duration at, bool alone) {
  if (phase_ != Phase::kRequest || request_acked_ != Duration{0}) return;
  request_acked_ = at;
  if (alone) request_acked_alone_ = at;
}

void TurnTracker::server_data_acked(Duration at) {
  if (phase_ != Phase::kAnswer && phase_ != Phase::kPush) return;
  if (answer_acked_ == Duration{0}) answer_acked_ = at;
}

Duration TurnTracker::stall(StallKind kind, Duration from, Duration until, Duration amount) {
  if (phase_ == Phase::kIdle) return amount;
  const Duration fresh = until - std::max({from, covered_, began_});
  const Duration counted = std::clamp(amount, Duration{0}, std::max(fresh, Duration{0}));
  covered_ = std::max(covered_, until);
  stalled_us_[static_cast<std::size_t>(kind)] += to_us(counted);
  return counted;
}

// The way to the server is part of the wait for an answer. Where the kernel's own ACK shows that it
// took longer than a delayed ACK can explain, and nothing was lost, the ACK says how long.
void TurnTracker::add_wire(Turn& turn, const RoundTrips& rtts) const {
  const Duration wait = first_answer_ - last_request_;
  turn.wire = std::min(wait, rtts.to_server);
  if (request_acked_alone_ != Duration{0} && covered_ <= last_request_) {
    const Duration acked = request_acked_alone_ - last_request_;
    if (acked > rtts.to_server + thresholds.turn.delayed_ack_max) turn.wire = std::min(wait, acked);
  }
  turn.think = wait - turn.wire;
}

std::optional<Turn> TurnTracker::close(std::optional<Duration> waited_until,
                                       const RoundTrips& rtts) {
  if (phase_ == Phase::kIdle) return {};
  const Phase phase = phase_;
  phase_ = Phase::kIdle;
  Turn turn;
  turn.stalled_us = stalled_us_;
  turn.request = last_request_ - began_;
  Duration end = last_request_;
  if (phase == Phase::kRequest) {
    end = std::max({last_request_, request_acked_, covered_, waited_until.value_or(Duration{0})});
    turn.think = end - last_request_;
  } else {
    end = std::max(last_answer_, covered_);
    if (answer_acked_ > last_answer_) {
      const Duration way = std::min(answer_acked_, last_answer_ + rtts.to_client);
      end = std::max(end, covered_ > last_answer_ ? answer_acked_ : way);
    }
    add_wire(turn, rtts);
    turn.response = last_answer_ - first_answer_;
    turn.final_ack_wait = end - last_answer_;
  }
  const bool with_handshake = handshake_pending_ && (phase != Phase::kPush || greeting_);
  turn.began = began_;
  if (with_handshake) {
    turn.handshake = handshake_took_;
    turn.began = began_ - handshake_took_;
    for (std::size_t i = 0; i < kStallKinds; ++i) turn.stalled_us[i] += handshake_stalled_us_[i];
  }
  handshake_pending_ = greeting_ = false;
  turn.total =
      turn.handshake + turn.request + turn.wire + turn.think + turn.response + turn.final_ack_wait;
  if (turn.wire >= thresholds.handshake.slow_way) {
    const Duration left = turn.total - stalled_of(turn);
    turn.stalled_us[static_cast<std::size_t>(StallKind::kWire)] += to_us(std::min(left, turn.wire));
  }
  ++turns_;
  if (phase == Phase::kPush && !with_handshake && stalled_of(turn) == Duration{0}) return {};
  return turn;
}

}  // namespace tailward::diag
