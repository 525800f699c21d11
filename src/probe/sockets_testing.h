// Sockets and processes for the tests of probe.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <utility>

#include "base/unique_function.h"
#include "probe/sockets.h"

namespace tailward::probe {

// A listener on a free loopback port.
inline Descriptor listen_on_loopback(int family = AF_INET, int backlog = 200) {
  Descriptor listener(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  int bound = -1;
  if (family == AF_INET6) {
    sockaddr_in6 at{};
    at.sin6_family = AF_INET6;
    at.sin6_addr = in6addr_any;
    bound = ::bind(listener.get(), reinterpret_cast<sockaddr*>(&at), sizeof at);
  } else {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    bound = ::bind(listener.get(), reinterpret_cast<sockaddr*>(&at), sizeof at);
  }
  EXPECT_EQ(bound, 0) << std::strerror(errno);
  EXPECT_EQ(::listen(listener.get(), backlog), 0) << std::strerror(errno);
  return listener;
}

inline std::uint16_t port_of(const Descriptor& socket) {
  sockaddr_in6 at{};
  socklen_t size = sizeof at;
  EXPECT_EQ(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&at), &size), 0);
  return ntohs(at.sin6_port);  // at the same place in sockaddr_in
}

inline Descriptor connect_to(std::uint16_t port, int family = AF_INET) {
  Descriptor client(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  int connected = -1;
  if (family == AF_INET6) {
    sockaddr_in6 to{};
    to.sin6_family = AF_INET6;
    to.sin6_addr = in6addr_loopback;
    to.sin6_port = htons(port);
    connected = ::connect(client.get(), reinterpret_cast<sockaddr*>(&to), sizeof to);
  } else {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(port);
    connected = ::connect(client.get(), reinterpret_cast<sockaddr*>(&to), sizeof to);
  }
  EXPECT_EQ(connected, 0) << std::strerror(errno);
  return client;
}

inline Descriptor accept_from(const Descriptor& listener) {
  Descriptor accepted(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  EXPECT_TRUE(accepted.valid()) << std::strerror(errno);
  return accepted;
}

struct Connection {
  Descriptor listener = listen_on_loopback();
  Descriptor client = connect_to(port_of(listener));
  Descriptor server = accept_from(listener);
};

inline void set(const Descriptor& socket, int level, int option, int value) {
  EXPECT_EQ(::setsockopt(socket.get(), level, option, &value, sizeof value), 0)
      << std::strerror(errno);
}

// A child process that has done `task` by the time that the constructor returns, and then waits
// until it is killed.
class Child {
 public:
  explicit Child(UniqueFunction<void()> task) {
    int pipe[2] = {-1, -1};
    EXPECT_EQ(::pipe(pipe), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      task();
      const char ready = 1;
      if (::write(pipe[1], &ready, 1) != 1) ::_exit(1);
      while (true) ::pause();
    }
    ::close(pipe[1]);
    char ready = 0;
    EXPECT_EQ(::read(pipe[0], &ready, 1), 1);
    ::close(pipe[0]);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() { end(); }

  [[nodiscard]] int pid() const { return pid_; }
  // Ends it; it is a zombie until reap().
  void kill_only() {
    ::kill(pid_, SIGKILL);
    siginfo_t info{};
    static_cast<void>(::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT));
  }
  void end() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_ = -1;
};

inline const tcp::SocketFacts* find(const SocketList& list, int fd) {
  for (const tcp::SocketFacts& one : list.sockets) {
    if (one.fd == fd) return &one;
  }
  return nullptr;
}

}  // namespace tailward::probe
