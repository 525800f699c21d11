#include "treat/choice.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <string>

namespace tailward::treat {
namespace {

constexpr const char* kForms =
    "an address, a network or an address with a port: 10.0.0.1, "
    "10.0.0.0/8, 10.0.0.1:443, [::1]:443";
constexpr int kMapped = 96;  // bits before an IPv4 address in an IPv6 one

std::optional<tcp::Address> parse_address(const std::string& text, bool& is_v4) {
  tcp::Address address;
  is_v4 = ::inet_pton(AF_INET, text.c_str(), address.bytes.data() + kMapped / 8) == 1;
  if (is_v4) {
    address.bytes[10] = address.bytes[11] = 0xff;
    return address;
  }
  if (::inet_pton(AF_INET6, text.c_str(), address.bytes.data()) == 1) return address;
  return std::nullopt;
}

std::optional<int> parse_number(std::string_view text, int least, int most) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value >= least && value <= most ? std::optional(value) : std::nullopt;
}

std::optional<RemoteFilter> parse(std::string_view text) {
  RemoteFilter filter;
  std::string_view address = text;
  std::optional<std::string_view> port;
  std::optional<std::string_view> prefix;
  if (!text.empty() && text.front() == '[') {
    const std::size_t close = text.find("]:");
    if (close == std::string_view::npos) return std::nullopt;
    address = text.substr(1, close - 1);
    port = text.substr(close + 2);
  } else if (const std::size_t slash = text.find('/'); slash != std::string_view::npos) {
    address = text.substr(0, slash);
    prefix = text.substr(slash + 1);
  } else if (std::count(text.begin(), text.end(), ':') == 1) {
    address = text.substr(0, text.find(':'));
    port = text.substr(text.find(':') + 1);
  }
  bool is_v4 = false;
  const std::optional<tcp::Address> parsed = parse_address(std::string(address), is_v4);
  if (!parsed) return std::nullopt;
  filter.address = *parsed;
  if (prefix) {
    const std::optional<int> bits = parse_number(*prefix, 0, is_v4 ? 32 : 128);
    if (!bits) return std::nullopt;
    filter.prefix = *bits + (is_v4 ? kMapped : 0);
  }
  if (port) {
    const std::optional<int> number = parse_number(*port, 1, 65535);
    if (!number) return std::nullopt;
    filter.port = static_cast<std::uint16_t>(*number);
  }
  return filter;
}

}  // namespace

bool RemoteFilter::matches(const tcp::SocketAddress& remote) const {
  if (port && *port != remote.port) return false;
  for (int bit = 0; bit < prefix; bit += 8) {
    const auto at = static_cast<std::size_t>(bit / 8);
    const int bits = std::min(8, prefix - bit);
    const int difference = address.bytes[at] ^ remote.address.bytes[at];
    if ((difference >> (8 - bits)) != 0) return false;
  }
  return true;
}

Result<RemoteFilter> parse_remote(std::string_view text) {
  if (const std::optional<RemoteFilter> filter = parse(text)) return *filter;
  return fail(ErrorKind::kInvalid, fmt::format("'{}' is no address", text), kForms);
}

std::set<std::uint16_t> server_ports(std::span<const tcp::SocketFacts> sockets) {
  std::set<std::uint16_t> listening;
  for (const tcp::SocketFacts& one : sockets) {
    if (one.state == tcp::TcpState::kListen) listening.insert(one.local.port);
  }
  std::set<std::uint16_t> ports;
  for (const tcp::SocketFacts& one : sockets) {
    if (one.state != tcp::TcpState::kEstablished) continue;
    ports.insert(listening.contains(one.local.port) ? one.local.port : one.remote.port);
  }
  return ports;
}

std::vector<bool> draw_half(std::span<const Candidate> candidates, Rng& rng) {
  std::vector<std::size_t> order(candidates.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const Candidate& one = candidates[a];
    const Candidate& two = candidates[b];
    if (one.remote.address != two.remote.address) return one.remote.address < two.remote.address;
    return one.activity > two.activity;
  });
  std::vector<bool> treated(candidates.size());
  for (std::size_t i = 0; i < order.size(); i += 2) {
    const bool first = rng.chance(0.5);
    treated[order[i]] = first;
    if (i + 1 < order.size()) treated[order[i + 1]] = !first;
  }
  return treated;
}

std::vector<bool> draw_slices(std::size_t pairs, Rng& rng) {
  std::vector<bool> slices;
  for (std::size_t i = 0; i < pairs; ++i) {
    const bool first = rng.chance(0.5);
    slices.push_back(first);
    slices.push_back(!first);
  }
  return slices;
}

}  // namespace tailward::treat
