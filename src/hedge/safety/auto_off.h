// Switches hedging off when the switchback has shown that it does harm, and tries it again later.
//
// The first retrial comes after `retrial`, each further one after twice as long, up to
// `retrial_max`: a service whose fault is fixed gets its hedging back within minutes, and one whose
// fault stays is harmed ever more rarely. A trial that passes sets the time back to `retrial`.
//
// Thread safety: one loop. Time is given.
#pragma once

#include <cstdint>
#include <optional>

#include "base/time.h"
#include "hedge/proof/switchback.h"

namespace tailward::hedge {

class AutoOff {
 public:
  AutoOff(bool enabled, Duration retrial, Duration retrial_max)
      : enabled_(enabled), retrial_(retrial), retrial_max_(retrial_max), off_for_(retrial) {}

  // Looks at pairs that the switchback has measured since the last call. Restarts the switchback
  // when a retrial begins.
  void tick(Switchback& switchback, TimePoint now);
  // The service has changed for good: hedging is on, the next retrial comes after `retrial`.
  void reset();

  [[nodiscard]] bool off() const { return off_since_.has_value(); }
  [[nodiscard]] std::optional<TimePoint> since() const { return off_since_; }

 private:
  bool enabled_;
  Duration retrial_;
  Duration retrial_max_;
  Duration off_for_;  // the next time
  std::optional<TimePoint> off_since_;
  TimePoint retrial_at_{};
  std::uint64_t pairs_seen_ = 0;  // of the switchback
};

}  // namespace tailward::hedge
