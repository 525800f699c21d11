#include "net/real_clock.h"

#include <ctime>

namespace tailward::net {

TimePoint real_now() {
  timespec at{};
  clock_gettime(CLOCK_MONOTONIC, &at);
  return TimePoint{std::chrono::seconds(at.tv_sec) + std::chrono::nanoseconds(at.tv_nsec)};
}

}  // namespace tailward::net
