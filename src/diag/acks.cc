// Connection, acknowledgements and windows.

#include <algorithm>
#include <cmath>

#include "diag/connection.h"

namespace tailward::diag {
namespace {

constexpr Duration kDelayedAckMin = std::chrono::milliseconds(25);
// After its window has opened, a sender that has data sends at once.
constexpr Duration kPrompt = std::chrono::milliseconds(2);
// More than any window: what is not known must not look like a limit.
constexpr std::uint32_t kUnknownWindow = 1U << 30;

// The time stamp that an ACK echoes tells which copy it is for (RFC 3522). One for the first was
// late, but nothing was lost. Data may echo an old stamp when they are sent again themselves.
bool answers_first_copy(const Sent& sent, const tcp::Segment& ack) {
  return ack.payload == 0 && ack.ts_echo && sent.ts != 0 && tcp::is_after(sent.ts, *ack.ts_echo);
}

}  // namespace

// Returns whether it differs from the one before.
bool Connection::take_window(tcp::Side side, const tcp::Segment& s) {
  Half& half = half_[side];
  std::uint32_t window = s.window;
  if (!half.scale_known || half.scale_learned) learn_scale(half, s);
  half.raw_window = s.window;
  half.raw_window_max = std::max(half.raw_window_max, s.window);
  half.shrunk = half.shrunk || s.window < half.raw_window_max / 2;
  if (half.scale_known) window <<= half.scale;
  if (half.scaled && window > 0) window = kUnknownWindow;
  const bool changed = !half.window_seen || window != half.window;
  half.window_seen = true;
  half.window = window;
  if (!half.scaled) half.window_max = std::max(half.window_max, window);
  if (window == 0) {
    half.opened_at = Duration{0};
    if (!half.zero) {
      half.zero = true;
      half.zero_at = now_;
      half.zero_number = s.number;
      half.probes = 0;
    }
  } else if (half.zero && half.opened_at == Duration{0}) {
    half.opened_at = now_;
  }
  return changed;
}

// A receiver that does not read keeps the end of its window where it is: what the acknowledgement
// moves on, the window shrinks by. Their ratio is the scale. While it reads the ratio is larger, by
// anything: so of two scales that many segments speak for it is the smaller one.
void Connection::learn_scale(Half& half, const tcp::Segment& s) const {
  constexpr std::int32_t kShrunkMin = 16;
  constexpr double kNear = 0.07;  // 1/16 is what rounding may do
  constexpr std::uint8_t kVotesMin = 8;
  const bool grew = !half.window_seen || s.window > half.raw_window;
  const std::int32_t shrunk = half.anchor_window - s.window;
  const std::int32_t acked = tcp::distance(s.ack, half.anchor_ack);
  if (!grew && (shrunk < kShrunkMin || acked < shrunk)) return;
  half.anchor_window = s.window;
  half.anchor_ack = s.ack;
  if (grew) return;
  const double ratio = static_cast<double>(acked) / shrunk;
  const int scale = static_cast<int>(std::lround(std::log2(ratio)));
  if (scale > 14) return;
  const auto at = static_cast<std::size_t>(scale);
  auto& votes = half.scale_votes;
  auto& tries = half.scale_tries;
  if (++tries[at] == UINT8_MAX) {
    for (std::uint8_t& count : votes) count /= 2;
    for (std::uint8_t& count : tries) count /= 2;
  }
  if (std::abs(ratio / static_cast<double>(1 << scale) - 1) > kNear) return;
  ++votes[at];
  int lower = 0;
  for (std::size_t i = 0; i < at; ++i) lower += votes[i];
  const bool lowest = !half.scale_known || scale < half.scale;
  if (!lowest || votes[at] < kVotesMin || votes[at] < 3 * lower) return;
  if (2 * votes[at] < tries[at]) return;  // as many as chance has
  half.scale = static_cast<std::int8_t>(scale);
  half.scale_known = half.scale_learned = true;
  half.scaled = false;
  half.window_max = 0;
}

// Data that lie unread take their room from the window, whatever its scale: a reader that is behind
// all the time is what the sender waits for, even if the window never closes.
void Connection::check_reader(tcp::Side receiver, const tcp::Segment& s) {
  constexpr Duration kBehindMin = std::chrono::milliseconds(10);
  Half& half = half_[receiver];
  const Half& peer = half_[tcp::other(receiver)];
  const bool large = half.scale_known ? half.window_max > kSmallWindow
                                      : half.scaled || half.raw_window_max > kSmallWindow;
  const bool behind = large && s.window < half.raw_window_max / 2 && peer.data_at > half.data_at;
  if (!behind) {
    half.behind_at = Duration{0};
    return;
  }
  const bool begins = half.behind_at == Duration{0};
  if (!begins && now_ - half.behind_at < kBehindMin) return;
  if (!begins) {
    emit({.kind = StallKind::kZeroWindow,
          .sender = tcp::other(receiver),
          .from = half.behind_at,
          .until = now_,
          .amount = now_ - half.behind_at,
          .packets = {half.behind_number, s.number},
          .window_max = half.scaled ? 0 : half.window_max,
          .window_known = half.scale_known});
  }
  half.behind_at = now_;
  half.behind_number = s.number;
}

void Connection::sample_answer(tcp::Side by, Duration took) {
  if (took < Duration{0}) return;
  Half& half = half_[by];
  half.answer_min = std::min(half.answer_min, took);
  half.answers.add(took);
  Duration& service = tag_.service->answer_min[by];
  service = std::min(service, took);
}

void Connection::bound_answer(tcp::Side by, Duration took) {
  if (took < Duration{0}) return;
  half_[by].answer_bound = std::min(half_[by].answer_bound, took);
  Duration& shared = tag_.service->server_bound;
  if (by == tcp::kServer) shared = std::min(shared, took);
}

// How a receiver of bulk data learns the round-trip time (RFC 7323 section 4;
// tcp_rcv_rtt_measure_ts in net/ipv4/tcp_input.c): new data echo the time stamp of the
// acknowledgement that let them go. One stamp at a time, and of those that are alike the first.
void Connection::follow_stamps(tcp::Side by, const tcp::Segment& s) {
  if (!s.ts_value) return;
  Half& mine = half_[by];
  if (mine.stamp_at == Duration{0} && *s.ts_value != mine.last_stamp) {
    mine.stamp = *s.ts_value;
    mine.stamp_at = now_;
  }
  mine.last_stamp = *s.ts_value;
  Half& peer = half_[tcp::other(by)];
  if (peer.stamp_at == Duration{0} || !s.ts_echo || s.payload == 0) return;
  if (tcp::is_after(peer.stamp, *s.ts_echo)) return;
  if (*s.ts_echo == peer.stamp) bound_answer(by, now_ - peer.stamp_at);
  peer.stamp_at = Duration{0};
}

void Connection::on_ack(tcp::Side by, const tcp::Segment& s, bool window_changed) {
  const tcp::Side of = tcp::other(by);
  Half& data = half_[of];
  if (!data.started) {
    data.started = true;
    data.next = data.acked = s.ack;
  }
  if (s.sack_count > 0) on_sack(data, of, s);
  const std::int32_t ahead = tcp::distance(s.ack, data.acked);
  if (ahead > 0) {
    if (tcp::is_after(s.ack, data.next)) data.next = s.ack;  // of data that was not captured
    advance(by, s);
  } else if (ahead == 0 && s.payload == 0 && !s.fin && !window_changed && data.next != data.acked) {
    ++data.dup_acks;
    if (data.evidence_at == Duration{0}) {
      data.evidence_at = now_;
      data.evidence_number = s.number;
    }
  }
  if (data.flight) data.flight->acked(now_, s.ack, half_[by].window);
}

void Connection::on_sack(Half& data, tcp::Side of, const tcp::Segment& s) {
  if (!tcp::is_after(s.sack[0].end, s.ack)) {
    collector_->spurious(tag_, of);  // D-SACK: it has been sent twice for nothing
    return;
  }
  data.sacked = true;
  if (data.evidence_at == Duration{0}) {
    data.evidence_at = now_;
    data.evidence_number = s.number;
  }
  for (std::size_t i = 0; i < s.sack_count; ++i) {
    if (tcp::is_after(s.sack[i].end, data.next)) data.next = s.sack[i].end;
  }
}

void Connection::advance(tcp::Side by, const tcp::Segment& s) {
  const tcp::Side of = tcp::other(by);
  Half& data = half_[of];
  bool clean = !data.filled;
  Duration last_sent{};
  bool told = false;
  while (!data.sent.empty() && tcp::distance(s.ack, data.sent.front().end) >= 0) {
    const Sent& sent = data.sent.front();
    if (sent.copies > 1) {
      clean = false;
      if (!told && !answers_first_copy(sent, s)) emit_retransmission(of, sent, now_, s.number);
      told = true;
    }
    last_sent = sent.at;
    data.sent.pop();
  }
  // An ACK that data brings had to wait for the program; it cannot tell the way, but bound it.
  const bool known = half_[by].answer_min != kForever;
  if (clean && last_sent != Duration{0}) bound_answer(by, now_ - last_sent);
  if (clean && last_sent != Duration{0} && (s.payload == 0 || known)) {
    sample_answer(by, now_ - last_sent);
  }
  data.acked = s.ack;
  data.advanced_at = now_;
  data.dup_acks = 0;
  data.sacked = data.filled = false;
  data.evidence_at = Duration{0};
  while (data.hole_count > 0 && tcp::distance(s.ack, data.holes[0].end) >= 0) {
    data.holes[0] = data.holes[1];  // lost by the capture, not by the network
    --data.hole_count;
  }
  if (data.acked != data.next) return;
  data.all_acked_at = now_;
  data.release = {.valid = s.payload == 0 && clean,
                  .at = now_,
                  .late = now_ - data.data_at - way(by),
                  .number = s.number};
  if (data.data_at == Duration{0} || data.release.late < kDelayedAckMin) data.release.valid = false;
  if (of == tcp::kClient) {
    turns_.client_data_acked(now_, s.payload == 0);
  } else {
    turns_.server_data_acked(now_);
  }
}

// A byte before what comes next, or none: to ask whether the window has opened, or whether anybody
// is there.
void Connection::on_probe(tcp::Side side, const tcp::Segment& s) {
  Half& receiver = half_[tcp::other(side)];
  if (!receiver.zero) return;
  ++receiver.probes;
  receiver.probe_at = now_;
  receiver.probe_number = s.number;
}

void Connection::emit_zero_window(tcp::Side receiver, Duration until, std::uint64_t number) {
  Half& half = half_[receiver];
  const bool small = half.window_max > 0 && half.window_max <= kSmallWindow && half.scale_known;
  emit({.kind = small ? StallKind::kReceiveWindow : StallKind::kZeroWindow,
        .sender = tcp::other(receiver),
        .from = half.zero_at,
        .until = until,
        .amount = until - half.zero_at,
        .packets = {half.zero_number, half.probes > 0 ? half.probe_number : 0, number},
        .probes = half.probes,
        .window_max = half.window_max,
        .window_known = half.scale_known});
}

// The sender speaks again.
void Connection::end_zero_window(tcp::Side receiver, const tcp::Segment& s) {
  Half& half = half_[receiver];
  const bool prompt = half.opened_at != Duration{0} &&
                      now_ - half.opened_at <= kPrompt + reach(tcp::other(receiver)) * 3 / 2;
  // Data into a closed window is a probe, too.
  const bool closed = half.opened_at == Duration{0};
  if (half.probes > 0 || prompt) {
    emit_zero_window(receiver, now_, s.number);
  }
  if (closed) {
    ++half.probes;
    half.probe_at = now_;
    half.probe_number = s.number;
    half.zero_at = now_;
  } else {
    half.zero = false;
  }
}

}  // namespace tailward::diag
