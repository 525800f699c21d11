#include "diag/connection.h"

#include <algorithm>

#include "base/rng.h"

namespace tailward::diag {
namespace {

constexpr Duration kCopyWithin = std::chrono::milliseconds(1);
// Without an IP identification a copy is only believed from another interface, or this close.
constexpr Duration kTwinWithin = std::chrono::microseconds(50);
constexpr std::uint32_t kMssUnknown = 1200;     // without the SYNs: nearly every path takes so much
constexpr std::uint32_t kMssLoopback = 32'000;  // likewise: half a window, of the 65,483 allowed
constexpr std::uint32_t kMssEthernet = 1448;    // with time stamps
constexpr std::uint32_t kRowMin = 1200;
constexpr std::uint32_t kTurnsToCompare = 3;
constexpr Duration kFirstTurnExtra = std::chrono::milliseconds(5);

std::uint32_t fingerprint_of(const tcp::Segment& s) {
  const std::uint64_t a = (std::uint64_t{s.seq} << 32) | s.ack;
  const std::uint64_t b = (std::uint64_t{s.payload} << 32) | (std::uint64_t{s.window} << 16) |
                          static_cast<std::uint64_t>(s.syn + 2 * s.fin + 4 * s.rst + 8 * s.psh);
  const std::uint64_t c = (std::uint64_t{s.ts_value.value_or(0)} << 32) |
                          ((s.sack_count > 0 ? s.sack[0].end : 0u) ^ s.ip_id);
  return static_cast<std::uint32_t>(mix64(a ^ mix64(b ^ (c * 0x9e3779b97f4a7c15u))));
}

}  // namespace

Connection::Connection(std::uint32_t serial, const tcp::SocketAddress& client,
                       const tcp::SocketAddress& server, Collector& collector)
    : collector_(&collector), client_(client), server_(server) {
  tag_.serial = serial;
  tag_.service = &collector.service(server);
  ++tag_.service->summary.connections;
}

// Captures on "any" and on bridges show a packet once for each device that it passed.
bool Connection::is_copy(Endpoint& endpoint, const tcp::Segment& s) const {
  const std::uint32_t hash = fingerprint_of(s);
  const auto at_us = static_cast<std::uint32_t>(now_.count() / 1000);
  for (const Fingerprint& fingerprint : endpoint.fingerprints) {
    if (fingerprint.hash != hash) continue;
    const Duration since = std::chrono::microseconds(at_us - fingerprint.at_us);
    if (since > kCopyWithin) continue;
    if (s.ip_id != 0 || fingerprint.interface != s.interface) return true;
    if (s.payload > 0 && since <= kTwinWithin) return true;
  }
  endpoint.fingerprints[endpoint.fingerprint_at] = {hash, at_us, s.interface};
  endpoint.fingerprint_at =
      static_cast<std::uint8_t>((endpoint.fingerprint_at + 1u) % endpoint.fingerprints.size());
  return false;
}

Duration Connection::rtt_to(tcp::Side side) const {
  if (side == tcp::kServer && collector_->at_server) return Duration{0};
  const Endpoint& endpoint = endpoints_[side];
  if (endpoint.min_ack_rtt == kForever) return Duration{0};
  // The first pure ACK may have been a delayed one. All clients share the path to the server.
  const Duration shared = side == tcp::kServer ? tag_.service->server_rtt_bound : kForever;
  return std::min({endpoint.min_ack_rtt, endpoint.rtt_bound, shared});
}

bool Connection::rtt_known(tcp::Side side) const {
  return (side == tcp::kServer && collector_->at_server) ||
         endpoints_[side].min_ack_rtt != kForever || server_.address.is_loopback();
}

Duration Connection::rtt_upper_bound(tcp::Side side) const {
  const Duration bound = endpoints_[side].rtt_bound;
  return rtt_known(side) || bound == kForever ? rtt_to(side) : bound;
}

std::uint32_t Connection::mss(tcp::Side side) const {
  const Endpoint& endpoint = endpoints_[side];
  const Endpoint& peer = endpoints_[tcp::other(side)];
  if (peer.mss_option != 0) {
    std::uint32_t size = peer.mss_option;
    if (endpoint.mss_option != 0) size = std::min<std::uint32_t>(size, endpoint.mss_option);
    const bool timestamps = endpoint.timestamps && peer.timestamps;
    return std::max<std::uint32_t>(size, 64) - (timestamps ? 12 : 0);
  }
  if (server_.address.is_loopback()) return std::max(endpoint.payload_max, kMssLoopback);
  const bool offloaded = endpoint.payload_max > 1460;
  return offloaded ? kMssEthernet : std::max(endpoint.payload_max, kMssUnknown);
}

// Where the path's MTU is smaller than what the options allow, several of the largest payload in a
// row show what is full.
bool Connection::is_full(tcp::Side side, std::uint32_t payload) const {
  const Endpoint& endpoint = endpoints_[side];
  return payload >= mss(side) || (payload == endpoint.row_of && payload == endpoint.payload_max);
}

bool Connection::is_reuse(tcp::Side side, const tcp::Segment& s) const {
  if (!s.syn || s.ack_flag || state_ == State::kNew) return false;
  if (state_ == State::kOpen || state_ == State::kClosed) {
    // An old SYN that comes late is not a new connection.
    return state_ == State::kClosed || s.seq + 1 != endpoints_[side].acked ||
           endpoints_[side].bytes > 0;
  }
  return side == tcp::kClient && endpoints_[tcp::kClient].started &&
         s.seq + 1 != endpoints_[tcp::kClient].next;
}

void Connection::add(tcp::Side side, const tcp::Segment& s, Duration at) {
  now_ = at;
  ++packets_;
  Endpoint& endpoint = endpoints_[side];
  ++endpoint.packets;
  collector_->remember(tag_, s);
  if (is_copy(endpoint, s)) {
    ++duplicates_;
    ++collector_->duplicates;
    return;
  }
  if (s.rst) {
    on_reset(side, s);
    return;
  }
  if (s.syn) {
    if (s.ack_flag || side == tcp::kServer) {
      on_syn_answer(side, s);
    } else {
      on_syn(side, s);
    }
    return;
  }
  if (state_ == State::kNew) state_ = State::kOpen;
  if (state_ == State::kSynAnswered && side == tcp::kClient) on_established(s);
  follow_stamps(side, s);
  if (s.ack_flag) {
    const bool changed = take_window(side, s);
    check_reader(side, s);
    on_ack(side, s, changed);
  }
  on_data(side, s);
  if (s.fin) on_fin(side, s);
}

void Connection::know_scales(std::uint8_t of_client, std::uint8_t of_server) {
  endpoints_[tcp::kClient].scale = static_cast<std::int8_t>(std::min<int>(of_client, 14));
  endpoints_[tcp::kServer].scale = static_cast<std::int8_t>(std::min<int>(of_server, 14));
  endpoints_[tcp::kClient].scale_known = endpoints_[tcp::kServer].scale_known = true;
}

void Connection::on_data(tcp::Side side, const tcp::Segment& s) {
  Endpoint& endpoint = endpoints_[side];
  if (!endpoint.started) {
    endpoint.started = true;
    endpoint.next = endpoint.acked = s.seq;
  }
  if (s.payload <= 1 && s.ack_flag && !s.fin && s.seq + 1 == endpoint.next &&
      (s.payload == 0 || endpoint.bytes > 0)) {
    on_probe(side, s);
    return;
  }
  if (s.payload == 0) return;
  if (tcp::distance(s.seq + s.payload, endpoint.next) > 0) {
    on_new_data(side, s);
  } else {
    on_old_data(side, s);
  }
}

void Connection::on_new_data(tcp::Side side, const tcp::Segment& s) {
  Endpoint& endpoint = endpoints_[side];
  Endpoint& peer = endpoints_[tcp::other(side)];
  finish_run(tcp::other(side));
  if (peer.flight && peer.streak > 0) peer.flight->interrupt();
  peer.streak = 0;
  if (tcp::is_after(s.seq, endpoint.next)) add_hole(endpoint, s);
  endpoint.payload_max = std::max(endpoint.payload_max, s.payload);
  const std::uint32_t size = mss(side);
  if (endpoint.streak > 0 && s.payload == endpoint.data_bytes && s.payload >= kRowMin) {
    endpoint.row_of = s.payload;
  }
  ++endpoint.segments;
  endpoint.bytes += s.payload;
  check_nagle(side, s);
  check_cork(side, s);
  track_run(side, s);
  track_flight(side, s);
  if (peer.zero) end_zero_window(tcp::other(side), s);
  deliver(side, endpoint.next == endpoint.acked);
  endpoint.next = s.seq + s.payload;
  endpoint.sent.push({.begin = s.seq,
                      .end = endpoint.next,
                      .at = now_,
                      .again = now_,
                      .number = s.number,
                      .ts = s.ts_value.value_or(0),
                      .ip_id = s.ip_id});
  endpoint.data_at = now_;
  endpoint.data_number = s.number;
  endpoint.data_bytes = s.payload;
  endpoint.data_full = s.payload >= size || is_full(side, s.payload);
  endpoint.release.valid = peer.release.valid = false;
}

// Bytes that the turns have not had yet.
void Connection::deliver(tcp::Side side, bool acked) {
  const Endpoint& peer = endpoints_[tcp::other(side)];
  const bool answered = peer.next == peer.acked;
  emit_turn(side == tcp::kClient ? turns_.client_data(now_, acked, answered, rtts())
                                 : turns_.server_data(now_, acked, rtts()));
}

void Connection::on_fin(tcp::Side side, const tcp::Segment& s) {
  Endpoint& endpoint = endpoints_[side];
  if (!endpoint.fin) {
    endpoint.fin = true;
    if (tcp::distance(s.seq + s.payload + 1, endpoint.next) > 0)
      endpoint.next = s.seq + s.payload + 1;
  }
  if (endpoints_[tcp::kClient].fin && endpoints_[tcp::kServer].fin) {
    saw_end_ = true;
    state_ = State::kClosed;
  }
}

void Connection::on_reset(tcp::Side side, const tcp::Segment& s) {
  if (side == tcp::kServer && state_ == State::kSynSent) {
    ServiceSummary& service = tag_.service->summary;
    ++service.refused;
    if (service.refused_packets.size() < 8) {
      service.refused_packets.push_back(syn_number_);
      service.refused_packets.push_back(s.number);
    }
  }
  if (state_ != State::kClosed) emit_turn(turns_.close(now_, rtts()));
  saw_end_ = true;
  state_ = State::kClosed;
}

void Connection::emit(StallEvent event) {
  event.until = std::max(event.until, event.from);
  const Duration whole = event.amount;
  event.amount = turns_.stall(event.kind, event.from, event.until, whole);
  // What is left of a stall that others have told of before is none of its own.
  if (event.amount <= whole / 20) return;
  collector_->stall(tag_, event);
}

void Connection::emit_turn(const std::optional<Turn>& turn) {
  if (!turn) return;
  const bool one_sided =
      endpoints_[tcp::kClient].packets == 0 || endpoints_[tcp::kServer].packets == 0;
  if (one_sided && turn->response == Duration{0} && packets_ > 2 && retransmissions_ == 0) return;
  ++turn_count_;
  const Duration wire =
      std::chrono::microseconds(turn->stalled_us[static_cast<std::size_t>(StallKind::kWire)]);
  if (wire > Duration{0}) {
    collector_->stall(tag_, {.kind = StallKind::kWire,
                             .sender = tcp::kClient,
                             .from = turn->began,
                             .until = turn->began + turn->total,
                             .amount = wire,
                             .packets = {endpoints_[tcp::kClient].data_number,
                                         endpoints_[tcp::kServer].data_number}});
  }
  if (turn_count_ == 1 && saw_start_) {
    first_turn_ = std::make_unique<Turn>(*turn);
    return;
  }
  later_think_ += turn->think;
  ++later_turns_;
  collector_->turn(*turn, tag_.serial);
  if (first_turn_ && later_turns_ == kTurnsToCompare) settle_first_turn();
}

// A connection that waited to be accepted made its first request wait, and no other.
void Connection::settle_first_turn() {
  if (!first_turn_) return;
  Turn& turn = *first_turn_;
  if (later_turns_ > 0) {
    const Duration usual = later_think_ / later_turns_;
    const Duration extra = turn.think - usual;
    if (extra >= kFirstTurnExtra && turn.think >= 3 * usual) {
      Duration left = turn.total;
      for (const auto us : turn.stalled_us) left -= std::chrono::microseconds(us);
      const Duration amount = std::min(extra, left);
      if (amount > Duration{0}) {
        turn.stalled_us[static_cast<std::size_t>(StallKind::kFirstTurn)] =
            static_cast<std::uint32_t>(amount.count() / 1000);
        const Duration answered = turn.began + turn.total - turn.final_ack_wait - turn.response;
        collector_->stall(tag_, {.kind = StallKind::kFirstTurn,
                                 .sender = tcp::kServer,
                                 .from = answered - turn.think,
                                 .until = answered,
                                 .amount = amount,
                                 .packets = {syn_number_}});
      }
    } else {
      collector_->counterexample(tag_, StallKind::kFirstTurn, tcp::kServer);
    }
  }
  collector_->turn(turn, tag_.serial);
  first_turn_.reset();
}

void Connection::finish() {
  finish_handshake();
  for (const tcp::Side side : {tcp::kClient, tcp::kServer}) {
    finish_run(side);
    Endpoint& endpoint = endpoints_[side];
    if (const Sent* sent = endpoint.sent.repeated()) {
      emit_retransmission(side, *sent, sent->again, sent->again_number);
    }
    if (endpoint.zero && endpoint.probes > 0)
      emit_zero_window(side, endpoint.probe_at, endpoint.probe_number);
  }
  const Endpoint& client = endpoints_[tcp::kClient];
  const bool gave_up = client.fin && !endpoints_[tcp::kServer].fin;
  emit_turn(turns_.close(gave_up ? std::optional(now_) : std::nullopt, rtts()));
  settle_first_turn();
  collector_->retransmissions += retransmissions_;
  collector_->reordered += reordered_;
  collector_->connection(tag_, summary());
}

ConnectionSummary Connection::summary() const {
  const Endpoint& client = endpoints_[tcp::kClient];
  const Endpoint& server = endpoints_[tcp::kServer];
  ConnectionSummary summary{
      .client = client_,
      .server = server_,
      .saw_start = saw_start_,
      .saw_end = saw_end_,
      .one_sided = client.packets == 0 || server.packets == 0,
      .vantage = vantage_,
      .handshake = {},
      .rtt_min = {},
      .rtt_median = {},
      .packets = packets_,
      .retransmissions = retransmissions_,
      .duplicates = duplicates_,
      .reordered = reordered_,
      .turns = turn_count_,
      .bytes_from_client = client.bytes,
      .bytes_from_server = server.bytes,
      .segments_from_client = client.segments,
      .segments_from_server = server.segments,
      .stalled = tag_.stalled,
  };
  if (established_ != Duration{0}) summary.handshake = established_ - syn_first_;
  if (client.min_ack_rtt < kForever && server.min_ack_rtt < kForever) {
    summary.rtt_min = client.min_ack_rtt + server.min_ack_rtt;
    summary.rtt_median = client.answers.quantile(0.5) + server.answers.quantile(0.5);
  }
  return summary;
}

}  // namespace tailward::diag
