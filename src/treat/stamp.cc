#include "treat/stamp.h"

#include <ctime>

namespace tailward::treat {

Duration wall_stamp() {
  timespec now{};
  static_cast<void>(::clock_gettime(CLOCK_REALTIME, &now));
  return std::chrono::seconds(now.tv_sec) + Duration(now.tv_nsec);
}

}  // namespace tailward::treat
