// A process with connections of its own, to be treated in tests: forked, and told what to do over a
// pipe. Each order is answered, so that tests wait for what happened and never for a time.
#pragma once

#include <arpa/inet.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>

#include "treat/socket_option.h"
#include "treat/undo_log.h"

namespace tailward::treat::testing {

// Within which something must happen that normally takes a few milliseconds.
inline constexpr int kDeadlineMs = 20'000;

// Of the calling thread.
inline void drop_capability(int which) {
  __user_cap_header_struct who{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct held[_LINUX_CAPABILITY_U32S_3] = {};
  if (::syscall(SYS_capget, &who, held) != 0) ::abort();
  held[CAP_TO_INDEX(which)].effective &= ~CAP_TO_MASK(which);
  if (::syscall(SYS_capset, &who, held) != 0) ::abort();
}

class Victim {
 public:
  Victim() {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(listener_, 8) != 0 || ::pipe(orders_) != 0 || ::pipe(responses_) != 0) {
      ::abort();
    }
    socklen_t size = sizeof address_;
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address_), &size);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(listener_);
      ::close(orders_[1]);
      ::close(responses_[0]);
      obey();
    }
    ::close(orders_[0]);
    ::close(responses_[1]);
  }
  ~Victim() {
    end();
    for (const int fd : {listener_, orders_[1], responses_[0]}) ::close(fd);
  }
  Victim(const Victim&) = delete;
  Victim& operator=(const Victim&) = delete;

  // A connection from it to us: its descriptor there, and the peer's here.
  struct Connection {
    Target target;
    int peer = -1;
  };
  Connection connect() {
    Connection made;
    made.target.fd = static_cast<int>(order({kConnect}));
    made.target.inode = static_cast<std::uint32_t>(order({kInode, made.target.fd}));
    made.target.local_port = static_cast<std::uint16_t>(order({kPort, made.target.fd}));
    made.peer = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    return made;
  }
  State read(int fd, Option option) {
    const auto value = order({kRead, fd, static_cast<int>(option)});
    return {static_cast<int>(value >> 1), (value & 1) != 0};
  }
  void set(int fd, const Setting& setting) {
    order({kSet, fd, static_cast<int>(setting.option), setting.value, setting.automatic ? 1 : 0});
  }
  void close(int fd) { order({kClose, fd}); }
  // `fd` is closed, and its number is the socket's that was `other` until now.
  void replace(int fd, int other) { order({kReplace, fd, other}); }
  // A child goes on with its connections, and it closes its own.
  void hand_over(int fd) { order({kHandOver, fd}); }
  void end() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  [[nodiscard]] int pid() const { return pid_; }

 private:
  enum What : int { kConnect, kInode, kPort, kRead, kSet, kClose, kReplace, kHandOver };
  struct Order {
    What what;
    int fd = -1;
    int a = 0;
    int b = 0;
    int c = 0;
  };

  std::int64_t order(const Order& order) {
    std::int64_t response = -1;
    if (::write(orders_[1], &order, sizeof order) != sizeof order ||
        ::read(responses_[0], &response, sizeof response) != sizeof response) {
      return -1;
    }
    return response;
  }

  [[noreturn]] void obey() {
    Order order{};
    while (::read(orders_[0], &order, sizeof order) == sizeof order) {
      if (order.what == kHandOver && ::fork() != 0) {
        ::close(order.fd);
        const std::int64_t done = 0;
        static_cast<void>(::write(responses_[1], &done, sizeof done));
        // The child has the orders now.
        ::close(responses_[1]);
        while (true) ::pause();
      }
      if (order.what == kHandOver) {
        // Orphaned, and so ended, by the closing of the orders' pipe.
        continue;
      }
      const std::int64_t response = carry_out(order);
      if (::write(responses_[1], &response, sizeof response) != sizeof response) break;
    }
    ::_exit(0);
  }

  std::int64_t carry_out(const Order& order) {
    const auto option = static_cast<Option>(order.a);
    switch (order.what) {
      case kConnect: {
        const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
        return ::connect(fd, reinterpret_cast<sockaddr*>(&address_), sizeof address_) == 0 ? fd
                                                                                           : -1;
      }
      case kInode: {
        struct stat about {};
        return ::fstat(order.fd, &about) == 0 ? static_cast<std::int64_t>(about.st_ino) : -1;
      }
      case kPort: {
        sockaddr_in address{};
        socklen_t size = sizeof address;
        ::getsockname(order.fd, reinterpret_cast<sockaddr*>(&address), &size);
        return ntohs(address.sin_port);
      }
      case kRead: {
        const Result<State> state = read_option(order.fd, option);
        return state ? state->value * std::int64_t{2} + (state->locked ? 1 : 0) : -1;
      }
      case kSet:
        return set_option(order.fd, {option, order.b, order.c != 0}) ? 0 : -1;
      case kClose:
        return ::close(order.fd);
      case kReplace:
        ::dup2(order.a, order.fd);
        return ::close(order.a);
      case kHandOver:
        break;
    }
    return -1;
  }

  int listener_ = -1;
  int orders_[2] = {-1, -1};
  int responses_[2] = {-1, -1};
  int pid_ = -1;
  sockaddr_in address_{};
};

// Whether that process, child or not, ends before the deadline.
inline bool ends(int pid) {
  const int fd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  if (fd < 0) return errno == ESRCH;
  pollfd state{fd, POLLIN, 0};
  const bool ended = ::poll(&state, 1, kDeadlineMs) == 1;
  ::close(fd);
  return ended;
}

}  // namespace tailward::treat::testing
