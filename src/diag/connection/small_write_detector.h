// A stream of small segments: one packet and one system call for each, where full segments would
// do (the small-packet problem of RFC 896). A run is segments in quick succession, without a word
// from the other side.
//
// Time that a run waited for acknowledgements is the congestion window's, not the program's: the
// pace of the writes leaves it out.
//
// Thread safety: one thread. One detector for the data of each side.
#pragma once

#include <cstdint>
#include <optional>

#include "base/time.h"
#include "diag/connection/stall_event.h"

namespace tailward::diag {

class SmallWriteDetector {
 public:
  // The peer acknowledged more of the data.
  void acked(Duration now) { acked_at_ = now; }
  // New data of `payload` bytes. `segment_size`: of a full segment. Returns the run that ended
  // before it, if that was one of small writes. Events lack `sender`.
  std::optional<StallEvent> sent(Duration now, std::uint64_t number, std::uint32_t payload,
                                 std::uint32_t segment_size, Duration rtt_to_sender);
  // The peer speaks, or the connection ends.
  std::optional<StallEvent> finish(std::uint32_t segment_size);

 private:
  struct Run {
    Duration began{}, last{};
    Duration waited{};  // for acknowledgements
    std::uint64_t first_number = 0, last_number = 0, bytes = 0;
    std::uint32_t count = 0, small = 0;
  };
  Run run_;
  Duration acked_at_{};
};

}  // namespace tailward::diag
