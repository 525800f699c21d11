// The bytes that one side of a connection has sent, as sequence numbers (RFC 9293, section 3.4):
// where they begin, what has been sent, what the other side has acknowledged.
//
// A plain value. Everything is modulo 2^32: differences are right up to 2 GiB.
#pragma once

#include <cstdint>

#include "tcp/sequence.h"

namespace tailward::diag {

class SequenceSpace {
 public:
  // The SYN takes one number; data begin behind it.
  void start_with_syn(std::uint32_t syn) {
    started_ = true;
    first_ = next_ = acked_ = syn + 1;
  }
  // The capture began later: `next` is the first number that is known of. Does nothing afterwards.
  void start_at(std::uint32_t next) {
    if (started_) return;
    started_ = true;
    next_ = acked_ = next;
  }
  // Sent up to here. Less than what is known already changes nothing.
  void extend_to(std::uint32_t end) {
    if (tcp::is_after(end, next_)) next_ = end;
  }
  // The other side has acknowledged up to here, perhaps data that was not captured.
  void acknowledge(std::uint32_t ack) {
    extend_to(ack);
    acked_ = ack;
  }
  // Returns whether this is the first FIN, which takes one number, behind `end` of the data.
  bool finish(std::uint32_t end) {
    if (fin_) return false;
    fin_ = true;
    extend_to(end + 1);
    return true;
  }

  [[nodiscard]] bool started() const { return started_; }
  [[nodiscard]] bool finished() const { return fin_; }
  [[nodiscard]] std::uint32_t next() const { return next_; }
  [[nodiscard]] std::uint32_t acked() const { return acked_; }
  [[nodiscard]] bool all_acked() const { return next_ == acked_; }
  // Of a connection whose SYN was seen: nothing but the SYN has been acknowledged.
  [[nodiscard]] bool only_syn_acked() const { return acked_ == first_; }

 private:
  bool started_ = false;
  bool fin_ = false;
  std::uint32_t first_ = 0;
  std::uint32_t next_ = 0;
  std::uint32_t acked_ = 0;
};

}  // namespace tailward::diag
