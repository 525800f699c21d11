// Whether a stream of data is held back by the peer's window or by the sender's own buffer. Decides
// when a FlightTracker is worth its memory, and what its levels may be called.
//
// Thread safety: one thread. One detector for the data of each side.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/time.h"
#include "diag/connection/flight.h"
#include "diag/connection/stall_event.h"
#include "diag/connection/window_tracker.h"

namespace tailward::diag {

class BulkDetector {
 public:
  // New data, which end at `end`.
  struct Data {
    std::uint64_t number = 0;
    std::uint64_t last_number = 0;  // of the data before it
    std::uint32_t end = 0;
    std::uint32_t acked = 0;       // by the peer, as captured
    std::uint64_t bytes_sent = 0;  // in all, with these
    std::uint32_t segment_size = 0;
    Duration rtt_to_sender{}, rtt{};  // upper bounds, there and back
  };
  // `window`: of the peer; learns from here that it is scaled. Events lack `sender`.
  std::optional<StallEvent> sent(Duration now, const Data& data, WindowTracker& window);
  // The peer's ACK, with the window that it offers.
  void acked(Duration now, std::uint32_t ack, std::uint32_t window);
  // The peer sent data: what was a stream is now a conversation.
  void peer_spoke();
  // Something was lost: what was constant until now proves nothing.
  void interrupt();
  // The segment before this one was this side's, too.
  [[nodiscard]] bool in_a_row() const { return streak_ > 0; }

 private:
  std::uint8_t streak_ = 0;  // segments with data since the other side's, to some limit
  std::unique_ptr<FlightTracker> flight_;  // of those who stream
};

}  // namespace tailward::diag
