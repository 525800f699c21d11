// What holds a bulk sender back: the peer's window, or its own send buffer. Works on bytes in
// flight as the sender sees them: an acknowledgement counts from when it can have reached the
// sender, so that captures made at the receiver read like those made at the sender.
//
// The window: nothing could be sent, and something is sent as soon as the window has opened.
// The send buffer: round after round the same number of bytes in flight, far below the window, each
// sent only when an acknowledgement came. A congestion window would grow, or have seen loss.
//
// Thread safety: one thread.
#pragma once

#include <array>
#include <optional>

#include "base/time.h"
#include "diag/analysis.h"

namespace tailward::diag {

class FlightTracker {
 public:
  struct Limit {
    StallKind kind{};
    Duration from{}, until{}, amount{};
    std::uint32_t in_flight = 0;
  };

  // The receiver acknowledged up to `ack` and offers `window` bytes beyond.
  void acked(Duration at, std::uint32_t ack, std::uint32_t window);
  // New data up to `end`. `rtt_to_sender`: to the sender and back, as seen from the capture.
  // `window_max`: the largest that the receiver ever offered. `rtt`: the whole round trip.
  std::optional<Limit> sent(Duration at, std::uint32_t end, std::uint32_t mss,
                            Duration rtt_to_sender, Duration rtt, std::uint32_t window_max);
  // Bytes on their way, as the sender sees it.
  [[nodiscard]] std::uint32_t in_flight() const;
  // Loss, or the other side spoke: what was constant until now proves nothing.
  void interrupt();

 private:
  struct Ack {
    Duration at{};
    std::uint32_t ack = 0, window = 0;
  };

  void apply(Duration now, Duration rtt_to_sender, std::uint32_t limit);
  void look(Duration at, std::uint32_t limit);
  std::optional<Limit> blocked(Duration at, Duration rtt_to_sender, std::uint32_t window_max);
  std::optional<Limit> level(Duration at, std::uint32_t end, std::uint32_t mss);
  void start_level(Duration at, std::uint32_t peak);

  std::array<Ack, 16> acks_{};  // on their way to the sender
  std::uint8_t first_ = 0, waiting_ = 0;
  bool known_ = false;  // acked_ and window_ are
  bool limited_ = false, was_limited_ = false;
  std::uint32_t acked_ = 0, window_ = 0, end_ = 0, limited_window_ = 0;
  Duration opened_{}, acked_at_{}, sent_at_{};
  // The level: rounds with the same peak.
  std::uint32_t mark_ = 0, peak_ = 0;
  std::uint32_t lowest_ = 0, highest_ = 0, first_peak_ = 0, rounds_ = 0;
  std::uint32_t prompt_ = 0, idle_ = 0;  // gaps that an ACK ended, and others
  Duration level_began_{}, waited_{};
};

}  // namespace tailward::diag
