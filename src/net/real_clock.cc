#include "net/real_clock.h"

#include <ctime>

namespace tailward::net {

TimePoint real_now() {
  timespec at{};
  clock_gettime(CLOCK_MONOTONIC, &at);
  return TimePoint{std::chrono::seconds(at.tv_sec) + std::chrono::nanoseconds(at.tv_nsec)};
}

std::string wall_time_iso8601() {
  timespec at{};
  clock_gettime(CLOCK_REALTIME, &at);
  std::tm utc{};
  gmtime_r(&at.tv_sec, &utc);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc)};
}

}  // namespace tailward::net
