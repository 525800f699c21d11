// The window that one side of a connection offers: how large, how it is scaled (RFC 7323), when it
// was shut (RFC 9293, section 3.8.6), and whether the program behind it reads as fast as data come.
//
// Thread safety: one thread. Times do not run backwards. The events that it returns lack `sender`,
// which is the other side.
#pragma once

#include <cstdint>
#include <optional>

#include "base/time.h"
#include "diag/connection/scale_estimator.h"
#include "diag/connection/stall_event.h"
#include "tcp/segment.h"

namespace tailward::diag {

class WindowTracker {
 public:
  // This side's SYN: its window is never scaled.
  void take_syn(const tcp::Segment& syn);
  // Both sides' SYNs were there (or not, then nothing is known): both must offer to scale, or none
  // does (RFC 7323, section 2.2).
  static void agree_on_scales(WindowTracker& a, WindowTracker& b, bool both_seen);
  // From elsewhere. More than 14 counts as 14.
  void know_scale(std::uint8_t scale);

  // Every segment with an ACK. Returns whether the window differs from the one before.
  bool take(const tcp::Segment& segment, Duration now);
  // The peer sent the last data, or this side did: who speaks does not have to read.
  std::optional<StallEvent> check_reader(const tcp::Segment& segment, Duration now,
                                         bool peer_spoke_last);
  // The peer asks whether the window has opened. Ignored while it is open.
  void probed(Duration now, std::uint64_t number);
  // The peer sends new data. `rtt_to_peer`: its upper bound.
  std::optional<StallEvent> peer_sends(Duration now, std::uint64_t number, Duration rtt_to_peer);
  // At the connection's end: a window that was probed and never opened.
  [[nodiscard]] std::optional<StallEvent> finish() const;
  // More is in flight than an unscaled window would allow: then it is scaled, by an unknown factor.
  // True when this has just become known.
  bool exceeded_by(std::int64_t in_flight);

  [[nodiscard]] std::uint32_t window() const { return window_; }
  [[nodiscard]] std::uint32_t largest() const { return largest_; }  // ever offered, in bytes
  [[nodiscard]] std::uint16_t raw() const { return raw_; }          // as in the last header
  [[nodiscard]] bool small() const;                                 // and never was larger
  [[nodiscard]] bool scale_known() const { return scale_known_; }
  [[nodiscard]] bool offers_scale() const { return scale_ >= 0; }
  [[nodiscard]] bool scaled_by_unknown() const { return scaled_by_unknown_; }
  // To less than half of its largest.
  [[nodiscard]] bool ever_shrank() const { return ever_shrank_; }
  // Since it was shut the peer has not sent; it may have opened meanwhile.
  [[nodiscard]] bool waits_for_peer() const { return shut_.valid; }
  [[nodiscard]] bool shut() const { return shut_.valid && window_ == 0; }

 private:
  struct Shut {
    bool valid = false;
    Duration at{}, opened_at{}, probe_at{};  // opened_at zero: not yet
    std::uint64_t number = 0, probe_number = 0;
    std::uint32_t probes = 0;
  };

  [[nodiscard]] StallEvent shut_event(Duration until, std::uint64_t number) const;

  bool seen_ = false;
  std::int8_t scale_ = -1;
  bool scale_known_ = false;
  bool scale_learned_ = false;  // not seen, but estimated
  bool scaled_by_unknown_ = false;
  std::uint16_t raw_ = 0, raw_largest_ = 0;
  bool ever_shrank_ = false;
  std::uint32_t window_ = 0, largest_ = 0;
  Shut shut_;
  // Since when more than half of it has been taken by unread data; zero: it is not.
  Duration behind_at_{};
  std::uint64_t behind_number_ = 0;
  ScaleEstimator estimator_;
};

}  // namespace tailward::diag
