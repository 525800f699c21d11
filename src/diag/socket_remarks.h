// What is worth a remark about one socket: by its options, its figures, and what its process's
// runtime would have set.
//
// Pure functions, safe from any thread. A remark is for a person who looks at a socket; whether it
// explains slow requests is for diagnose_network() (packets.h) to say. Healthy servers give none:
// the limits below are named, and tests hold nginx, redis and Node.js against them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "tcp/runtime.h"
#include "tcp/socket_facts.h"

namespace tailward::diag {

enum class Severity {
  kNote,     // good to know
  kWarning,  // costs latency or throughput under some load
  kFault     // costs it at this moment
};
std::string_view to_string(Severity severity);  // "note", …

struct SocketRemark {
  std::string_view code;  // "nagle", "listen-queue-full", …: for scripts; never renamed
  std::string sentence;
  Severity severity = Severity::kNote;
};

// `earlier`, if there is one: the same socket `apart` before; then what its counters did meanwhile
// counts, and not its whole life.
std::vector<SocketRemark> socket_remarks(const tcp::SocketFacts& now, tcp::Runtime runtime,
                                         const tcp::SocketFacts* earlier = nullptr,
                                         Duration apart = {});

// What the runtime sets by itself; empty where it leaves the kernel's default, or where it depends.
// docs/design/sockets.md has the sources.
struct RuntimeDefaults {
  std::optional<bool> nodelay = {};
  std::optional<bool> keepalive = {};
  std::optional<int> keepidle_s = {};
};
RuntimeDefaults defaults_of(tcp::Runtime runtime);

// "512 B", "16 KiB", "1.5 MiB"
std::string bytes_text(double bytes);

}  // namespace tailward::diag
