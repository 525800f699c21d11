// Connection, the handshake: who answers how fast, which SYN was sent again, and whose fault that
// was.

#include <algorithm>

#include "diag/connection.h"

namespace tailward::diag {
namespace {

constexpr Duration kSlowWay = std::chrono::milliseconds(100);
// Nobody but a kernel on the spot answers that fast.
constexpr Duration kOnTheSpot = std::chrono::milliseconds(1);
constexpr Duration kSoonAfterAck = std::chrono::milliseconds(200);

}  // namespace

void Connection::take_options(Endpoint& endpoint, const tcp::Segment& s) {
  endpoint.started = true;
  endpoint.first = endpoint.next = endpoint.acked = s.seq + 1;
  endpoint.mss_option = s.mss.value_or(0);
  endpoint.scale = static_cast<std::int8_t>(s.window_scale ? std::min<int>(*s.window_scale, 14)
                                                           : -1);  // RFC 7323, section 2.3
  endpoint.timestamps = s.ts_value.has_value();
  endpoint.window_seen = true;
  endpoint.window = endpoint.window_max = s.window;
}

void Connection::on_syn(tcp::Side side, const tcp::Segment& s) {
  if (state_ == State::kNew) {
    state_ = State::kSynSent;
    saw_start_ = true;
    syn_first_ = syn_last_ = now_;
    syn_number_ = s.number;
    syns_ = 1;
    take_options(endpoints_[side], s);
    return;
  }
  if (state_ != State::kSynSent && state_ != State::kSynAnswered) return;
  ++syns_;
  ++tag_.service->summary.syns_repeated;
  syn_last_ = now_;
}

// A SYN from the server's side, with an ACK or (both sides open at once) without.
void Connection::on_syn_answer(tcp::Side side, const tcp::Segment& s) {
  if (side == tcp::kClient) return;  // confused, or both open: the SYN has said what matters
  if (state_ == State::kNew || state_ == State::kSynSent) {
    if (state_ == State::kNew) {
      saw_start_ = true;
      syn_first_ = syn_last_ = now_;
      syn_number_ = s.number;
      endpoints_[tcp::kClient].started = true;
      endpoints_[tcp::kClient].next = endpoints_[tcp::kClient].acked = s.ack;
    } else if (syns_ == 1) {
      sample_ack_rtt(tcp::kServer, now_ - syn_last_);
    }
    state_ = State::kSynAnswered;
    take_options(endpoints_[side], s);
    endpoints_[tcp::kClient].scale_known = endpoints_[tcp::kServer].scale_known = syns_ > 0;
    // Both must offer to scale, or none does.
    if (endpoints_[tcp::kClient].scale < 0 || endpoints_[tcp::kServer].scale < 0) {
      endpoints_[tcp::kClient].scale = endpoints_[tcp::kServer].scale = syns_ > 0 ? 0 : -1;
    }
    answer_first_ = answer_last_ = now_;
    syn_answers_ = 1;
    if (syns_ > 1) syn_stall(syn_first_, syn_last_, s.number);
    return;
  }
  if (s.seq + 1 != endpoints_[tcp::kServer].acked || endpoints_[tcp::kServer].bytes > 0) return;
  ++syn_answers_;
  // An answer to another copy of the SYN, on its way while the client acknowledged the first one.
  const bool had_ack = established_ != Duration{0};
  if (had_ack && now_ - established_ < kSoonAfterAck + rtt_to(tcp::kClient)) return;
  // The client's ACK was here, and yet: its connection found no room to wait to be accepted.
  dropped_by_host_ = dropped_by_host_ || had_ack;
  const StallEvent event{
      .kind = had_ack ? StallKind::kSynDropped : StallKind::kSynUnanswered,
      .sender = tcp::kClient,
      .from = had_ack ? established_ : answer_last_,
      .until = now_,
      .amount = now_ - (had_ack ? std::max(established_, answer_last_) : answer_last_),
      .packets = {syn_number_, s.number}};
  if (had_ack) {
    emit(event);
  } else {
    turns_.handshake_stall(event.kind, event.amount);
    collector_->stall(tag_, event);
  }
  answer_last_ = now_;
}

bool Connection::at_server() const {
  if (collector_->at_server) return true;
  if (server_.address.is_loopback() || server_.address == client_.address) return true;
  const Vantage vantage = tag_.service->vantage();
  return vantage == Vantage::kServer || vantage == Vantage::kLoopback;
}

void Connection::syn_stall(Duration from, Duration until, std::uint64_t number) {
  const StallEvent event{.kind = at_server() ? StallKind::kSynDropped : StallKind::kSynUnanswered,
                         .sender = tcp::kClient,
                         .from = from,
                         .until = until,
                         .amount = until - from,
                         .packets = {syn_number_, number}};
  turns_.handshake_stall(event.kind, event.amount);
  collector_->stall(tag_, event);
}

void Connection::on_established(const tcp::Segment& s) {
  if (!s.ack_flag || s.ack != endpoints_[tcp::kServer].next) return;
  state_ = State::kOpen;
  established_ = now_;
  if (syn_answers_ == 1) sample_ack_rtt(tcp::kClient, now_ - answer_first_);
  vantage_ = find_vantage();
  ++tag_.service->vantage_votes[static_cast<std::size_t>(vantage_)];
  if (syns_ == 1 && syn_answers_ == 1 && now_ - syn_first_ >= kSlowWay) {
    turns_.handshake_stall(StallKind::kWire, now_ - syn_first_);
  }
  turns_.handshake(syn_first_, now_ - syn_first_);
}

Vantage Connection::find_vantage() const {
  if (server_.address.is_loopback() || server_.address == client_.address) {
    return Vantage::kLoopback;
  }
  if (syns_ != 1 || syn_answers_ != 1) return tag_.service->vantage();
  const Duration to_server = answer_first_ - syn_first_;
  const Duration to_client = established_ - answer_first_;
  if (to_server < kOnTheSpot && to_server * 4 < to_client) return Vantage::kServer;
  if (to_client < kOnTheSpot && to_client * 4 < to_server) return Vantage::kClient;
  if (to_client > kOnTheSpot && to_server > kOnTheSpot) return Vantage::kBetween;
  return Vantage::kUnknown;
}

// A connection that never came to be.
void Connection::finish_handshake() {
  if (state_ != State::kSynSent || syns_ < 2) return;
  syn_stall(syn_first_, syn_last_, 0);
  Turn turn{
      .began = syn_first_, .total = syn_last_ - syn_first_, .handshake = syn_last_ - syn_first_};
  const StallKind kind = at_server() ? StallKind::kSynDropped : StallKind::kSynUnanswered;
  turn.stalled_us[static_cast<std::size_t>(kind)] =
      static_cast<std::uint32_t>(turn.total.count() / 1000);
  ++turn_count_;
  collector_->turn(turn, tag_.serial);
}

}  // namespace tailward::diag
