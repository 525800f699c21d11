// Threads that take a lock, sleep while they hold it, and report back. Each waiting request needs a
// thread, because a thread that waits for a mutex can do nothing else.
//
// Thread safety: hold() and the destructor from one thread; `done` runs on a worker.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "base/time.h"
#include "base/unique_function.h"
#include "sync/profiled_mutex.h"

namespace tailward::faults {

class LockWorkers {
 public:
  static constexpr std::size_t kThreadsMax = 1024;

  LockWorkers() = default;
  // Waits for the holds that are under way. Holds that have not begun are dropped.
  ~LockWorkers();
  LockWorkers(const LockWorkers&) = delete;
  LockWorkers& operator=(const LockWorkers&) = delete;

  void hold(sync::ProfiledMutex& mutex, Duration length, UniqueFunction<void()> done);
  // Holds that are queued or under way. Any thread may ask.
  [[nodiscard]] std::uint64_t under_way() const { return under_way_.load(); }
  // Jobs that found all kThreadsMax threads busy: part of their wait is not for the lock.
  [[nodiscard]] std::uint64_t limit_hits() const { return limit_hits_; }

 private:
  struct Job {
    sync::ProfiledMutex* mutex;
    Duration length;
    UniqueFunction<void()> done;
  };
  void work();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Job> jobs_;
  std::size_t idle_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
  std::uint64_t limit_hits_ = 0;
  std::atomic<std::uint64_t> under_way_{0};
};

}  // namespace tailward::faults
