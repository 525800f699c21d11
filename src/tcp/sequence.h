// Arithmetic on TCP sequence numbers, modulo 2^32 (RFC 9293, section 3.4), and the numbers of the
// two sides of a connection.
#pragma once

#include <cstdint>

namespace tailward::tcp {

// How far `a` lies behind `b`; negative: before it.
constexpr std::int32_t distance(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int32_t>(a - b);
}
constexpr bool is_after(std::uint32_t a, std::uint32_t b) { return distance(a, b) > 0; }

using Side = std::uint8_t;
inline constexpr Side kClient = 0;
inline constexpr Side kServer = 1;
constexpr Side other(Side side) { return static_cast<Side>(1 - side); }

}  // namespace tailward::tcp
