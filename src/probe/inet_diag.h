// Socket diagnostics over netlink (sock_diag(7)), and TCP_INFO as the kernel hands it out. Internal
// to probe.
//
// Thread safety: pure functions and calls to the system.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "tcp/socket_facts.h"

namespace tailward::probe {

// A struct tcp_info, as long as the kernel made it: older ones are shorter, newer ones longer. What
// is not wholly there is empty, and so is what the kernel never measured.
tcp::TcpInfo parse_tcp_info(std::span<const std::uint8_t> bytes);

// An array of SK_MEMINFO_*, likewise. Empty unless at least the first four are there.
std::optional<tcp::SocketMemory> parse_memory(std::span<const std::uint8_t> bytes);

// One struct inet_diag_msg with the attributes behind it. Empty when it is cut short or is of
// another family. Any bytes are safe.
std::optional<tcp::SocketFacts> parse_diag_message(std::span<const std::uint8_t> bytes);

struct DumpRequest {
  bool listeners_only = false;
  std::optional<std::uint16_t> local_port = {};
};

// Asks the network namespace of the calling thread. Errors: kUnsupported (no tcp_diag), kDenied.
Result<std::vector<tcp::SocketFacts>> dump(const DumpRequest& request);

}  // namespace tailward::probe
