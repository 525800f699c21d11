// A server as a process of its own: it shares neither CPU accounting, nor a heap, nor a crash with
// the client that measures it.
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

namespace tailward::faults {

class ServerProcess {
 public:
  // Starts this program again with `arguments`; it must print one line, "port N", when it serves,
  // and end when its standard input ends. Errors: kInternal, with what the child said.
  static Result<ServerProcess> start(const std::vector<std::string>& arguments);

  ServerProcess(ServerProcess&& other) noexcept;
  ServerProcess& operator=(ServerProcess&&) = delete;
  // Ends the process: closes its standard input, waits two seconds, then kills it.
  ~ServerProcess();

  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] pid_t pid() const { return pid_; }
  // False once the process has ended by itself; ended_how() then says how.
  [[nodiscard]] bool running();
  [[nodiscard]] const std::string& ended_how() const { return ended_how_; }

  struct Usage {
    std::uint64_t resident_peak_bytes = 0;
    double cpu_seconds = 0;
  };
  // Peak memory and CPU time so far, from /proc; zeros when the process is gone.
  [[nodiscard]] Usage usage() const;

 private:
  ServerProcess(pid_t pid, int input) : pid_(pid), input_(input) {}
  void note_end(int status);

  pid_t pid_ = -1;
  int input_ = -1;
  std::uint16_t port_ = 0;
  std::string ended_how_;
};

// Tells a server process that its parent has ended, in whatever way: the parent's end of the pipe
// that is this process's standard input closes.
class ParentWatch {
 public:
  // `gone` runs once, on a thread of the watch, and never after the watch is destroyed.
  explicit ParentWatch(UniqueFunction<void()> gone);
  ~ParentWatch();
  ParentWatch(const ParentWatch&) = delete;
  ParentWatch& operator=(const ParentWatch&) = delete;

 private:
  int stop_ = -1;  // an eventfd
  std::thread thread_;
};

}  // namespace tailward::faults
