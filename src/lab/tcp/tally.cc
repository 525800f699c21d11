#include "lab/tcp/tally.h"

#include <algorithm>

namespace tailward::lab {
namespace {

// Sequence numbers wrap. The order of two is known if they are less than half the range apart (RFC
// 9293, 3.4).
bool before(std::uint32_t a, std::uint32_t b) { return static_cast<std::int32_t>(a - b) < 0; }

}  // namespace

std::string_view to_string(CountSource source) {
  switch (source) {
    case CountSource::kPackets:
      return "packets";
    case CountSource::kTcpInfo:
      return "tcp-info";
    case CountSource::kNone:
      break;
  }
  return "none";
}

double TcpCounts::segments_per_message() const {
  return messages == 0 ? 0 : static_cast<double>(segments) / static_cast<double>(messages);
}

void TcpTally::add(const tcp::Segment& segment) {
  const bool from_client = segment.to.port == server_port_;
  if (!from_client && segment.from.port != server_port_) return;
  Side& from = sides_[from_client ? 0 : 1];
  if (segment.rst) return;
  if (!started_) first_at_ = segment.at;
  started_ = true;
  if (!settled_ && segment.at - first_at_ >= kSteadyFrom) {
    settled_ = true;
    counts_.in_flight_max = 0;
    counts_.window_max = 0;
  }
  if (!from.seen) {
    from.seen = true;
    from.next = from.acked = segment.seq + (segment.syn ? 1 : 0);
  }
  if (segment.syn) {
    from.window_shift = segment.window_scale.value_or(0);
    last_at_ = segment.at;
    return;  // the window of a SYN is not scaled
  }
  if (!from_client) note_window(from, segment);
  // A probe repeats the number before the first that is not acknowledged (RFC 9293, 3.8.6.1).
  const bool probe = segment.payload == 0 && before(segment.seq, from.acked);
  if (from_client && (segment.payload > 0 || probe) && segment.at - last_at_ >= kTimerWaitFrom) {
    ++counts_.timer_waits;
  }
  if (segment.payload > 0) {
    note_data(from, from_client, segment);
  } else if (!segment.fin) {
    note_bare(from_client, segment);
  }
  Side& other = sides_[from_client ? 1 : 0];
  if (segment.ack_flag && before(other.acked, segment.ack)) other.acked = segment.ack;
  last_at_ = segment.at;
}

void TcpTally::note_data(Side& from, bool from_client, const tcp::Segment& segment) {
  ++(from_client ? counts_.segments : counts_.segments_back);
  const std::uint32_t end = segment.seq + segment.payload;
  if (!before(from.next, end)) {
    ++counts_.retransmissions;
    return;
  }
  from.next = end;
  if (from_client) counts_.in_flight_max = std::max(counts_.in_flight_max, end - from.acked);
}

void TcpTally::note_bare(bool from_client, const tcp::Segment& segment) {
  if (!from_client) ++counts_.acks_back;
  const Side& other = sides_[from_client ? 1 : 0];
  const bool news = segment.ack_flag && other.seen && before(other.acked, segment.ack);
  const Duration path = from_client ? Duration{} : rtt_;
  if (news && segment.at - last_at_ - path >= kDelayedAckFrom) ++counts_.delayed_acks;
}

void TcpTally::note_window(Side& server, const tcp::Segment& segment) {
  const bool closed = segment.window == 0;
  if (closed && !server.window_closed) ++counts_.zero_windows;
  server.window_closed = closed;
  const std::uint32_t window = std::uint32_t{segment.window} << server.window_shift;
  counts_.window_max = std::max(counts_.window_max, window);
}

}  // namespace tailward::lab
