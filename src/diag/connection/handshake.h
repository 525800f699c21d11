// How a connection begins (RFC 9293, section 3.5): who acknowledged how fast, what was sent again,
// whose fault that was, and where the capture was made.
//
// Thread safety: one thread. Times do not run backwards; of times, zero means: not seen.
#pragma once

#include <cstdint>
#include <optional>

#include "base/time.h"
#include "diag/connection/stall_event.h"

namespace tailward::diag {

class Handshake {
 public:
  enum class State : std::uint8_t { kNew, kSynSent, kSynAcked, kOpen, kClosed };
  enum class Syn : std::uint8_t { kFirst, kAgain, kIgnored };

  // The client's SYN.
  Syn syn(Duration now, std::uint64_t number);
  // The server's SYN, with an ACK or (both sides open at once) without. True for the first one.
  bool syn_ack(Duration now, std::uint64_t number);
  // The same SYN-ACK once more. `rtt_to_client`: there and back. A stall of kind kSynDropped means
  // that the client's ACK had been here before: its connection found no room in the accept queue.
  std::optional<StallEvent> syn_ack_again(Duration now, std::uint64_t number,
                                          Duration rtt_to_client);
  // The client acknowledges the SYN-ACK.
  void established(Duration now);
  // Any other segment but a RST: a connection that none came before began before the capture.
  State join();
  void close() { state_ = State::kClosed; }

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] bool seen() const { return seen_; }  // the connection's start was captured
  [[nodiscard]] bool complete() const { return established_ != Duration{0}; }
  [[nodiscard]] bool syn_seen() const { return syns_ > 0; }
  [[nodiscard]] bool syn_repeated() const { return syns_ > 1; }
  [[nodiscard]] bool once_each() const { return syns_ == 1 && syn_acks_ == 1; }
  [[nodiscard]] Duration began() const { return syn_first_; }
  [[nodiscard]] Duration took() const { return established_ - syn_first_; }
  [[nodiscard]] std::uint64_t syn_number() const { return number_; }
  // SYN to SYN-ACK and SYN-ACK to ACK, where each was sent once; otherwise empty.
  [[nodiscard]] std::optional<Duration> to_syn_ack() const;
  [[nodiscard]] std::optional<Duration> to_ack() const;
  // The client's ACK was here, and the host sent its SYN-ACK again.
  [[nodiscard]] bool ack_dropped_by_host() const { return ack_dropped_; }
  // The time that repeated SYNs cost. `number`: of the packet that ended it, 0 if none did.
  [[nodiscard]] StallEvent syn_stall(bool at_server, std::uint64_t number) const;
  // From the two halves of the round trip. `same_host`: both ends are one machine. `usual`: of the
  // service's other connections, where this one says nothing.
  [[nodiscard]] Vantage vantage(bool same_host, Vantage usual) const;

 private:
  State state_ = State::kNew;
  bool seen_ = false;
  bool ack_dropped_ = false;
  Duration syn_first_{}, syn_last_{}, syn_ack_first_{}, syn_ack_last_{}, established_{};
  std::uint32_t syns_ = 0, syn_acks_ = 0;
  std::uint64_t number_ = 0;  // of the SYN
};

}  // namespace tailward::diag
