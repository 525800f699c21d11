#include "net/real_clock.h"

#include <chrono>
#include <ctime>

#include "base/wall_clock.h"

namespace tailward::net {

TimePoint real_now() {
  timespec at{};
  clock_gettime(CLOCK_MONOTONIC, &at);
  return TimePoint{std::chrono::seconds(at.tv_sec) + std::chrono::nanoseconds(at.tv_nsec)};
}

std::string wall_time_iso8601() {
  const std::time_t seconds = std::chrono::floor<std::chrono::seconds>(wall_clock_now()).count();
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc)};
}

}  // namespace tailward::net
