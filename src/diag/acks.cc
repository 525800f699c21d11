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
  Endpoint& endpoint = endpoints_[side];
  std::uint32_t window = s.window;
  if (!endpoint.scale_known || endpoint.scale_learned) learn_scale(endpoint, s);
  endpoint.raw_window = s.window;
  endpoint.raw_window_max = std::max(endpoint.raw_window_max, s.window);
  endpoint.shrunk = endpoint.shrunk || s.window < endpoint.raw_window_max / 2;
  if (endpoint.scale_known) window <<= endpoint.scale;
  if (endpoint.scaled && window > 0) window = kUnknownWindow;
  const bool changed = !endpoint.window_seen || window != endpoint.window;
  endpoint.window_seen = true;
  endpoint.window = window;
  if (!endpoint.scaled) endpoint.window_max = std::max(endpoint.window_max, window);
  if (window == 0) {
    endpoint.opened_at = Duration{0};
    if (!endpoint.zero) {
      endpoint.zero = true;
      endpoint.zero_at = now_;
      endpoint.zero_number = s.number;
      endpoint.probes = 0;
    }
  } else if (endpoint.zero && endpoint.opened_at == Duration{0}) {
    endpoint.opened_at = now_;
  }
  return changed;
}

// A receiver that does not read keeps the end of its window where it is: what the acknowledgement
// moves on, the window shrinks by. Their ratio is the scale. While it reads the ratio is larger, by
// anything: so of two scales that many segments speak for it is the smaller one.
void Connection::learn_scale(Endpoint& endpoint, const tcp::Segment& s) const {
  constexpr std::int32_t kShrunkMin = 16;
  constexpr double kNear = 0.07;  // 1/16 is what rounding may do
  constexpr std::uint8_t kVotesMin = 8;
  const bool grew = !endpoint.window_seen || s.window > endpoint.raw_window;
  const std::int32_t shrunk = endpoint.anchor_window - s.window;
  const std::int32_t acked = tcp::distance(s.ack, endpoint.anchor_ack);
  if (!grew && (shrunk < kShrunkMin || acked < shrunk)) return;
  endpoint.anchor_window = s.window;
  endpoint.anchor_ack = s.ack;
  if (grew) return;
  const double ratio = static_cast<double>(acked) / shrunk;
  const int scale = static_cast<int>(std::lround(std::log2(ratio)));
  if (scale > 14) return;
  const auto at = static_cast<std::size_t>(scale);
  auto& votes = endpoint.scale_votes;
  auto& tries = endpoint.scale_tries;
  if (++tries[at] == UINT8_MAX) {
    for (std::uint8_t& count : votes) count /= 2;
    for (std::uint8_t& count : tries) count /= 2;
  }
  if (std::abs(ratio / static_cast<double>(1 << scale) - 1) > kNear) return;
  ++votes[at];
  int lower = 0;
  for (std::size_t i = 0; i < at; ++i) lower += votes[i];
  const bool lowest = !endpoint.scale_known || scale < endpoint.scale;
  if (!lowest || votes[at] < kVotesMin || votes[at] < 3 * lower) return;
  if (2 * votes[at] < tries[at]) return;  // as many as chance has
  endpoint.scale = static_cast<std::int8_t>(scale);
  endpoint.scale_known = endpoint.scale_learned = true;
  endpoint.scaled = false;
  endpoint.window_max = 0;
}

// Data that lie unread take their room from the window, whatever its scale: a reader that is behind
// all the time is what the sender waits for, even if the window never closes.
void Connection::check_reader(tcp::Side receiver, const tcp::Segment& s) {
  constexpr Duration kBehindMin = std::chrono::milliseconds(10);
  Endpoint& endpoint = endpoints_[receiver];
  const Endpoint& peer = endpoints_[tcp::other(receiver)];
  const bool large = endpoint.scale_known
                         ? endpoint.window_max > kSmallWindow
                         : endpoint.scaled || endpoint.raw_window_max > kSmallWindow;
  const bool behind =
      large && s.window < endpoint.raw_window_max / 2 && peer.data_at > endpoint.data_at;
  if (!behind) {
    endpoint.behind_at = Duration{0};
    return;
  }
  const bool begins = endpoint.behind_at == Duration{0};
  if (!begins && now_ - endpoint.behind_at < kBehindMin) return;
  if (!begins) {
    emit({.kind = StallKind::kZeroWindow,
          .sender = tcp::other(receiver),
          .from = endpoint.behind_at,
          .until = now_,
          .amount = now_ - endpoint.behind_at,
          .packets = {endpoint.behind_number, s.number},
          .window_max = endpoint.scaled ? 0 : endpoint.window_max,
          .window_known = endpoint.scale_known});
  }
  endpoint.behind_at = now_;
  endpoint.behind_number = s.number;
}

