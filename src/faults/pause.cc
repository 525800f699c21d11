#include "faults/pause.h"

namespace tailward::faults {

bool Pause::wait(Duration length) {
  std::unique_lock lock(mutex_);
  return !wake_.wait_for(lock, length, [this] { return ended_.load(); });
}

void Pause::end() {
  {
    // Under the lock: a wait between its check of `ended_` and its sleep would miss the wake-up.
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  wake_.notify_all();
}

}  // namespace tailward::faults
