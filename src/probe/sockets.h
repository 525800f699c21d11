// The TCP sockets of other processes: found in /proc, read through duplicated descriptors
// (pidfd_open(2), pidfd_getfd(2), getsockopt(2)) and socket diagnostics (sock_diag(7)). Nothing is
// changed in any process by anything in this header, except set_option().
//
// Thread safety: pure calls to the system; safe from several threads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_function.h"
#include "tcp/host_counters.h"
#include "tcp/socket_facts.h"

namespace tailward::probe {

// A descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();
  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] bool valid() const { return fd_ >= 0; }
  int release();

 private:
  int fd_;
};

// A running process, held by a pidfd: a number that is given to another process meanwhile cannot
// deceive it.
class Process {
 public:
  // Errors: kInvalid (no such process), kDenied.
  static Result<Process> open(int pid);
  [[nodiscard]] int pid() const { return pid_; }
  [[nodiscard]] bool running() const;
  [[nodiscard]] std::string name() const;  // /proc/<pid>/comm
  // A duplicate of one of its descriptors. Errors: kDenied (ptrace access mode ATTACH: the same
  // user and Yama's consent, or CAP_SYS_PTRACE with CAP_DAC_READ_SEARCH), kInvalid (no such
  // descriptor, process gone).
  [[nodiscard]] Result<Descriptor> duplicate(int fd) const;
  // Runs `task` on a thread of its own inside the network namespace that the process had when it
  // was opened, also after its end; at once and in this call if it is our own namespace. Errors:
  // kDenied (CAP_SYS_ADMIN), kInvalid (process gone, and its namespace was not to be had before).
  Result<void> in_network_namespace(UniqueFunction<void()> task) const;

 private:
  Process(int pid, Descriptor pidfd, Descriptor network)
      : pid_(pid), pidfd_(std::move(pidfd)), network_(std::move(network)) {}
  int pid_;
  Descriptor pidfd_;
  Descriptor network_;  // its namespace, which may outlive it; not valid without the right to look
};

// By pid: all sockets of the process. By port: all sockets of every process that has one with this
// local port in our own network namespace or, when there is none, in another one. By both: those of
// the process that have this local port.
struct SocketSearch {
  std::optional<int> pid = {};
  std::optional<std::uint16_t> port = {};
  bool options = true;  // read options too: one duplicate per socket
};

struct SocketList {
  std::vector<tcp::SocketFacts> sockets;  // by pid, then descriptor
  std::uint64_t unix_sockets = 0;         // skipped, counted
  std::uint64_t other_sockets = 0;        // UDP, netlink, …
  std::uint64_t vanished = 0;             // closed while we looked
  std::uint64_t denied = 0;               // options not readable; the facts are there without them
  std::optional<Error> why_denied = {};   // the first of those refusals
  std::vector<int> pids;                  // the processes looked at
};

// Errors: kInvalid (no such process; nothing uses that port), kDenied (with the capability).
Result<SocketList> list_sockets(const SocketSearch& search);

// sock_diag for the whole network namespace of the calling thread: no owner and no options, and
// without what is left of closed connections (TIME_WAIT). Cheap: what a watch repeats.
Result<std::vector<tcp::SocketFacts>> dump_sockets();

// Of these, the listeners only: quick enough to look at their queues twenty times a second.
Result<std::vector<tcp::SocketFacts>> dump_listeners();

// The options of one descriptor of ours.
tcp::SocketOptions read_options(int fd);

// Counters since boot, of the network namespace of the calling thread.
Result<tcp::HostCounters> read_counters();

}  // namespace tailward::probe
