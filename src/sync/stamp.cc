#include "sync/stamp.h"

#include <ctime>

namespace tailward::sync {

TimePoint stamp() {
  timespec now{};
  static_cast<void>(::clock_gettime(CLOCK_MONOTONIC, &now));
  return TimePoint{std::chrono::seconds(now.tv_sec) + Duration(now.tv_nsec)};
}

}  // namespace tailward::sync
