// A Nagle hold: Nagle's algorithm (RFC 896) lets a small segment wait until everything before it is
// acknowledged, while the peer delays that acknowledgement (RFC 1122, section 4.2.3.2).
//
// Seen as: a pure ACK for everything outstanding that came later than the way explains, and a
// segment right behind it that is not full. One that follows later is a counterexample: a program
// with timing of its own.
//
// Thread safety: one thread. One detector for the data of each side.
#pragma once

#include <cstdint>

#include "base/time.h"
#include "diag/connection/stall_event.h"

namespace tailward::diag {

class NagleDetector {
 public:
  // An ACK for everything that was outstanding. `alone`: a pure ACK, for data that came once.
  // `rtt_to_peer`: to the side that acknowledged and back.
  void all_acked(Duration now, std::uint64_t number, bool alone, const LastData& last,
                 Duration rtt_to_peer);
  // Either side has sent new data: the ACK before it releases nothing any more.
  void data_sent() { release_.valid = false; }

  // The time from the ACK that may have released a segment that is sent now; empty without one.
  [[nodiscard]] std::optional<Duration> since_release(Duration now) const;
  struct Way {
    Duration to_sender{};  // upper bound, there and back
    bool known = false;    // measured, not only bounded
  };
  // New data that are not a full segment. Events lack `sender`.
  [[nodiscard]] Detection check(Duration now, std::uint64_t number, std::uint32_t payload,
                                const LastData& last, const Way& way) const;

 private:
  struct Release {
    bool valid = false;
    Duration at{}, late{};  // late: beyond the way
    std::uint64_t number = 0;
  };
  Release release_;
};

}  // namespace tailward::diag
