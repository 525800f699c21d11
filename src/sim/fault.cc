#include "sim/fault.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace tailward::sim {
namespace {

TimePoint time_of(TimePoint origin, Duration at) {
  return at >= kNever - origin ? kNever : origin + at;
}

}  // namespace

FaultSchedule::FaultSchedule(std::span<const Fault> faults, TimePoint origin) {
  std::vector<TimePoint> bounds;
  for (const Fault& fault : faults) {
    TAILWARD_CHECK(fault.slow_by > 0 && fault.error_share >= 0 && fault.error_share <= 1);
    const TimePoint from = time_of(origin, fault.from);
    const TimePoint until = time_of(origin, fault.until);
    if (fault.error_share > 0) failing_.push_back({from, until, fault});
    if (fault.hang || fault.slow_by != 1) bounds.insert(bounds.end(), {from, until});
  }
  std::sort(bounds.begin(), bounds.end());
  bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());
  for (const TimePoint from : bounds) {
    double speed = 1;
    for (const Fault& fault : faults) {
      if (from < time_of(origin, fault.from) || from >= time_of(origin, fault.until)) continue;
      speed = fault.hang ? 0 : speed / fault.slow_by;
    }
    paces_.push_back({from, speed});
  }
}

TimePoint FaultSchedule::finish_paced(TimePoint start, Duration work) const {
  const auto after = [](TimePoint at, const Pace& pace) { return at < pace.from; };
  auto next = std::upper_bound(paces_.begin(), paces_.end(), start, after);
  double speed = next == paces_.begin() ? 1 : std::prev(next)->speed;
  auto left = static_cast<double>(work.count());
  TimePoint at = start;
  for (;;) {
    const TimePoint end = next == paces_.end() ? kNever : next->from;
    const double possible = speed * static_cast<double>((end - at).count());
    if (speed > 0 && possible >= left) {
      return at + Duration{static_cast<std::int64_t>(std::ceil(left / speed))};
    }
    if (end == kNever) return kNever;
    left -= possible;
    at = end;
    speed = next->speed;
    ++next;
  }
}

}  // namespace tailward::sim
