#include "net/loop_thread.h"

#include <pthread.h>

#include <csignal>
#include <future>

#include "base/check.h"

namespace tailward::net {
namespace {

thread_local const LoopThread* current = nullptr;

// A new thread inherits the mask of the thread that makes it. Blocking the signals there, for that
// moment, leaves no instant at which the new thread could take one.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace

LoopThread::LoopThread(Loop& loop) : loop_(loop) {
  const SignalsBlocked blocked;
  thread_ = std::thread([this, &loop] {
    current = this;
    pthread_setname_np(pthread_self(), "tailward");
    loop.run();
  });
}

LoopThread::~LoopThread() {
  TAILWARD_CHECK(!is_current());  // it would wait for itself
  loop_.stop();
  thread_.join();
}

bool LoopThread::is_current() const { return current == this; }

void LoopThread::run(UniqueFunction<void()> task) {
  if (is_current()) return task();
  std::promise<void> done;
  std::future<void> finished = done.get_future();
  loop_.post([&task, done = std::move(done)]() mutable {
    task();
    done.set_value();
  });
  finished.get();
}

}  // namespace tailward::net
