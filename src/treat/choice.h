// Which connections are meant, and which of them are treated.
//
// Pure; safe from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/rng.h"
#include "tcp/segment.h"
#include "tcp/socket_facts.h"

namespace tailward::treat {

// Peers by address, by network or by address and port.
struct RemoteFilter {
  tcp::Address address;
  int prefix = 128;  // bits; of an IPv4 network 96 + its own
  std::optional<std::uint16_t> port = {};
  [[nodiscard]] bool matches(const tcp::SocketAddress& remote) const;
};

// "10.0.0.1", "10.0.0.0/8", "10.0.0.1:443", "::1", "[::1]:443", "2001:db8::/32".
// Errors: kInvalid.
Result<RemoteFilter> parse_remote(std::string_view text);

// Of each established connection the port of its server: the local one if a socket among these
// listens on it, else the peer's. Which number is the greater says nothing.
std::set<std::uint16_t> server_ports(std::span<const tcp::SocketFacts> sockets);

struct Candidate {
  tcp::SocketAddress remote;
  std::uint64_t activity = 0;  // bytes moved until now
};

// Draws half of them: neighbours by peer address and then by activity make pairs, and of each pair
// a coin chooses one, so that both halves have peers and busy connections alike. The last of an odd
// number goes by a coin of its own. The same seed and candidates give the same draw.
std::vector<bool> draw_half(std::span<const Candidate> candidates, Rng& rng);

// The order of `pairs` pairs of time slices, one of each pair with the treatment.
std::vector<bool> draw_slices(std::size_t pairs, Rng& rng);

}  // namespace tailward::treat
