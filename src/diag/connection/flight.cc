#include "diag/connection/flight.h"

#include <algorithm>

#include "base/check.h"
#include "diag/thresholds.h"
#include "tcp/sequence.h"

namespace tailward::diag {
namespace {

// How long after its capture an ACK is taken to be at the sender: a little less than the way, which
// varies.
Duration lag(Duration rtt_to_sender) {
  return rtt_to_sender < thresholds.way.of_kernels ? Duration{0} : rtt_to_sender * 4 / 5;
}
Duration prompt_limit(Duration rtt_to_sender) {
  return thresholds.flight.prompt + rtt_to_sender / 2;
}

}  // namespace

void FlightTracker::acked(Duration at, std::uint32_t ack, std::uint32_t window) {
  if (waiting_ == acks_.size()) {  // the newest stands for the ones between
    acks_[(first_ + waiting_ - 1u) % acks_.size()] = {at, ack, window};
    return;
  }
  acks_[(first_ + waiting_) % acks_.size()] = {at, ack, window};
  ++waiting_;
}

void FlightTracker::look(Duration at, std::uint32_t limit) {
  if (!known_) return;
  const std::int64_t usable = static_cast<std::int64_t>(window_) - tcp::distance(end_, acked_);
  const bool limited = usable < static_cast<std::int64_t>(limit);
  if (limited) {
    was_limited_ = true;
    limited_window_ = window_;
  } else if (limited_) {
    opened_ = at;
  }
  limited_ = limited;
}

void FlightTracker::apply(Duration now, Duration rtt_to_sender, std::uint32_t limit) {
  while (waiting_ > 0) {
    const Ack& ack = acks_[first_];
    const Duration there = ack.at + lag(rtt_to_sender);
    if (there > now) return;
    acked_ = ack.ack;
    window_ = ack.window;
    known_ = true;
    acked_at_ = ack.at + rtt_to_sender;
    look(acked_at_, limit);
    first_ = static_cast<std::uint8_t>((first_ + 1u) % acks_.size());
    --waiting_;
  }
}

std::optional<FlightTracker::Limit> FlightTracker::blocked(Duration at, Duration rtt_to_sender,
                                                           std::uint32_t window_max) {
  if (!was_limited_) return {};
  was_limited_ = false;
  if (!limited_ && at - opened_ > prompt_limit(rtt_to_sender)) return {};  // it had nothing to send
  Limit limit{.from = sent_at_, .until = at, .amount = at - sent_at_};
  const bool whole = limited_window_ / 3 >= window_max / 4;
  limit.kind = window_max <= thresholds.window.small || whole ? StallKind::kReceiveWindow
                                                              : StallKind::kZeroWindow;
  return limit;
}

void FlightTracker::start_level(Duration at, std::uint32_t peak) {
  lowest_ = highest_ = first_peak_ = peak;
  rounds_ = peak == 0 ? 0 : 1;
  prompt_ = idle_ = 0;
  level_began_ = at;
  waited_ = Duration{0};
}

// One more round has ended with `peak_` in flight at most.
std::optional<FlightTracker::Limit> FlightTracker::level(Duration at, std::uint32_t end,
                                                         std::uint32_t mss) {
  const std::uint32_t peak = peak_;
  mark_ = end;
  peak_ = 0;
  const std::uint32_t lowest = std::min(lowest_, peak), highest = std::max(highest_, peak);
  const std::uint32_t drift = peak > first_peak_ ? peak - first_peak_ : 0;
  if (rounds_ == 0 || highest - lowest > std::max(mss, highest / 8) ||
      drift > std::max(mss, highest / 32)) {
    start_level(at, peak);
    return {};
  }
  lowest_ = lowest;
  highest_ = highest;
  ++rounds_;
  if (rounds_ < thresholds.flight.rounds_min || idle_ * 4 > prompt_) return {};
  if (highest > window_ / 2 || highest < 2 * mss) return {};
  const Limit limit{.kind = StallKind::kSendBuffer,
                    .from = level_began_,
                    .until = at,
                    .amount = waited_,
                    .in_flight = highest};
  level_began_ = at;
  waited_ = Duration{0};
  return limit;
}

std::optional<FlightTracker::Limit> FlightTracker::sent(Duration at, std::uint32_t end,
                                                        std::uint32_t mss, Duration rtt_to_sender,
                                                        Duration rtt, std::uint32_t window_max) {
  const std::uint32_t limit = std::max<std::uint32_t>(1, std::min(mss, window_max / 2));
  const bool first = sent_at_ == Duration{0};
  apply(at, rtt_to_sender, limit);
  if (!known_) acked_ = end;
  std::optional<Limit> found;
  if (!first) {
    found = blocked(at, rtt_to_sender, window_max);
    const Duration gap = at - sent_at_;
    const bool prompt = acked_at_ >= sent_at_ && at - acked_at_ <= prompt_limit(rtt_to_sender);
    if (found) {
      found->in_flight = in_flight();
      start_level(at, 0);
    } else if (gap >= std::max(thresholds.flight.gap_min, rtt / 8)) {
      (prompt ? prompt_ : idle_) += 1;
      if (prompt) waited_ += gap;
      if (gap > thresholds.flight.pause + 4 * rtt_to_sender) start_level(at, 0);
    }
  }
  end_ = end;
  sent_at_ = at;
  peak_ = std::max(peak_, static_cast<std::uint32_t>(std::max(0, tcp::distance(end, acked_))));
  if (first) {
    mark_ = end;
  } else if (tcp::distance(acked_, mark_) >= 0) {
    const auto held = level(at, end, mss);
    if (held && !found) found = held;
  }
  look(at, limit);
  return found;
}

std::uint32_t FlightTracker::in_flight() const {
  return static_cast<std::uint32_t>(std::max(0, tcp::distance(end_, acked_)));
}

void FlightTracker::interrupt() {
  start_level(Duration{0}, 0);
  was_limited_ = limited_ = false;
  sent_at_ = Duration{0};
}

}  // namespace tailward::diag
