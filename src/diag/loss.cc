// Connection, bytes that come again: lost, overtaken, or only looked at twice.

#include <algorithm>

#include "diag/connection.h"

namespace tailward::diag {
namespace {

constexpr Duration kCopyWithin = std::chrono::milliseconds(1);
// Linux's smallest RTO is 200 ms, less a timer's tick.
constexpr Duration kTimeoutMin = std::chrono::milliseconds(180);
constexpr Duration kOvertakenWithin = std::chrono::milliseconds(3);
constexpr std::uint32_t kDupAcksOfLoss = 3;

std::uint8_t& count(Sent& sent, RetransmitKind how) {
  return sent.how[static_cast<std::size_t>(how)];
}

}  // namespace

void Connection::on_old_data(tcp::Side side, const tcp::Segment& s) {
  Endpoint& endpoint = endpoints_[side];
  Endpoint& receiver = endpoints_[tcp::other(side)];
  Sent* sent = endpoint.sent.find(s.seq);
  if (sent != nullptr && s.ip_id != 0 && s.ip_id == sent->ip_id &&
      s.ts_value.value_or(0) == sent->ts && now_ - sent->again <= kCopyWithin) {
    ++duplicates_;
    ++collector_->duplicates;
    return;
  }
  if (fill(side, s)) return;
  ++retransmissions_;
  if (tcp::distance(endpoint.acked, s.seq + s.payload) >= 0)
    return;  // it had arrived: nobody waits for it
  if (endpoint.flight) endpoint.flight->interrupt();
  if (receiver.zero && receiver.window == 0) {
    on_probe(side, s);
    return;
  }
  if (sent == nullptr) {
    const bool known = endpoint.evidence_at != Duration{0};
    sent = &endpoint.sent.push_front({.begin = s.seq,
                                      .end = s.seq + s.payload,
                                      .at = known ? endpoint.evidence_at : now_,
                                      .again = known ? endpoint.evidence_at : now_,
                                      .number = known ? endpoint.evidence_number : s.number});
  }
  const Duration since = now_ - sent->again;
  const bool evidence = endpoint.dup_acks >= kDupAcksOfLoss || endpoint.sacked;
  const RetransmitKind how = since >= kTimeoutMin ? RetransmitKind::kTimeout
                             : evidence           ? RetransmitKind::kFast
                                                  : RetransmitKind::kProbe;
  if (count(*sent, how) < UINT8_MAX) ++count(*sent, how);
  if (sent->copies < UINT8_MAX) ++sent->copies;
  sent->again = now_;
  sent->again_number = s.number;
  sent->ip_id = s.ip_id;
  sent->ts = s.ts_value.value_or(0);
}

void Connection::add_hole(Endpoint& endpoint, const tcp::Segment& s) {
  if (endpoint.hole_count == endpoint.holes.size()) {
    endpoint.holes[0] = endpoint.holes[1];
    --endpoint.hole_count;
  }
  endpoint.holes[endpoint.hole_count++] = {.begin = endpoint.next,
                                           .end = s.seq,
                                           .at = now_,
                                           .number = s.number,
                                           .ts = s.ts_value.value_or(0),
                                           .ip_id = s.ip_id};
}

// Sent before what overtook it: then nothing was lost.
bool Connection::overtaken(tcp::Side side, const Hole& hole, const tcp::Segment& s) const {
  if (s.ts_value && hole.ts != 0) {
    const std::int32_t newer = tcp::distance(*s.ts_value, hole.ts);
    if (newer != 0) return newer < 0;
    if (s.ip_id != 0 && hole.ip_id != 0) {
      return static_cast<std::int16_t>(s.ip_id - hole.ip_id) < 0;
    }
  }
  const Endpoint& endpoint = endpoints_[side];
  const Duration since = now_ - hole.at;
  const bool evidence = endpoint.dup_acks >= kDupAcksOfLoss && since > rtt_to(side) / 2;
  return !evidence && since <= std::max(kOvertakenWithin, rtt_to(side) / 2);
}

bool Connection::fill(tcp::Side side, const tcp::Segment& s) {
  Endpoint& endpoint = endpoints_[side];
  for (std::uint8_t i = 0; i < endpoint.hole_count; ++i) {
    Hole& hole = endpoint.holes[i];
    if (tcp::distance(s.seq, hole.begin) < 0 || !tcp::is_after(hole.end, s.seq)) continue;
    const bool reordered = overtaken(side, hole, s);
    if (reordered) {
      ++reordered_;
    } else {
      ++retransmissions_;
      if (endpoint.flight) endpoint.flight->interrupt();
      const Duration since = now_ - hole.at;
      const bool evidence = endpoint.dup_acks >= kDupAcksOfLoss || endpoint.sacked;
      Sent sent{.at = hole.at, .again_number = s.number};
      count(sent, since >= kTimeoutMin ? RetransmitKind::kTimeout
                  : evidence           ? RetransmitKind::kFast
                                       : RetransmitKind::kProbe) = 1;
      sent.number = hole.number;
      emit_retransmission(side, sent, now_, s.number);
    }
    endpoint.filled = true;
    endpoint.bytes += s.payload;
    ++endpoint.segments;
    deliver(side, false);
    if (s.seq == hole.begin) {
      hole.begin = s.seq + s.payload;
    } else {
      hole.end = s.seq;  // the rest of it is forgotten
    }
    if (tcp::distance(hole.end, hole.begin) <= 0) {
      if (i == 0) endpoint.holes[0] = endpoint.holes[1];
      --endpoint.hole_count;
    }
    return true;
  }
  return false;
}

void Connection::emit_retransmission(tcp::Side side, const Sent& sent, Duration until,
                                     std::uint64_t number) {
  const Endpoint& endpoint = endpoints_[side];
  const Endpoint& peer = endpoints_[tcp::other(side)];
  StallKind kind = StallKind::kRetransmission;
  // The first data, which reached its host and was thrown away with its connection's last ACK:
  // there was no room for one more connection.
  if (side == tcp::kClient && saw_start_ && endpoint.acked == endpoint.first &&
      (dropped_by_host_ || (at_server() && established_ != Duration{0}))) {
    kind = StallKind::kSynDropped;
  }
  // A buffer with no room for a whole segment throws away what does not fit.
  if (peer.scale >= 0 && endpoint.scale >= 0 && peer.window_max <= kSmallWindow &&
      mss(side) > peer.window_max / 2) {
    kind = StallKind::kReceiveWindow;
  }
  const auto how = [&](RetransmitKind again) {
    return std::uint32_t{sent.how[static_cast<std::size_t>(again)]};
  };
  emit({.kind = kind,
        .sender = side,
        .from = sent.at,
        .until = until,
        .amount = until - sent.at,
        .packets = {sent.number, sent.again_number, number == sent.again_number ? 0 : number},
        .first_data = side == tcp::kClient && saw_start_ && endpoint.acked == endpoint.first,
        .timeouts = how(RetransmitKind::kTimeout),
        .probes = how(RetransmitKind::kProbe),
        .fast = how(RetransmitKind::kFast),
        .window_max = peer.window_max});
}

}  // namespace tailward::diag
