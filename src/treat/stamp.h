// The one clock that packets and changes are both stamped by.
#pragma once

#include "base/time.h"

namespace tailward::treat {

// CLOCK_REALTIME, since 1970 (UTC), as tcp::Segment::at. May step. Thread-safe.
Duration wall_stamp();

}  // namespace tailward::treat
