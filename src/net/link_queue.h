// One direction of a link: what happens to each packet, and when it comes out. Pure arithmetic on
// the times that it is given.
//
// A packet may be lost on entering; else it waits for its turn, takes its bits ÷ rate to be sent,
// and arrives one delay later. Order is kept, whatever the shape becomes, but for the packets that
// are drawn to be overtaken. Anything but IPv4 is ignored: the namespaces' own chatter.
//
// Thread safety: one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "base/rng.h"
#include "base/time.h"
#include "net/link.h"

namespace tailward::net {

class LinkQueue {
 public:
  // In flight at once, whatever the shape says; more are dropped, and counted as queue drops.
  static constexpr std::size_t kPacketsMax = 65'536;
  // A packet that is to be overtaken waits no longer than this for the next one.
  static constexpr Duration kOvertakenWithin = std::chrono::milliseconds(10);

  // `prefix`: bytes before each packet's IP header that travel with it and count for nothing.
  LinkQueue(const LinkShape& shape, Rng rng, std::size_t prefix = 0)
      : shape_(shape), rng_(rng), prefix_(prefix) {}

  // For the packets from now on.
  void reshape(const LinkShape& shape) { shape_ = shape; }

  // `packet` begins with the prefix, then its IP header, and is copied. REQUIRES: `now` does not go
  // back.
  void offer(std::span<const char> packet, TimePoint now);

  // When the next packet comes out; kNever when there is none.
  [[nodiscard]] TimePoint next_due() const;
  // The packet that has come out by `now`, valid until the next call of another function; empty
  // when there is none.
  [[nodiscard]] std::span<const char> due(TimePoint now) const;
  // Takes that packet away. REQUIRES: due() was not empty.
  void pop();

  [[nodiscard]] const LinkCounters& counters() const { return counters_; }

 private:
  struct Packet {
    TimePoint sent;          // its last bit is on the line
    TimePoint due;           // it has arrived
    bool overtaken = false;  // waits for the next one; `due` is then when it waits no longer
    std::vector<char> bytes;
  };

  [[nodiscard]] std::size_t unsent(TimePoint now) const;
  [[nodiscard]] std::vector<char> copy(std::span<const char> packet);

  LinkShape shape_;
  Rng rng_;
  std::size_t prefix_;
  TimePoint line_free_{};
  TimePoint last_due_{};
  std::deque<Packet> packets_;  // by `due`, and by `sent`
  std::vector<std::vector<char>> spare_;
  LinkCounters counters_;
};

// Whether an IPv4 packet carries a TCP segment with SYN. Any bytes are safe.
bool has_syn(std::span<const char> packet);

}  // namespace tailward::net
