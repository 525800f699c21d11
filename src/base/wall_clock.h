// The date and time of the machine (CLOCK_REALTIME, UTC).
//
// It dates reports and profiles. The kernel stamps captured packets by it, so that a change can be
// compared with them. It may step forwards and backwards, so nobody measures an interval with it:
// intervals come from an io::Clock, or inside a lock from sync::stamp().
#pragma once

#include "base/time.h"

namespace tailward {

// Time since 1970-01-01 UTC, as tcp::Segment::at. Thread-safe.
[[nodiscard]] Duration wall_clock_now();

}  // namespace tailward
