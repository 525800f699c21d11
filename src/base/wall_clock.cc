#include "base/wall_clock.h"

#include <ctime>

namespace tailward {

Duration wall_clock_now() {
  timespec now{};
  static_cast<void>(::clock_gettime(CLOCK_REALTIME, &now));
  return std::chrono::seconds(now.tv_sec) + Duration(now.tv_nsec);
}

}  // namespace tailward
