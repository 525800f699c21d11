// Small facts from /proc. Internal to probe.
//
// Thread safety: pure calls to the system.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace tailward::probe {

// The whole of a file of /proc, at most 4 MiB of it; empty when it cannot be read.
std::optional<std::string> read_small_file(const std::string& path);

std::string process_name(int pid);               // "?" when it is gone
int thread_group(int pid);                       // the process of a thread; 0: there is none
std::optional<unsigned> effective_uid(int pid);  // empty: gone
std::vector<int> all_pids();

// Why looking into this process was refused, and what to do about it.
Error denied_access(int pid);

struct OpenSocket {
  int fd = -1;
  std::uint32_t inode = 0;
};

// The sockets among the descriptors of a process, by descriptor. Errors: an errno, as given by
// the system; ESRCH or ENOENT when the process is gone.
struct OpenSockets {
  std::vector<OpenSocket> sockets;
  std::uint64_t vanished = 0;
  int error = 0;
};
OpenSockets open_sockets(int pid);

}  // namespace tailward::probe
