// What `tailward proxy` is told: where to listen, where to send, when to hedge, and its limits.
//
// Plain values. Thread safety: none needed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "hedge/planning/policy.h"
#include "io/transport.h"

namespace tailward::proxy {

struct Options {
  io::HostPort listen{"127.0.0.1", 8080};
  std::vector<io::HostPort> to;
  hedge::Policy policy{.kind = hedge::Policy::Kind::kAdaptive, .copies = 2};
  double budget = 0.05;               // hedges per request; 0: none at all
  bool dry_run = false;               // decide and count, send no hedge
  bool auto_off = true;               // hedging that does harm switches itself off
  std::optional<io::HostPort> admin;  // health, metrics, figures
  std::optional<Duration> deadline;   // from passing a request on to its answer's beginning
  Duration drain_timeout = std::chrono::seconds(30);
  std::size_t body_limit = 64 * 1024;  // bytes of a request body that is kept for a hedge

  // Bytes of one body, in one direction, that wait here for a slow reader before its sender is held
  // up; one read buffer comes on top.
  std::size_t buffered_max = 64 * 1024;
  std::size_t connections_max = 10'000;      // of clients
  std::size_t host_connections_max = 1'024;  // to each host
  std::size_t host_waiting_max = 4'096;      // requests that wait for one, for each host
  // Below the 5 s after which many servers close an idle connection: a request that must not be
  // sent twice should not meet that closing.
  Duration host_idle_timeout = std::chrono::seconds(4);

  std::uint64_t seed = 1;
  // What /stats says of the process.
  std::string version = "unknown";
  std::uint64_t pid = 0;
};

// "HOST:PORT,HOST:PORT…", 1 to hedge::kHostsMax. kInvalid with a hint otherwise.
Result<std::vector<io::HostPort>> parse_hosts(std::string_view text);

// One line: where it listens, to what, policy, budget, admin. The endpoints are those really bound.
std::string summary(const Options& options, const io::HostPort& listening,
                    const std::optional<io::HostPort>& admin);

// "5%", as parse_share() reads it.
std::string share_text(double share);

}  // namespace tailward::proxy
