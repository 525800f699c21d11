// The experiment's server as a process of its own, so that it does not share a CPU account, a heap
// or a fault with the client that measures it.
//
// Thread safety: one thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "base/unique_function.h"

namespace tailward::lab {

class ServerProcess {
 public:
  // Starts this program again with `arguments`; it must print one line, "port N", when it serves,
  // and end when its standard input ends. Errors: kInternal, with what the child said.
  static Result<ServerProcess> start(const std::vector<std::string>& arguments);

  ServerProcess(ServerProcess&& other) noexcept;
  ServerProcess& operator=(ServerProcess&&) = delete;
  // Ends it: closes its standard input, waits two seconds, then kills it.
  ~ServerProcess();

  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] pid_t pid() const { return pid_; }
  // False once it has ended by itself: how, says ended_how().
  [[nodiscard]] bool running();
  [[nodiscard]] const std::string& ended_how() const { return ended_how_; }

  struct Usage {
    std::uint64_t resident_peak_bytes = 0;
    double cpu_seconds = 0;
  };
  // Peak memory and CPU so far, from /proc; zeros when it is gone.
  [[nodiscard]] Usage usage() const;

 private:
  ServerProcess(pid_t pid, int input) : pid_(pid), input_(input) {}
  void note_end(int status);

  pid_t pid_ = -1;
  int input_ = -1;
  std::uint16_t port_ = 0;
  std::string ended_how_;
};

// Tells a server process that the one who started it has gone, however it went: its end of the pipe
// that is this process's standard input closes.
class ParentWatch {
 public:
  // `gone` runs on a thread of its own, once, and not after the watch was destroyed.
  explicit ParentWatch(UniqueFunction<void()> gone);
  ~ParentWatch();
  ParentWatch(const ParentWatch&) = delete;
  ParentWatch& operator=(const ParentWatch&) = delete;

 private:
  int stop_ = -1;  // an eventfd
  std::thread thread_;
};

}  // namespace tailward::lab