void Connection::sample_ack_rtt(tcp::Side by, Duration took) {
  if (took < Duration{0}) return;
  Endpoint& endpoint = endpoints_[by];
  endpoint.min_ack_rtt = std::min(endpoint.min_ack_rtt, took);
  endpoint.answers.add(took);
  Duration& service = tag_.service->min_ack_rtt[by];
  service = std::min(service, took);
}

void Connection::bound_rtt(tcp::Side by, Duration took) {
  if (took < Duration{0}) return;
  endpoints_[by].rtt_bound = std::min(endpoints_[by].rtt_bound, took);
  Duration& shared = tag_.service->server_rtt_bound;
  if (by == tcp::kServer) shared = std::min(shared, took);
}

// How a receiver of bulk data learns the round-trip time (RFC 7323 section 4;
// tcp_rcv_rtt_measure_ts in net/ipv4/tcp_input.c): new data echo the time stamp of the
// acknowledgement that let them go. One stamp at a time, and of those that are alike the first.
void Connection::follow_stamps(tcp::Side by, const tcp::Segment& s) {
  if (!s.ts_value) return;
  Endpoint& mine = endpoints_[by];
  if (mine.stamp_at == Duration{0} && *s.ts_value != mine.last_stamp) {
    mine.stamp = *s.ts_value;
    mine.stamp_at = now_;
  }
  mine.last_stamp = *s.ts_value;
  Endpoint& peer = endpoints_[tcp::other(by)];
  if (peer.stamp_at == Duration{0} || !s.ts_echo || s.payload == 0) return;
  if (tcp::is_after(peer.stamp, *s.ts_echo)) return;
  if (*s.ts_echo == peer.stamp) bound_rtt(by, now_ - peer.stamp_at);
  peer.stamp_at = Duration{0};
}

void Connection::on_ack(tcp::Side by, const tcp::Segment& s, bool window_changed) {
  const tcp::Side of = tcp::other(by);
  Endpoint& data = endpoints_[of];
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
  if (data.flight) data.flight->acked(now_, s.ack, endpoints_[by].window);
}

void Connection::on_sack(Endpoint& data, tcp::Side of, const tcp::Segment& s) {
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
  Endpoint& data = endpoints_[of];
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
  // An ACK that data brings had to wait for the program; it does not show the round trip, it only
  // bounds it.
  const bool known = endpoints_[by].min_ack_rtt != kForever;
  if (clean && last_sent != Duration{0}) bound_rtt(by, now_ - last_sent);
  if (clean && last_sent != Duration{0} && (s.payload == 0 || known)) {
    sample_ack_rtt(by, now_ - last_sent);
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
                  .late = now_ - data.data_at - rtt_to(by),
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
  Endpoint& receiver = endpoints_[tcp::other(side)];
  if (!receiver.zero) return;
  ++receiver.probes;
  receiver.probe_at = now_;
  receiver.probe_number = s.number;
}

void Connection::emit_zero_window(tcp::Side receiver, Duration until, std::uint64_t number) {
  Endpoint& endpoint = endpoints_[receiver];
  const bool small =
      endpoint.window_max > 0 && endpoint.window_max <= kSmallWindow && endpoint.scale_known;
  emit({.kind = small ? StallKind::kReceiveWindow : StallKind::kZeroWindow,
        .sender = tcp::other(receiver),
        .from = endpoint.zero_at,
        .until = until,
        .amount = until - endpoint.zero_at,
        .packets = {endpoint.zero_number, endpoint.probes > 0 ? endpoint.probe_number : 0, number},
        .probes = endpoint.probes,
        .window_max = endpoint.window_max,
        .window_known = endpoint.scale_known});
}

// The sender speaks again.
void Connection::end_zero_window(tcp::Side receiver, const tcp::Segment& s) {
  Endpoint& endpoint = endpoints_[receiver];
  const bool prompt =
      endpoint.opened_at != Duration{0} &&
      now_ - endpoint.opened_at <= kPrompt + rtt_upper_bound(tcp::other(receiver)) * 3 / 2;
  // Data into a closed window is a probe, too.
  const bool closed = endpoint.opened_at == Duration{0};
  if (endpoint.probes > 0 || prompt) {
    emit_zero_window(receiver, now_, s.number);
  }
  if (closed) {
    ++endpoint.probes;
    endpoint.probe_at = now_;
    endpoint.probe_number = s.number;
    endpoint.zero_at = now_;
  } else {
    endpoint.zero = false;
  }
}

}  // namespace tailward::diag
