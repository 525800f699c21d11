// The timers of a virtual host: like the kernel's, they fire on its ticks only.
//
// Linux sets a timer to whole ticks from the tick that has begun, and the timer wheel adds one so
// that it never fires early (calc_index() in kernel/time/timer.c). A tick is 4 ms with HZ=250.
//
// Plain value.
#pragma once

#include "base/time.h"

namespace tailward::sim_tcp {

struct Ticks {
  Duration length = std::chrono::milliseconds(4);
  Duration phase{};  // since the last tick, at time 0

  // When a timer fires that is set at `now` for `delay`. Between `delay` and two ticks more.
  [[nodiscard]] TimePoint fires(TimePoint now, Duration delay) const {
    const Duration here = now.time_since_epoch() + phase;
    const auto ticks = here / length + (delay + length - Duration{1}) / length + 1;
    return TimePoint{ticks * length - phase};
  }
};

}  // namespace tailward::sim_tcp
