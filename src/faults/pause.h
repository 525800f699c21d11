// A wait that another thread can end for good.
//
// Thread safety: any thread may call anything. Destroy it when nobody waits any more.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "base/time.h"

namespace tailward::faults {

class Pause {
 public:
  // Waits for `length`. Returns false if end() was called, before or meanwhile.
  bool wait(Duration length);
  // Ends the waits under way, and all later ones.
  void end();
  [[nodiscard]] bool ended() const { return ended_; }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<bool> ended_ = false;
};

}  // namespace tailward::faults
