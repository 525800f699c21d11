// One end of a virtual TCP connection: the handshake (RFC 9293, section 3.5), a Sender, a Receiver,
// and segments made of what they want.
//
// Thread safety: one thread. Pure: the time comes with each call. After each call the caller takes
// outbox(), and asks deadline() when to call on_timer().
#pragma once

#include <cstdint>
#include <vector>

#include "base/rng.h"
#include "base/time.h"
#include "sim_tcp/receiver.h"
#include "sim_tcp/sender.h"
#include "sim_tcp/ticks.h"
#include "tcp/segment.h"

namespace tailward::sim_tcp {

class Endpoint {
 public:
  struct Identity {
    tcp::SocketAddress local, remote;
    Duration clock{};  // the host's: of its time stamps at time 0
  };
  // Draws the initial sequence number.
  Endpoint(const Identity& identity, const EndpointOptions& options, Ticks ticks, Rng& rng);

  void connect(TimePoint now);                              // the client's: sends its SYN
  void answer_syn(const tcp::Segment& syn, TimePoint now);  // the server's: sends its SYN-ACK
  // `admitted`: whether the listener has room for the connection that an ACK would complete; if
  // not, the segment is dropped (tcp_v4_syn_recv_sock).
  void on_segment(const tcp::Segment& segment, TimePoint now, bool admitted);
  void on_timer(TimePoint now);

  // As the system calls. write() returns what the send buffer took.
  std::uint64_t write(std::uint64_t bytes, TimePoint now);
  void read(std::uint64_t bytes, TimePoint now);  // REQUIRES: bytes <= readable()
  void set_cork(bool on, TimePoint now);
  void close(TimePoint now);

  [[nodiscard]] bool open() const { return state_ == State::kOpen; }
  [[nodiscard]] bool writable() const { return open() && sender_.writable(); }
  [[nodiscard]] std::uint64_t readable() const { return receiver_.unread() - (fin_seen_ ? 1 : 0); }
  [[nodiscard]] bool all_acked() const { return sender_.all_acked(); }
  [[nodiscard]] TimePoint deadline() const;
  std::vector<tcp::Segment>& outbox() { return outbox_; }

 private:
  enum class State { kClosed, kSynSent, kSynReceived, kOpen };

  [[nodiscard]] tcp::Segment segment(TimePoint now);
  void send_syn(TimePoint now);
  void send_ack(TimePoint now);
  void send_data(const Sender::Outgoing& what, TimePoint now);
  void send_window_probe(TimePoint now);
  void flush(TimePoint now);
  void take_syn(const tcp::Segment& segment);
  bool finish_handshake(const tcp::Segment& segment, TimePoint now, bool admitted);
  void take_ack(const tcp::Segment& segment, TimePoint now);
  bool take_data(const tcp::Segment& segment, TimePoint now);
  [[nodiscard]] std::uint64_t offset_of_mine(std::uint32_t ack) const;
  [[nodiscard]] std::uint64_t offset_of_theirs(std::uint32_t seq) const;

  Identity identity_;
  Ticks ticks_;
  State state_ = State::kClosed;
  Sender sender_;
  Receiver receiver_;
  std::uint32_t my_first_ = 0, their_first_ = 0;  // sequence numbers of the SYNs
  std::uint8_t their_shift_ = 0;
  std::uint16_t packet_id_ = 0;
  std::uint32_t echo_ = 0;
  bool fin_seen_ = false;
  TimePoint syn_at_{};
  TimePoint syn_due_ = kNever;
  unsigned syns_ = 0;
  std::vector<tcp::Segment> outbox_;
};

}  // namespace tailward::sim_tcp
