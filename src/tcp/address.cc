#include "tcp/address.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace tailward::tcp {

namespace {

constexpr std::array<std::uint8_t, 12> kMappedPrefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
constexpr std::size_t kGroups = 8;

struct Run {
  std::size_t begin = 0;
  std::size_t length = 0;
};

// What "::" stands for: the first longest run of at least two zero groups (RFC 5952, section 4.2).
Run longest_zero_run(const std::array<unsigned, kGroups>& groups) {
  Run best;
  for (std::size_t begin = 0; begin < kGroups; ++begin) {
    std::size_t end = begin;
    while (end < kGroups && groups[end] == 0) ++end;
    if (end - begin > std::max<std::size_t>(1, best.length)) best = {begin, end - begin};
  }
  return best;
}

}  // namespace

bool Address::is_v4() const {
  return std::equal(kMappedPrefix.begin(), kMappedPrefix.end(), bytes.begin());
}

bool Address::is_loopback() const {
  if (is_v4()) return bytes[12] == 127;
  return bytes[15] == 1 && std::all_of(bytes.begin(), bytes.end() - 1, [](auto b) { return !b; });
}

std::string to_string(const Address& address) {
  const auto& b = address.bytes;
  if (address.is_v4()) return fmt::format("{}.{}.{}.{}", b[12], b[13], b[14], b[15]);
  std::array<unsigned, kGroups> groups{};
  for (std::size_t i = 0; i < kGroups; ++i) groups[i] = b[2 * i] * 256u + b[2 * i + 1];
  const Run zeros = longest_zero_run(groups);
  std::string text;
  for (std::size_t i = 0; i < kGroups; ++i) {
    if (zeros.length > 0 && i == zeros.begin) {
      text += "::";
      i += zeros.length - 1;
      continue;
    }
    if (!text.empty() && text.back() != ':') text += ':';
    fmt::format_to(std::back_inserter(text), "{:x}", groups[i]);
  }
  return text;
}

std::string to_string(const SocketAddress& address) {
  const char* form = address.address.is_v4() ? "{}:{}" : "[{}]:{}";
  return fmt::format(fmt::runtime(form), to_string(address.address), address.port);
}

}  // namespace tailward::tcp
