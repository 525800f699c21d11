// The receiving half of a virtual TCP endpoint: what has arrived, the window that is offered, and
// when an acknowledgement is due. Follows Linux: net/ipv4/tcp_input.c (tcp_event_data_recv,
// __tcp_ack_snd_check), tcp_output.c (__tcp_select_window), tcp_timer.c (tcp_delack_timer_handler)
// and tcp.c (tcp_cleanup_rbuf); RFC 1122, section 4.2.3.2; RFC 2018; RFC 2883.
//
// Offsets count the bytes of the peer's stream from its SYN, which is byte 0, and never wrap.
//
// Thread safety: one thread. Pure: the time comes with each call.
#pragma once

#include <cstdint>
#include <vector>

#include "base/time.h"
#include "sim_tcp/ticks.h"

namespace tailward::sim_tcp {

struct SequenceRange {
  std::uint64_t begin = 0, end = 0;
};

class Receiver {
 public:
  // `buffer`: payload bytes that may lie unread. `shift`: of the window scale (RFC 7323).
  Receiver(std::uint64_t buffer, std::uint8_t shift, Ticks ticks);

  // Data at [begin, end). `rto`: the endpoint's own. True: acknowledge at once.
  bool on_data(SequenceRange data, TimePoint now, Duration rto);
  // The application took `bytes`. True: acknowledge at once. REQUIRES: bytes <= unread().
  bool on_read(std::uint64_t bytes);
  // The timer of the delayed acknowledgement has fired: an acknowledgement is due.
  void on_timer(Duration rto);
  void on_data_sent(TimePoint now);
  // A segment left that carries the acknowledgement, and the window() that was asked for it.
  void on_ack_sent(std::uint64_t window);

  [[nodiscard]] std::uint64_t window() const;  // bytes, to be offered now
  [[nodiscard]] std::uint64_t next() const { return next_; }
  [[nodiscard]] std::uint64_t unread() const { return next_ - read_; }
  [[nodiscard]] TimePoint ack_due() const { return ack_due_; }
  // What arrived beyond next(), the newest first; or what came twice, for a D-SACK.
  [[nodiscard]] const std::vector<SequenceRange>& sacks() const { return sacks_; }
  void clear_duplicate();

 private:
  bool keep_for_later(SequenceRange data);
  void note_arrival(std::uint64_t bytes, TimePoint now, Duration rto);
  void quicken();

  std::uint64_t buffer_;
  std::uint8_t shift_;
  Ticks ticks_;
  std::uint64_t next_ = 1, read_ = 1, acked_ = 1, offered_until_ = 1;
  std::uint64_t window_limit_;
  std::uint64_t segment_max_ = 536;  // grows to the largest that came, as the kernel's estimate
  std::vector<SequenceRange> sacks_;
  bool duplicate_ = false;    // the first of sacks_ came twice
  std::uint32_t quick_ = 0;   // acknowledgements still to be sent at once
  std::uint32_t small_ = 0;   // small segments since the last acknowledgement, at most 2
  bool interactive_ = false;  // the application answers: the kernel's ping-pong mode
  Duration patience_{};       // the kernel's ATO
  TimePoint arrived_{};
  TimePoint ack_due_ = kNever;
};

}  // namespace tailward::sim_tcp
