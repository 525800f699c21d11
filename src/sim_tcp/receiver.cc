#include "sim_tcp/receiver.h"

#include <algorithm>

namespace tailward::sim_tcp {
namespace {

constexpr Duration kPatienceMin = std::chrono::milliseconds(40);   // TCP_ATO_MIN
constexpr Duration kPatienceMax = std::chrono::milliseconds(200);  // TCP_DELACK_MAX
constexpr std::uint32_t kQuickMax = 16;                            // TCP_MAX_QUICKACKS
// A new connection offers this at most (tcp_select_initial_window), and more as data come.
constexpr std::uint64_t kFirstWindow = 65'535;

}  // namespace

Receiver::Receiver(std::uint64_t buffer, std::uint8_t shift, Ticks ticks)
    : buffer_(buffer), shift_(shift), ticks_(ticks), window_limit_(std::min(buffer, kFirstWindow)) {
  offered_until_ = next_ + window_limit_;
}

void Receiver::quicken() {
  const std::uint64_t window = offered_until_ - next_;
  const auto count = static_cast<std::uint32_t>(window / (2 * segment_max_));
  quick_ = std::max(quick_, std::clamp<std::uint32_t>(count, 2, kQuickMax));
}

void Receiver::clear_duplicate() {
  if (duplicate_) sacks_.erase(sacks_.begin());
  duplicate_ = false;
}

void Receiver::note_arrival(std::uint64_t bytes, TimePoint now, Duration rto) {
  const Duration gap = now - arrived_;
  if (patience_ == Duration{0}) {
    quicken();
    patience_ = kPatienceMin;
  } else if (gap <= kPatienceMin / 2) {
    patience_ = patience_ / 2 + kPatienceMin / 2;
  } else if (gap < patience_) {
    patience_ = std::min(patience_ / 2 + gap, rto);
  } else if (gap > rto) {
    quicken();  // the sender was idle and may be in slow start: it needs the acknowledgements
  }
  arrived_ = now;
  if (bytes >= segment_max_) {
    segment_max_ = bytes;
    window_limit_ = std::min(buffer_, window_limit_ + 2 * bytes);
  } else {
    small_ = std::min<std::uint32_t>(2, small_ + 1);
  }
}

// Merged with what it touches; in front, for RFC 2018 wants the newest first.
bool Receiver::keep_for_later(SequenceRange data) {
  for (auto at = sacks_.begin(); at != sacks_.end();) {
    if (at->begin <= data.end && data.begin <= at->end) {
      data = {std::min(data.begin, at->begin), std::max(data.end, at->end)};
      at = sacks_.erase(at);
    } else {
      ++at;
    }
  }
  sacks_.insert(sacks_.begin(), data);
  return true;
}

bool Receiver::on_data(SequenceRange data, TimePoint now, Duration rto) {
  clear_duplicate();
  if (data.end <= next_) {
    quicken();
    duplicate_ = true;
    sacks_.insert(sacks_.begin(), data);
    return true;
  }
  if (data.begin >= offered_until_) return true;
  if (data.end > offered_until_) return true;  // no room: tcp_data_queue() drops the whole of it
  note_arrival(data.end - data.begin, now, rto);
  if (data.begin > next_) return keep_for_later(data);
  const bool had_gap = !sacks_.empty();
  next_ = data.end;
  for (bool moved = true; moved;) {
    moved = false;
    for (auto at = sacks_.begin(); at != sacks_.end(); ++at) {
      if (at->begin > next_) continue;
      next_ = std::max(next_, at->end);
      sacks_.erase(at);
      moved = true;
      break;
    }
  }
  const bool two = next_ - acked_ > segment_max_ && window() >= offered_until_ - next_;
  if (had_gap || two || (quick_ > 0 && !interactive_)) return true;
  const Duration wait = std::clamp(patience_, kPatienceMin, kPatienceMax);
  // The round-trip time of these paths is below 40 ms, and bounds the wait (tcp_send_delayed_ack).
  ack_due_ = std::min(ack_due_, ticks_.fires(now, std::min(wait, kPatienceMin)));
  return false;
}

bool Receiver::on_read(std::uint64_t bytes) {
  read_ += bytes;
  const bool last = unread() == 0 && (small_ == 2 || (small_ == 1 && !interactive_));
  if (ack_due_ != kNever && (next_ - acked_ > segment_max_ || last)) return true;
  const std::uint64_t offered = offered_until_ - std::min(offered_until_, next_);
  if (2 * offered > buffer_) return false;
  const std::uint64_t now = window();
  return now > 0 && now >= 2 * offered;
}

void Receiver::on_timer(Duration rto) {
  if (interactive_) {
    interactive_ = false;
    patience_ = kPatienceMin;
  } else {
    patience_ = std::min(2 * patience_, rto);
  }
  ack_due_ = kNever;
}

void Receiver::on_data_sent(TimePoint now) {
  if (now - arrived_ < patience_) interactive_ = true;
}

void Receiver::on_ack_sent(std::uint64_t window) {
  acked_ = next_;
  offered_until_ = next_ + window;
  if (quick_ > 0) --quick_;
  small_ = 0;
  ack_due_ = kNever;
  clear_duplicate();
}

std::uint64_t Receiver::window() const {
  const std::uint64_t offered = offered_until_ - std::min(offered_until_, next_);
  const std::uint64_t unit = std::uint64_t{1} << shift_;
  std::uint64_t free = buffer_ - std::min(buffer_, unread());
  // Silly windows are not offered (RFC 1122, section 4.2.3.3), but what was offered stays.
  if (free < buffer_ / 2 && (free < buffer_ / 16 || free < segment_max_)) free = 0;
  free = std::min(free, window_limit_);
  return std::max(offered, free) / unit * unit;
}

}  // namespace tailward::sim_tcp
