// The machine's monotonic clock. Only net/real_clock.cc reads it; whoever else wants the time is
// given an io::Clock.
#pragma once

#include <string>

#include "io/timers.h"

namespace tailward::net {

// CLOCK_MONOTONIC. Thread-safe.
[[nodiscard]] TimePoint real_now();

// The date and time as people write it down, in UTC: "2026-11-30T14:21:19Z". For the heads of
// reports; nothing is measured with it. Thread-safe.
[[nodiscard]] std::string wall_time_iso8601();

// A timer queue whose driver keeps it on the machine's clock (net/loop.h).
class RealTimers : public io::Timers {
 public:
  RealTimers() : Timers(real_now()) {}
  [[nodiscard]] TimePoint precise_now() const override { return real_now(); }
  // Takes a fresh reading as now(), without firing anything: the beginning of a turn.
  void refresh() { set_now(real_now()); }
};

}  // namespace tailward::net
