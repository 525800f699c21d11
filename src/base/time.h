// The one notion of time: nanoseconds on a monotonic clock.
//
// MonotonicClock has no now() on purpose: who wants the time is given an io::Clock.
#pragma once

#include <chrono>
#include <cstdint>

namespace tailward {

using Duration = std::chrono::nanoseconds;

struct MonotonicClock {
  using rep = std::int64_t;
  using period = std::nano;
  using duration = Duration;
  using time_point = std::chrono::time_point<MonotonicClock, Duration>;
  static constexpr bool is_steady = true;
};

using TimePoint = MonotonicClock::time_point;

// "Never": later than every time that is reached, with room to add a duration to it.
inline constexpr TimePoint kNever{Duration{INT64_MAX / 2}};
inline constexpr Duration kForever{INT64_MAX / 2};

constexpr double to_ms(Duration d) { return static_cast<double>(d.count()) / 1e6; }
constexpr Duration from_ms(double ms) { return Duration{static_cast<std::int64_t>(ms * 1e6)}; }
constexpr double to_seconds(Duration d) { return static_cast<double>(d.count()) / 1e9; }

}  // namespace tailward
