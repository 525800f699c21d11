// One thread's event loop, on Boost.Asio's io_context.
//
// The loop runs in turns. A turn waits until something is ready, takes one reading of the clock,
// which is now() for the whole turn, and then runs in this order: what sockets and posts brought,
// then the timers that are due. So whoever hears of a caller that has gone and of a timer in the
// same turn hears of the caller first: a cancellation wins over a timer due at the same instant.
//
// Timers fire within about 100 µs of their time on an idle machine (the loop's thread asks the
// kernel for the smallest timer slack).
//
// Thread safety: post() and stop() may be called from any thread; everything else belongs to the
// thread that calls run(), or to the owner while nobody runs it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>

#include "base/time.h"
#include "base/unique_function.h"
#include "io/timers.h"

namespace tailward::net {

class LoopCore;

// Destroying it ends the watch.
class SignalWatch {
 public:
  virtual ~SignalWatch() = default;
};

class Loop {
 public:
  using Task = UniqueFunction<void()>;

  Loop();
  // REQUIRES: not running; every stream, listener and timer of this loop is gone.
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Driven by the machine's monotonic clock.
  [[nodiscard]] io::Timers& timers();
  [[nodiscard]] TimePoint now() const;          // of this turn
  [[nodiscard]] TimePoint precise_now() const;  // fresh

  // Runs `task` on the loop's thread, in a later turn and in the order of posting. Any thread.
  // Tasks still waiting when the loop is destroyed are dropped without being run.
  void post(Task task);

  // Turns until stop(). May be called again afterwards.
  void run();
  // Turns until `done` holds or `at_most` is over; true when it holds. For tests and small
  // programs.
  bool run_until(UniqueFunction<bool()> done, Duration at_most);
  // Makes run() return after the present turn. Any thread, and async-signal-unsafe: use
  // on_signals().
  void stop();

  // Calls `callback` on the loop, once for each delivery of one of `signals`, instead of what the
  // signal does by default. Several loops may watch one signal: each is told.
  [[nodiscard]] std::unique_ptr<SignalWatch> on_signals(std::initializer_list<int> signals,
                                                        UniqueFunction<void(int)> callback);

  // For the parts of net that need Asio; defined in net/loop_core.h.
  [[nodiscard]] LoopCore& core() { return *core_; }

 private:
  std::unique_ptr<LoopCore> core_;
};

}  // namespace tailward::net
