#include "diag/connection/connection.h"

#include <algorithm>

#include "base/check.h"
#include "diag/connection/cork_detector.h"
#include "diag/thresholds.h"

namespace tailward::diag {

using tcp::kClient;
using tcp::kServer;

Connection::Connection(std::uint32_t serial, const tcp::SocketAddress& client,
                       const tcp::SocketAddress& server, Collector& collector)
    : collector_(&collector),
      client_(client),
      server_(server),
      rtt_(collector.service(server).round_trips,
           {.at_server = collector.at_server, .loopback = server.address.is_loopback()}) {
  tag_.serial = serial;
  tag_.service = &collector.service(server);
  ++tag_.service->summary.connections;
}

void Connection::know_scales(std::uint8_t of_client, std::uint8_t of_server) {
  endpoints_[kClient].window.know_scale(of_client);
  endpoints_[kServer].window.know_scale(of_server);
}

bool Connection::is_reuse(tcp::Side side, const tcp::Segment& s) const {
  using State = Handshake::State;
  if (!s.syn || s.ack_flag || handshake_.state() == State::kNew) return false;
  const Endpoint& endpoint = endpoints_[side];
  if (closed()) return true;
  if (handshake_.state() == State::kOpen) {
    // An old SYN that comes late is not a new connection.
    return s.seq + 1 != endpoint.sequence.acked() || endpoint.bytes > 0;
  }
  return side == kClient && endpoint.sequence.started() && s.seq + 1 != endpoint.sequence.next();
}

void Connection::add(tcp::Side side, const tcp::Segment& s, Duration at) {
  TAILWARD_CHECK(counters_.packets == 0 || at >= now_);
  now_ = at;
  ++counters_.packets;
  Endpoint& endpoint = endpoints_[side];
  ++endpoint.packets;
  collector_->remember(tag_, s);
  if (endpoint.duplicates.is_copy(s, now_)) {
    ++counters_.duplicates;
    ++collector_->duplicates;
    return;
  }
  if (s.rst) return on_reset(side, s);
  if (s.syn) {
    if (!s.ack_flag && side == kClient) return on_syn(side, s);
    if (side == kServer) on_syn_ack(s);
    return;  // a client's SYN-ACK: confused, or both open at once and the SYN has said what matters
  }
  const Handshake::State state = handshake_.join();
  if (state == Handshake::State::kSynAcked && side == kClient) on_established(s);
  rtt_.follow_time_stamps(side, s, now_);
  if (s.ack_flag) on_ack(side, s);
  on_data(side, s);
  if (s.fin) on_fin(side, s);
}

// ---- the beginning and the end ----------------------------------------------------------------

void Connection::on_syn(tcp::Side side, const tcp::Segment& s) {
  switch (handshake_.syn(now_, s.number)) {
    case Handshake::Syn::kFirst:
      endpoints_[side].sequence.start_with_syn(s.seq);
      endpoints_[side].segment_size.take_options(s);
      endpoints_[side].window.take_syn(s);
      break;
    case Handshake::Syn::kAgain:
      ++tag_.service->summary.syns_repeated;
      break;
    case Handshake::Syn::kIgnored:
      break;
  }
}

void Connection::on_syn_ack(const tcp::Segment& s) {
  Endpoint& client = endpoints_[kClient];
  Endpoint& server = endpoints_[kServer];
  if (handshake_.syn_ack(now_, s.number)) {
    client.sequence.start_at(s.ack);
    if (const auto took = handshake_.to_syn_ack()) rtt_.sample(kServer, *took);
    server.sequence.start_with_syn(s.seq);
    server.segment_size.take_options(s);
    server.window.take_syn(s);
    WindowTracker::agree_on_scales(client.window, server.window, handshake_.syn_seen());
    if (handshake_.syn_repeated()) {
      report_handshake(handshake_.syn_stall(at_server(), s.number));
    }
    return;
  }
  const bool same = s.seq + 1 == server.sequence.acked() && server.bytes == 0;
  if (!same) return;
  const auto event = handshake_.syn_ack_again(now_, s.number, rtt_.to(kClient));
  if (!event) return;
  if (event->kind == StallKind::kSynDropped) {
    report(kClient, event);
  } else {
    report_handshake(*event);
  }
}

void Connection::on_established(const tcp::Segment& s) {
  if (!s.ack_flag || s.ack != endpoints_[kServer].sequence.next()) return;
  handshake_.established(now_);
  if (const auto took = handshake_.to_ack()) rtt_.sample(kClient, *took);
  vantage_ = handshake_.vantage(same_host(), tag_.service->vantage());
  ++tag_.service->vantage_votes[static_cast<std::size_t>(vantage_)];
  if (handshake_.once_each() && handshake_.took() >= thresholds.handshake.slow_way) {
    turns_.handshake_stall(StallKind::kWire, handshake_.took());
  }
  turns_.handshake(handshake_.began(), handshake_.took());
}

void Connection::on_fin(tcp::Side side, const tcp::Segment& s) {
  endpoints_[side].sequence.finish(s.seq + s.payload);
  if (endpoints_[kClient].sequence.finished() && endpoints_[kServer].sequence.finished()) {
    saw_end_ = true;
    handshake_.close();
  }
}

void Connection::on_reset(tcp::Side side, const tcp::Segment& s) {
  if (side == kServer && handshake_.state() == Handshake::State::kSynSent) {
    ServiceSummary& service = tag_.service->summary;
    ++service.refused;
    if (service.refused_packets.size() < 8) {
      service.refused_packets.push_back(handshake_.syn_number());
      service.refused_packets.push_back(s.number);
    }
  }
  if (!closed()) report_turn(turns_.close(now_, rtt_.both()));
  saw_end_ = true;
  handshake_.close();
}

bool Connection::same_host() const {
  return server_.address.is_loopback() || server_.address == client_.address;
}

bool Connection::at_server() const {
  if (collector_->at_server || same_host()) return true;
  const Vantage vantage = tag_.service->vantage();
  return vantage == Vantage::kServer || vantage == Vantage::kLoopback;
}

// ---- acknowledgements -------------------------------------------------------------------------

void Connection::on_ack(tcp::Side by, const tcp::Segment& s) {
  const tcp::Side of = tcp::other(by);
  Endpoint& receiver = endpoints_[by];
  Endpoint& sender = endpoints_[of];
  const bool window_changed = receiver.window.take(s, now_);
  report(of, receiver.window.check_reader(s, now_, sender.last_data.at > receiver.last_data.at));
  sender.sequence.start_at(s.ack);
  if (s.sack_count > 0) {
    if (tcp::is_after(s.sack[0].end, s.ack)) {
      sender.loss.sacked(now_, s.number);
      for (std::size_t i = 0; i < s.sack_count; ++i) sender.sequence.extend_to(s.sack[i].end);
    } else {
      collector_->spurious(tag_, of);  // D-SACK: it has been sent twice for nothing
    }
  }
  const std::int32_t ahead = tcp::distance(s.ack, sender.sequence.acked());
  if (ahead > 0) {
    on_progress(by, s);
  } else if (ahead == 0 && s.payload == 0 && !s.fin && !window_changed &&
             !sender.sequence.all_acked()) {
    sender.loss.duplicate_ack(now_, s.number);  // RFC 5681, section 2
  }
  sender.bulk.acked(now_, s.ack, receiver.window.window());
}

void Connection::on_progress(tcp::Side by, const tcp::Segment& s) {
  const tcp::Side of = tcp::other(by);
  Endpoint& sender = endpoints_[of];
  const LossDetector::Progress progress = sender.loss.acked(s);
  if (progress.repeated) report_loss(of, *progress.repeated, now_, s.number);
  if (progress.clean && progress.last_sent != Duration{0}) {
    // An ACK that data brings had to wait for the program: it does not show the round trip, it only
    // bounds it.
    const Duration took = now_ - progress.last_sent;
    const bool measured = rtt_.measured(by);
    rtt_.bound(by, took);
    if (s.payload == 0 || measured) rtt_.sample(by, took);
  }
  sender.sequence.acknowledge(s.ack);
  sender.small_writes.acked(now_);
  if (!sender.sequence.all_acked()) return;
  sender.all_acked_at = now_;
  const bool alone = s.payload == 0;
  sender.nagle.all_acked(now_, s.number, alone && progress.clean, sender.last_data, rtt_.to(by));
  if (of == kClient) {
    turns_.client_data_acked(now_, alone);
  } else {
    turns_.server_data_acked(now_);
  }
}

// ---- data -------------------------------------------------------------------------------------

void Connection::on_data(tcp::Side side, const tcp::Segment& s) {
  Endpoint& endpoint = endpoints_[side];
  endpoint.sequence.start_at(s.seq);
  const std::uint32_t next = endpoint.sequence.next();
  // A byte before what comes next, or none: to ask whether the window has opened, or whether
  // anybody is there.
  if (s.payload <= 1 && s.ack_flag && !s.fin && s.seq + 1 == next &&
      (s.payload == 0 || endpoint.bytes > 0)) {
    endpoints_[tcp::other(side)].window.probed(now_, s.number);
    return;
  }
  if (s.payload == 0) return;
  if (tcp::is_after(s.seq + s.payload, next)) {
    on_new_data(side, s);
  } else {
    on_old_data(side, s);
  }
}

void Connection::on_new_data(tcp::Side side, const tcp::Segment& s) {
  const tcp::Side peer_side = tcp::other(side);
  Endpoint& endpoint = endpoints_[side];
  Endpoint& peer = endpoints_[peer_side];
  report(peer_side, peer.small_writes.finish(segment_size(peer_side)));
  peer.bulk.peer_spoke();
  endpoint.segment_size.sent(s.payload);
  if (endpoint.bulk.in_a_row() && s.payload == endpoint.last_data.bytes) {
    endpoint.segment_size.repeated(s.payload);
  }
  ++endpoint.segments;
  endpoint.bytes += s.payload;
  look_for_holds(side, s);
  look_for_limits(side, s);
  deliver(side, endpoint.sequence.all_acked());
  endpoint.loss.sent(s, endpoint.sequence.next(), now_);
  endpoint.sequence.extend_to(s.seq + s.payload);
  endpoint.last_data = {
      .at = now_, .number = s.number, .bytes = s.payload, .full = is_full(side, s.payload)};
  endpoint.nagle.data_sent();
  peer.nagle.data_sent();
}

void Connection::look_for_holds(tcp::Side side, const tcp::Segment& s) {
  const tcp::Side peer_side = tcp::other(side);
  Endpoint& endpoint = endpoints_[side];
  const Endpoint& peer = endpoints_[peer_side];
  const auto since_release = endpoint.nagle.since_release(now_);
  const bool full = is_full(side, s.payload);
  if (since_release && !full) {
    rtt_.bound(side, *since_release);
    report(side, StallKind::kHeldByNagle,
           endpoint.nagle.check(now_, s.number, s.payload, endpoint.last_data,
                                {rtt_.upper_bound(side), rtt_.known(side)}));
  }
  if (endpoint.sequence.all_acked() && !full && !peer.window.waits_for_peer()) {
    report(side, StallKind::kCorked,
           check_cork(now_, s.number, s.payload,
                      {.own = endpoint.last_data,
                       .peer = peer.last_data,
                       .all_acked_at = endpoint.all_acked_at,
                       .is_response = side == kServer,
                       .rtt_to_sender = rtt_.to(side),
                       .slow_ack = rtt_.ack_quantile(peer_side, 0.9)}));
  }
}

void Connection::look_for_limits(tcp::Side side, const tcp::Segment& s) {
  Endpoint& endpoint = endpoints_[side];
  Endpoint& peer = endpoints_[tcp::other(side)];
  report(side,
         endpoint.small_writes.sent(now_, s.number, s.payload, segment_size(side), rtt_.to(side)));
  report(side, endpoint.bulk.sent(now_,
                                  {.number = s.number,
                                   .last_number = endpoint.last_data.number,
                                   .end = s.seq + s.payload,
                                   .acked = endpoint.sequence.acked(),
                                   .bytes_sent = endpoint.bytes,
                                   .segment_size = segment_size(side),
                                   .rtt_to_sender = rtt_.upper_bound(side),
                                   .rtt = rtt_.upper_bound(kClient) + rtt_.upper_bound(kServer)},
                                  peer.window));
  report(side, peer.window.peer_sends(now_, s.number, rtt_.upper_bound(side)));
}

void Connection::on_old_data(tcp::Side side, const tcp::Segment& s) {
  Endpoint& endpoint = endpoints_[side];
  WindowTracker& window = endpoints_[tcp::other(side)].window;
  if (endpoint.loss.is_copy(s, now_)) {
    ++counters_.duplicates;
    ++collector_->duplicates;
    return;
  }
  if (const auto filled = endpoint.loss.fill(s, now_, rtt_.to(side))) {
    if (filled->reordered) {
      ++counters_.reordered;
    } else {
      ++counters_.retransmissions;
      endpoint.bulk.interrupt();
      report_loss(side, filled->lost, now_, s.number);
    }
    endpoint.bytes += s.payload;
    ++endpoint.segments;
    deliver(side, false);
    return;
  }
  ++counters_.retransmissions;
  const bool had_arrived = tcp::distance(endpoint.sequence.acked(), s.seq + s.payload) >= 0;
  if (had_arrived) return;  // nobody waits for it
  endpoint.bulk.interrupt();
  if (window.shut()) {
    window.probed(now_, s.number);
    return;
  }
  endpoint.loss.sent_again(s, now_);
}

void Connection::deliver(tcp::Side side, bool all_acked) {
  const bool answered = endpoints_[tcp::other(side)].sequence.all_acked();
  report_turn(side == kClient ? turns_.client_data(now_, all_acked, answered, rtt_.both())
                              : turns_.server_data(now_, all_acked, rtt_.both()));
}

std::uint32_t Connection::segment_size(tcp::Side side) const {
  return endpoints_[side].segment_size.largest(endpoints_[tcp::other(side)].segment_size,
                                               server_.address.is_loopback());
}

bool Connection::is_full(tcp::Side side, std::uint32_t payload) const {
  return endpoints_[side].segment_size.is_full(payload, endpoints_[tcp::other(side)].segment_size,
                                               server_.address.is_loopback());
}

// ---- what was found ---------------------------------------------------------------------------

void Connection::report_loss(tcp::Side side, const SentSegment& sent, Duration until,
                             std::uint64_t number) {
  const Endpoint& endpoint = endpoints_[side];
  const WindowTracker& window = endpoints_[tcp::other(side)].window;
  StallKind kind = StallKind::kRetransmission;
  const bool first_data =
      side == kClient && handshake_.seen() && endpoint.sequence.only_syn_acked();
  // The first data, which reached its host and was thrown away with its connection's last ACK:
  // there was no room for one more connection.
  const bool reached_host = at_server() && handshake_.complete();
  if (first_data && (handshake_.ack_dropped_by_host() || reached_host)) {
    kind = StallKind::kSynDropped;
  }
  // A buffer with no room for a whole segment throws away what does not fit.
  if (window.offers_scale() && endpoint.window.offers_scale() &&
      window.largest() <= thresholds.window.small && segment_size(side) > window.largest() / 2) {
    kind = StallKind::kReceiveWindow;
  }
  report(side, StallEvent{.kind = kind,
                          .from = sent.at,
                          .until = until,
                          .amount = until - sent.at,
                          .packets = {sent.number, sent.again_number,
                                      number == sent.again_number ? 0 : number},
                          .first_data = first_data,
                          .timeouts = sent.count(RetransmitKind::kTimeout),
                          .probes = sent.count(RetransmitKind::kProbe),
                          .fast = sent.count(RetransmitKind::kFast),
                          .window_max = window.largest()});
}

// The turn that it delays has not begun yet.
void Connection::report_handshake(const StallEvent& event) {
  turns_.handshake_stall(event.kind, event.amount);
  collector_->stall(tag_, event);
}

void Connection::report(tcp::Side sender, const std::optional<StallEvent>& found) {
  if (!found) return;
  StallEvent event = *found;
  event.sender = sender;
  event.until = std::max(event.until, event.from);
  const Duration whole = event.amount;
  event.amount = turns_.stall(event.kind, event.from, event.until, whole);
  TAILWARD_CHECK(event.amount <= std::max(whole, Duration{0}));
  // What is left of a stall that others have told of before is none of its own.
  if (event.amount <= whole / thresholds.turn.stall_share_inverse) return;
  collector_->stall(tag_, event);
}

void Connection::report(tcp::Side sender, StallKind kind, const Detection& detection) {
  if (detection.counterexample) collector_->counterexample(tag_, kind, sender);
  report(sender, detection.stall);
}

void Connection::report_turn(const std::optional<Turn>& turn) {
  if (!turn) return;
  const bool one_sided = endpoints_[kClient].packets == 0 || endpoints_[kServer].packets == 0;
  if (one_sided && turn->response == Duration{0} && counters_.packets > 2 &&
      counters_.retransmissions == 0) {
    return;
  }
  ++counters_.turns;
  const Duration wire =
      std::chrono::microseconds(turn->stalled_us[static_cast<std::size_t>(StallKind::kWire)]);
  if (wire > Duration{0}) {
    collector_->stall(tag_, {.kind = StallKind::kWire,
                             .sender = kClient,
                             .from = turn->began,
                             .until = turn->began + turn->total,
                             .amount = wire,
                             .packets = {endpoints_[kClient].last_data.number,
                                         endpoints_[kServer].last_data.number}});
  }
  if (counters_.turns == 1 && handshake_.seen()) {
    first_turn_.hold(*turn);
    return;
  }
  const bool enough = first_turn_.later(*turn);
  collector_->turn(*turn, tag_.serial);
  if (enough) report_first_turn();
}

void Connection::report_first_turn() {
  const auto compared = first_turn_.settle(handshake_.syn_number());
  if (!compared) return;
  const Detection& detection = compared->detection;
  if (detection.stall) collector_->stall(tag_, *detection.stall);
  if (detection.counterexample) {
    collector_->counterexample(tag_, StallKind::kFirstTurn, kServer);
  }
  collector_->turn(compared->turn, tag_.serial);
}

void Connection::finish() {
  if (handshake_.state() == Handshake::State::kSynSent && handshake_.syn_repeated()) {
    // It never came to be: the whole of it is one request without a response.
    const StallEvent event = handshake_.syn_stall(at_server(), 0);
    report_handshake(event);
    Turn turn{.began = event.from, .total = event.amount, .handshake = event.amount};
    turn.stalled_us[static_cast<std::size_t>(event.kind)] =
        static_cast<std::uint32_t>(event.amount.count() / 1000);
    ++counters_.turns;
    collector_->turn(turn, tag_.serial);
  }
  for (const tcp::Side side : {kClient, kServer}) {
    Endpoint& endpoint = endpoints_[side];
    report(side, endpoint.small_writes.finish(segment_size(side)));
    if (const SentSegment* sent = endpoint.loss.unfinished()) {
      report_loss(side, *sent, sent->again, sent->again_number);
    }
    report(tcp::other(side), endpoint.window.finish());
  }
  const bool gave_up =
      endpoints_[kClient].sequence.finished() && !endpoints_[kServer].sequence.finished();
  report_turn(turns_.close(gave_up ? std::optional(now_) : std::nullopt, rtt_.both()));
  report_first_turn();
  collector_->retransmissions += counters_.retransmissions;
  collector_->reordered += counters_.reordered;
  collector_->connection(tag_, summary());
}

ConnectionSummary Connection::summary() const {
  const Endpoint& client = endpoints_[kClient];
  const Endpoint& server = endpoints_[kServer];
  ConnectionSummary summary{
      .client = client_,
      .server = server_,
      .saw_start = handshake_.seen(),
      .saw_end = saw_end_,
      .one_sided = client.packets == 0 || server.packets == 0,
      .vantage = vantage_,
      .handshake = {},
      .rtt_min = {},
      .rtt_median = {},
      .packets = counters_.packets,
      .retransmissions = counters_.retransmissions,
      .duplicates = counters_.duplicates,
      .reordered = counters_.reordered,
      .turns = counters_.turns,
      .bytes_from_client = client.bytes,
      .bytes_from_server = server.bytes,
      .segments_from_client = client.segments,
      .segments_from_server = server.segments,
      .stalled = tag_.stalled,
  };
  if (handshake_.complete()) summary.handshake = handshake_.took();
  if (rtt_.measured(kClient) && rtt_.measured(kServer)) {
    summary.rtt_min = rtt_.smallest_sample(kClient) + rtt_.smallest_sample(kServer);
    summary.rtt_median = rtt_.ack_quantile(kClient, 0.5) + rtt_.ack_quantile(kServer, 0.5);
  }
  return summary;
}

}  // namespace tailward::diag
