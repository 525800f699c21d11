#include "diag/connection/handshake.h"

#include <algorithm>

#include "base/check.h"
#include "diag/thresholds.h"

namespace tailward::diag {

Handshake::Syn Handshake::syn(Duration now, std::uint64_t number) {
  if (state_ == State::kNew) {
    state_ = State::kSynSent;
    seen_ = true;
    syn_first_ = syn_last_ = now;
    number_ = number;
    syns_ = 1;
    return Syn::kFirst;
  }
  if (state_ != State::kSynSent && state_ != State::kSynAcked) return Syn::kIgnored;
  ++syns_;
  syn_last_ = now;
  return Syn::kAgain;
}

bool Handshake::syn_ack(Duration now, std::uint64_t number) {
  if (state_ != State::kNew && state_ != State::kSynSent) return false;
  if (state_ == State::kNew) {  // the capture began between the two
    seen_ = true;
    syn_first_ = syn_last_ = now;
    number_ = number;
  }
  state_ = State::kSynAcked;
  syn_ack_first_ = syn_ack_last_ = now;
  syn_acks_ = 1;
  return true;
}

std::optional<StallEvent> Handshake::syn_ack_again(Duration now, std::uint64_t number,
                                                   Duration rtt_to_client) {
  ++syn_acks_;
  // For another copy of the SYN, on its way while the client acknowledged the first one.
  const bool had_ack = complete();
  if (had_ack && now - established_ < thresholds.handshake.soon_after_ack + rtt_to_client) {
    return {};
  }
  ack_dropped_ = ack_dropped_ || had_ack;
  const StallEvent event{
      .kind = had_ack ? StallKind::kSynDropped : StallKind::kSynUnanswered,
      .sender = tcp::kClient,
      .from = had_ack ? established_ : syn_ack_last_,
      .until = now,
      .amount = now - (had_ack ? std::max(established_, syn_ack_last_) : syn_ack_last_),
      .packets = {number_, number}};
  syn_ack_last_ = now;
  return event;
}

void Handshake::established(Duration now) {
  TAILWARD_CHECK(state_ == State::kSynAcked);
  state_ = State::kOpen;
  established_ = now;
}

Handshake::State Handshake::join() {
  if (state_ == State::kNew) state_ = State::kOpen;
  return state_;
}

std::optional<Duration> Handshake::to_syn_ack() const {
  if (syns_ != 1 || syn_acks_ == 0) return {};
  return syn_ack_first_ - syn_first_;
}

std::optional<Duration> Handshake::to_ack() const {
  if (syn_acks_ != 1 || !complete()) return {};
  return established_ - syn_ack_first_;
}

StallEvent Handshake::syn_stall(bool at_server, std::uint64_t number) const {
  TAILWARD_CHECK(syn_repeated());
  // A capture at the server saw the SYN arrive: nobody but the host threw it away.
  return {.kind = at_server ? StallKind::kSynDropped : StallKind::kSynUnanswered,
          .sender = tcp::kClient,
          .from = syn_first_,
          .until = syn_last_,
          .amount = syn_last_ - syn_first_,
          .packets = {number_, number}};
}

Vantage Handshake::vantage(bool same_host, Vantage usual) const {
  if (same_host) return Vantage::kLoopback;
  if (!once_each()) return usual;
  const HandshakeThresholds& limits = thresholds.handshake;
  const Duration to_server = syn_ack_first_ - syn_first_;
  const Duration to_client = established_ - syn_ack_first_;
  if (to_server < limits.on_the_spot && to_server * limits.nearer_by < to_client) {
    return Vantage::kServer;
  }
  if (to_client < limits.on_the_spot && to_client * limits.nearer_by < to_server) {
    return Vantage::kClient;
  }
  if (to_client > limits.on_the_spot && to_server > limits.on_the_spot) return Vantage::kBetween;
  return Vantage::kUnknown;
}

}  // namespace tailward::diag
