#include "stop_watch.h"

#include <pthread.h>
#include <signal.h>

#include <csignal>

namespace tailward {

StopWatch::StopWatch()
    : watch_(loop_.on_signals({SIGINT, SIGTERM}, [this](int) { asked_ = true; })) {
  restart_calls(true);
}

StopWatch::~StopWatch() {
  // Asio gives a signal its default action back, which would end the process. A signal that arrives
  // in between is blocked, and ignored from then on: the result is being written.
  sigset_t both;
  sigemptyset(&both);
  for (const int number : {SIGINT, SIGTERM}) sigaddset(&both, number);
  ::pthread_sigmask(SIG_BLOCK, &both, nullptr);
  watch_.reset();
  for (const int number : {SIGINT, SIGTERM}) static_cast<void>(std::signal(number, SIG_IGN));
  ::pthread_sigmask(SIG_UNBLOCK, &both, nullptr);
}

bool StopWatch::asked() {
  // With something to do, the loop's turn does not wait.
  loop_.post([] {});
  loop_.run_until([this] { return asked_; }, Duration{1});
  return asked_;
}

void StopWatch::wait(Duration at_most) {
  if (at_most > Duration{0}) loop_.run_until([this] { return asked_; }, at_most);
}

void StopWatch::restart_calls(bool restart) {
  for (const int number : {SIGINT, SIGTERM}) {
    struct sigaction action {};
    if (::sigaction(number, nullptr, &action) != 0) continue;
    // With SA_RESTART a read of standard input goes on after a signal; without, it ends at once.
    action.sa_flags = restart ? action.sa_flags | SA_RESTART : action.sa_flags & ~SA_RESTART;
    static_cast<void>(::sigaction(number, &action, nullptr));
  }
}

}  // namespace tailward
