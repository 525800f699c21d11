// Runs a loop on a thread of its own, for programs that have no loop.
//
// The thread blocks all signals, so that the handlers of the program around it run on the program's
// own threads, and is named "tailward" in ps and gdb.
//
// Thread safety: construct and destroy it on one thread, never on the loop's (checked). After the
// constructor and until the destructor returns, the loop and everything on it belong to the new
// thread; before and after, to the caller.
#pragma once

#include <thread>

#include "base/unique_function.h"
#include "net/loop.h"

namespace tailward::net {

class LoopThread {
 public:
  // Throws std::system_error when there is no thread left. REQUIRES: nobody runs the loop, which
  // outlives this.
  explicit LoopThread(Loop& loop);
  // Stops the loop after its present turn and joins. Tasks posted before stay with the loop.
  ~LoopThread();
  LoopThread(const LoopThread&) = delete;
  LoopThread& operator=(const LoopThread&) = delete;

  // True on the loop's own thread.
  [[nodiscard]] bool is_current() const;
  // Runs `task` on the loop and waits for it; at once when called on the loop's own thread.
  void run(UniqueFunction<void()> task);

 private:
  Loop& loop_;
  std::thread thread_;
};

}  // namespace tailward::net
