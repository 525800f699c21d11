// Notes Ctrl-C and SIGTERM for a whole verb, so that it ends with what it has, its files whole and
// what it started gone.
//
// Thread safety: one thread.
#pragma once

#include <memory>

#include "net/loop.h"

namespace tailward {

class StopWatch {
 public:
  StopWatch();
  // What is left to do is to end with the right status: from here on the signals are ignored.
  ~StopWatch();
  StopWatch(const StopWatch&) = delete;
  StopWatch& operator=(const StopWatch&) = delete;

  // Whether one has come since the start. Does not wait.
  bool asked();
  // Until one comes, or for this long at most.
  void wait(Duration at_most);

  // Whether a system call that a signal meets goes on, as it does from the start (a slow reader of
  // our output gets all of it), or ends with EINTR (a read that may wait for ever).
  static void restart_calls(bool restart);

 private:
  net::Loop loop_;
  bool asked_ = false;
  std::unique_ptr<net::SignalWatch> watch_;
};

}  // namespace tailward
