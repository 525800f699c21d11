#include "sim_tcp/sender.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace tailward::sim_tcp {
namespace {

using std::chrono::milliseconds;

constexpr Duration kRtoMin = milliseconds(200);          // TCP_RTO_MIN
constexpr Duration kRtoFirst = std::chrono::seconds(1);  // TCP_TIMEOUT_INIT
constexpr Duration kRtoMax = std::chrono::seconds(120);  // TCP_RTO_MAX
constexpr double kWindowFirst = 10;                      // segments
constexpr double kDecrease = 0.7;                        // CUBIC's beta (RFC 9438)
constexpr std::size_t kSackedOfLoss = 3;                 // RFC 6675's DupThresh
constexpr std::uint64_t kHalfWindowFrom = 536;           // tcp_bound_to_half_wnd()

}  // namespace

std::uint64_t Sender::write(std::uint64_t bytes) {
  const std::uint64_t used = written_ - acked_;
  const std::uint64_t room = options_.send_buffer - std::min(options_.send_buffer, used);
  const std::uint64_t taken = std::min(bytes, room);
  written_ += taken;
  return taken;
}

bool Sender::writable() const { return written_ - acked_ <= options_.send_buffer * 2 / 3; }

std::uint32_t Sender::segment_max() const {
  if (window_max_ <= kHalfWindowFrom) return kSegmentMax;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(kSegmentMax, window_max_ / 2));
}

// RFC 6675's pipe: sent, and neither delivered nor lost.
std::size_t Sender::in_flight() const { return flight_.size() - sacked_ - to_repeat_; }

Duration Sender::rto() const {
  if (rtt_.smoothed == Duration{0}) return kRtoFirst;
  return rtt_.smoothed + std::max(4 * rtt_.deviation, kRtoMin);
}

void Sender::sample(Duration rtt) {
  rtt_.least = std::min(rtt_.least, rtt);
  if (rtt_.smoothed == Duration{0}) {
    rtt_.smoothed = rtt;
    rtt_.deviation = rtt / 2;
    return;
  }
  const Duration error = rtt - rtt_.smoothed;
  rtt_.smoothed += error / 8;
  rtt_.deviation += (std::chrono::abs(error) - rtt_.deviation) / 4;
}

// Nagle as Minshall changed it: at most one small segment is unacknowledged. A cork lets none go.
bool Sender::may_send_small(std::uint32_t payload) const {
  if (closing_ && next_ + payload == written_) return true;
  if (corked_) return false;
  return options_.nodelay || small_until_ <= acked_;
}

std::optional<Sender::Outgoing> Sender::send_again(TimePoint now) {
  if (to_repeat_ == 0) return {};
  for (Sent& sent : flight_) {
    if (!sent.to_repeat()) continue;
    sent.again = true;
    --to_repeat_;
    sent.at = last_sent_ = now;
    return sent.what;
  }
  return {};
}

Sender::Outgoing Sender::send(std::uint32_t payload, bool fin, TimePoint now) {
  const Outgoing what{next_, payload, fin, next_ + payload == written_};
  flight_.push_back({what, now});
  next_ = flight_.back().end();
  if (fin) {
    fin_sent_ = true;
    written_ = next_;
  }
  if (payload > 0 && payload < segment_max()) small_until_ = next_;
  last_sent_ = now;
  if (timer_ == Timer::kWindowProbe) timer_ = Timer::kNone;
  return what;
}

std::optional<Sender::Outgoing> Sender::send_new(TimePoint now) {
  const std::uint64_t waiting = written_ - next_;
  const bool fin = closing_ && !fin_sent_ && waiting == 0;
  if (waiting == 0 && !fin) return {};
  if (fin) return send(0, true, now);
  const auto payload = static_cast<std::uint32_t>(std::min<std::uint64_t>(waiting, segment_max()));
  if (next_ + payload > window_until_) return {};
  if (payload < segment_max() && !may_send_small(payload)) return {};
  return send(payload, false, now);
}

std::optional<Sender::Outgoing> Sender::next_segment(TimePoint now) {
  // After an idle RTO the path is not known any more (tcp_slow_start_after_idle).
  if (flight_.empty() && now - last_sent_ > rto()) {
    congestion_.window = std::min(congestion_.window, kWindowFirst);
  }
  const auto window = static_cast<std::size_t>(std::max(1.0, congestion_.window));
  if (in_flight() >= window) {
    congestion_.limited = congestion_.limited || written_ > next_;
    return {};
  }
  if (auto again = send_again(now)) return again;
  return send_new(now);
}

void Sender::reduce() {
  if (acked_ < congestion_.recovers_at) return;  // once for each window of data
  congestion_.threshold = std::max(2.0, congestion_.window * kDecrease);
  congestion_.recovers_at = next_;
}

void Sender::take_acked(std::uint64_t until, TimePoint now) {
  std::optional<Duration> rtt;
  double segments = 0;
  while (!flight_.empty() && flight_.front().end() <= until) {
    const Sent& sent = flight_.front();
    if (!sent.again) rtt = now - sent.at;
    newest_delivered_ = std::max(newest_delivered_, sent.at);
    ++segments;
    sacked_ -= sent.sacked ? 1 : 0;
    to_repeat_ -= sent.to_repeat() ? 1 : 0;
    flight_.pop_front();
  }
  if (rtt) sample(*rtt);
  acked_ = until;
  backoff_ = 0;
  tail_probed_ = false;
  progress_ = now;
  if (acked_ < congestion_.recovers_at) return;
  if (!congestion_.limited) return;
  congestion_.limited = false;
  congestion_.window +=
      congestion_.window < congestion_.threshold ? segments : segments / congestion_.window;
}

