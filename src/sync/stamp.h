// When a wait began and ended: the one place of src/sync that reads the machine's clocks.
//
// A lock is used where no io::Clock is at hand, by any thread, and a loop's now() stands still
// while the thread waits. So locks stamp for themselves, and only when they are contended.
#pragma once

#include "base/time.h"

namespace tailward::sync {

// Where stamps come from. Called by many threads at once; must not go backwards between them.
using StampSource = TimePoint (*)();

// CLOCK_MONOTONIC, about 25 ns.
TimePoint stamp();

}  // namespace tailward::sync
