// Addresses as packets and sockets show them.
//
// Plain values: they may be copied and compared freely, from any thread.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>

namespace tailward::tcp {

// IPv4 addresses stand as IPv4-mapped IPv6 ones (RFC 4291, section 2.5.5.2).
struct Address {
  std::array<std::uint8_t, 16> bytes{};
  friend auto operator<=>(const Address&, const Address&) = default;
  [[nodiscard]] bool is_v4() const;
  [[nodiscard]] bool is_loopback() const;
};

struct SocketAddress {
  Address address;
  std::uint16_t port = 0;
  friend auto operator<=>(const SocketAddress&, const SocketAddress&) = default;
};

// "10.0.0.1", "::1"; with a port "10.0.0.1:80", "[::1]:80".
std::string to_string(const Address& address);
std::string to_string(const SocketAddress& address);

}  // namespace tailward::tcp
