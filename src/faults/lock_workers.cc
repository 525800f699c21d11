#include "faults/lock_workers.h"

#include <sys/prctl.h>
#include <time.h>

namespace tailward::faults {
namespace {

// The handlers of the articles' programs sleep in their critical section; so does this.
void sleep_for(Duration length) {
  timespec left{static_cast<time_t>(length.count() / 1'000'000'000),
                static_cast<long>(length.count() % 1'000'000'000)};
  while (::nanosleep(&left, &left) != 0) {
  }
}

}  // namespace

LockWorkers::~LockWorkers() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    jobs_.clear();
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void LockWorkers::hold(sync::ProfiledMutex& mutex, Duration length, UniqueFunction<void()> done) {
  ++under_way_;
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back({&mutex, length, std::move(done)});
    if (jobs_.size() > idle_) {
      if (threads_.size() < kThreadsMax) {
        threads_.emplace_back([this] { work(); });
      } else {
        ++limit_hits_;
      }
    }
  }
  wake_.notify_one();
}

void LockWorkers::work() {
  // 1 ns instead of the default 50 µs: a hold of 0.3 ms would be a sixth longer.
  ::prctl(PR_SET_TIMERSLACK, 1UL);
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    wake_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
    --idle_;
    if (stopping_) return;
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    {
      const std::lock_guard held(*job.mutex);
      sleep_for(job.length);
    }
    --under_way_;
    job.done();
    lock.lock();
  }
}

}  // namespace tailward::faults