// RFC 6675 by count, RFC 8985 by time: what was sent before something that has arrived, and is
// overdue by a quarter of a round trip.
void Sender::find_lost(TimePoint now) {
  std::size_t sacked_above = sacked_;
  if (sacked_above == 0) return;
  const Duration wait = rtt_.least == kForever ? kRtoMin : rtt_.least / 4;
  bool found = false;
  for (Sent& sent : flight_) {
    if (sent.sacked) {
      --sacked_above;
      continue;
    }
    if (sacked_above == 0) break;
    if (sent.to_repeat()) continue;
    const bool overdue = sent.at < newest_delivered_ && now - sent.at >= rtt_.smoothed + wait;
    if (!overdue && (sent.again || sacked_above < kSackedOfLoss)) continue;
    sent.lost = true;
    sent.again = false;
    ++to_repeat_;
    found = true;
  }
  if (!found) return;
  reduce();
  congestion_.window = std::min(congestion_.window, congestion_.threshold);
}

void Sender::on_ack(const Ack& ack, TimePoint now) {
  if (ack.until > next_ || ack.until < acked_) return;
  const bool opened = ack.until + ack.window > window_until_;
  window_until_ = ack.until + ack.window;
  window_max_ = std::max(window_max_, ack.window);
  if (opened && timer_ == Timer::kWindowProbe) timer_ = Timer::kNone;
  for (const SequenceRange& range : ack.sacks) {
    for (Sent& sent : flight_) {
      if (sent.sacked || sent.what.begin < range.begin || sent.end() > range.end) continue;
      to_repeat_ -= sent.to_repeat() ? 1 : 0;
      sent.sacked = true;
      ++sacked_;
      newest_delivered_ = std::max(newest_delivered_, sent.at);
    }
  }
  if (ack.until > acked_) take_acked(ack.until, now);
  find_lost(now);
}

void Sender::arm(TimePoint now) {
  if (flight_.empty()) {
    const bool held = written_ > next_;
    if (held && timer_ == Timer::kWindowProbe) return;
    timer_ = held ? Timer::kWindowProbe : Timer::kNone;
    deadline_ = held ? ticks_.fires(now, std::min(kRtoMax, rto() * (1u << backoff_))) : kNever;
    return;
  }
  const Sent& head = flight_.front();
  const TimePoint base = std::max({head.at, progress_, tail_probed_ ? last_sent_ : TimePoint{}});
  const Duration timeout = std::min(kRtoMax, rto() * (1u << std::min(backoff_, 10u)));
  timer_ = Timer::kTimeout;
  deadline_ = ticks_.fires(base, timeout);
  if (sacked_ > 0) {
    const auto waits = std::find_if(flight_.begin(), flight_.end(), [&](const Sent& sent) {
      return !sent.sacked && !sent.to_repeat() && sent.at < newest_delivered_;
    });
    if (waits != flight_.end()) {
      const TimePoint due = waits->at + rtt_.smoothed + rtt_.least / 4;
      timer_ = Timer::kReorder;
      deadline_ = std::min(deadline_, ticks_.fires(std::max(now, due), Duration{0}));
    }
    return;
  }
  const bool repeats = acked_ < congestion_.recovers_at || backoff_ > 0;
  if (tail_probed_ || repeats || rtt_.smoothed == Duration{0}) return;
  // tcp_schedule_loss_probe(): one segment alone may wait for a delayed acknowledgement.
  const Duration patience = 2 * rtt_.smoothed + (flight_.size() == 1 ? kRtoMin : 2 * ticks_.length);
  timer_ = Timer::kTailProbe;
  deadline_ = std::min(deadline_, ticks_.fires(std::max(last_sent_, progress_), patience));
}

Sender::Probe Sender::on_timer(TimePoint now) {
  const Timer fired = timer_;
  timer_ = Timer::kNone;
  deadline_ = kNever;
  switch (fired) {
    case Timer::kNone:
      return {};
    case Timer::kReorder:
      find_lost(now);
      return {};
    case Timer::kTailProbe: {
      tail_probed_ = true;
      if (auto more = send_new(now)) return {.segment = more};
      Sent& last = flight_.back();
      to_repeat_ -= last.to_repeat() ? 1 : 0;
      last.again = true;
      last.at = last_sent_ = now;
      return {.segment = last.what};
    }
    case Timer::kTimeout:
      congestion_.recovers_at = 0;
      reduce();
      congestion_.window = 1;
      ++backoff_;
      tail_probed_ = false;
      to_repeat_ = 0;
      for (Sent& sent : flight_) {
        if (sent.sacked) continue;
        sent.lost = true;
        sent.again = false;
        ++to_repeat_;
      }
      return {};
    case Timer::kWindowProbe: {
      // tcp_write_wakeup(): what fits the window leaves, corked or not.
      const std::uint64_t room = window_until_ - std::min(window_until_, next_);
      const std::uint64_t size = std::min({written_ - next_, room, std::uint64_t{segment_max()}});
      if (size > 0) return {.segment = send(static_cast<std::uint32_t>(size), false, now)};
      ++backoff_;
      return {.window_probe = true};
    }
  }
  return {};
}

}  // namespace tailward::sim_tcp
