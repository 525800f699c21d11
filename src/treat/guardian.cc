#include "treat/guardian.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/wall_clock.h"

namespace tailward::treat {
namespace {

// Both ends are the same program after fork(), so the records need no version.
enum class Order : std::uint32_t { kPing, kTrack, kApply, kRestore, kFinish, kKeep };

// A delayed ACK waits 40 ms at least (TCP_DELACK_MIN, net/tcp.h), so an ACK that is quick again
// after 10 ms is never late. 50 µs for each connection: 200 are refreshed every 10 ms, 2,000 every
// 100 ms, and the guardian takes the same share of a core.
constexpr Duration kRefreshEvery = std::chrono::milliseconds(10);
constexpr Duration kRefreshPerConnection = std::chrono::microseconds(50);

// Longer than any response takes: the guardian makes no call that waits.
constexpr timeval kResponseTimeout{30, 0};

// What a terminal or an administrator sends to the starter's whole group must not reach it.
void detach() {
  for (const int number : {SIGINT, SIGHUP, SIGTERM, SIGQUIT, SIGTSTP, SIGPIPE, SIGUSR1, SIGUSR2}) {
    static_cast<void>(::signal(number, SIG_IGN));
  }
  static_cast<void>(::setsid());
  static_cast<void>(::prctl(PR_SET_NAME, "tailward-guard"));
  // Nobody who reads the starter's output is to wait for the guardian's end.
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nothing, fd);
  if (nothing > STDERR_FILENO) ::close(nothing);
}

int milliseconds(Duration duration) {
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(duration).count());
}

template <class T>
bool send_whole(int socket, const T& message) {
  ssize_t sent = 0;
  do {
    sent = ::send(socket, &message, sizeof message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == sizeof message;
}

template <class T>
bool receive_whole(int socket, T& message) {
  ssize_t got = 0;
  do {
    got = ::recv(socket, &message, sizeof message, 0);
  } while (got < 0 && errno == EINTR);
  return got == sizeof message;
}

}  // namespace

Duration refresh_period(std::size_t connections) {
  return std::max<Duration>(kRefreshEvery,
                            kRefreshPerConnection * static_cast<std::int64_t>(connections));
}

struct Guardian::Request {
  Order order = Order::kPing;
  std::uint32_t id = 0;
  Target target = {};
};

Result<std::unique_ptr<Guardian>> Guardian::start(const std::vector<probe::Process>& processes,
                                                  std::vector<Setting> settings,
                                                  Duration patience) {
  int ends[2];
  // Each message is one whole, and the end of either process is seen at once by the other.
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return fail(ErrorKind::kOverloaded, fmt::format("no socket pair: {}", std::strerror(errno)));
  }
  probe::Descriptor ours(ends[0]);
  probe::Descriptor theirs(ends[1]);
  static_cast<void>(::setsockopt(ours.get(), SOL_SOCKET, SO_RCVTIMEO, &kResponseTimeout,
                                 sizeof kResponseTimeout));
  const pid_t child = ::fork();
  if (child < 0) {
    return fail(ErrorKind::kOverloaded, fmt::format("no guardian: {}", std::strerror(errno)));
  }
  // The child has one thread and calls no exit handlers: _exit().
  if (child == 0) {
    ::close(ours.release());
    detach();
    serve(theirs.get(), UndoLog(processes, std::move(settings)), patience);
    ::_exit(0);
  }
  return std::unique_ptr<Guardian>(
      new Guardian(child, std::move(ours), UndoLog(processes, std::move(settings))));
}

void Guardian::serve(int socket, UndoLog log, Duration patience) {
  Duration silence{0};
  while (silence < patience) {
    // Without anything to refresh it sleeps until a message comes or the patience ends.
    const Duration wait = log.refreshed() == 0 ? patience : refresh_period(log.refreshed());
    pollfd state{socket, POLLIN, 0};
    const int ready = ::poll(&state, 1, milliseconds(wait));
    if (ready < 0 && errno != EINTR) break;
    if (ready <= 0) {
      if (ready == 0) silence += wait;
      log.refresh();
      continue;
    }
    Request request;
    // The starter is gone: recv() returns 0 when its end of the pair closes.
    if (!receive_whole(socket, request)) break;
    silence = Duration{0};
    if (request.order == Order::kFinish || request.order == Order::kKeep) {
      const bool keep = request.order == Order::kKeep;
      static_cast<void>(send_whole(socket, keep ? log.keep_all() : log.restore_all()));
      return;
    }
    StepResult result;
    if (request.order == Order::kTrack) result = log.track(request.target);
    if (request.order == Order::kApply) result = log.apply(request.id);
    if (request.order == Order::kRestore) result = log.restore(request.id);
    if (!send_whole(socket, result)) break;
  }
  static_cast<void>(log.restore_all());
}

template <class T>
bool Guardian::ask(const Request& request, T& response) {
  if (lost_ || finished_) return false;
  if (send_whole(socket_.get(), request) && receive_whole(socket_.get(), response)) return true;
  // Once lost it stays lost: a late response would be taken for the next one's.
  lost_ = true;
  return false;
}

StepResult Guardian::lost_result() {
  constexpr std::string_view kText = "the guardian process was killed";
  StepResult result;
  result.at = wall_clock_now();
  std::copy(kText.begin(), kText.end(), result.message.begin());
  return result;
}

StepResult Guardian::track(const Target& target) {
  StepResult result;
  if (!ask({Order::kTrack, 0, target}, result)) return lost_result();
  mirror_.adopt_track(target, result);
  return result;
}

StepResult Guardian::apply(std::uint32_t id) {
  // Before the order: should the guardian be killed while it works, the change counts as made.
  mirror_.expect_apply(id);
  StepResult result;
  if (!ask({Order::kApply, id}, result)) return lost_result();
  mirror_.adopt_apply(id, result);
  return result;
}

StepResult Guardian::restore(std::uint32_t id) {
  StepResult result;
  if (!ask({Order::kRestore, id}, result)) return lost_result();
  if (result.outcome != StepOutcome::kFailed && result.outcome != StepOutcome::kDenied) {
    mirror_.adopt_restore(id);
  }
  return result;
}

bool Guardian::ping() {
  StepResult result;
  return ask({Order::kPing}, result);
}

Rollback Guardian::finish(bool keep) {
  Rollback rollback;
  const bool answered = ask({keep ? Order::kKeep : Order::kFinish}, rollback);
  finished_ = true;
  if (!answered) {
    // It may be stopped and not dead; two that restore at once restore the same.
    rollback = mirror_.restore_all();
  }
  socket_ = probe::Descriptor();
  // Somebody may have stopped it: it is to see that the socket is closed.
  static_cast<void>(::kill(pid_, SIGCONT));
  wait_for_end();
  return rollback;
}

void Guardian::wait_for_end() {
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Guardian::~Guardian() {
  if (!finished_) static_cast<void>(finish(false));
}

}  // namespace tailward::treat
