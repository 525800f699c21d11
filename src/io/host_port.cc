#include <charconv>

#include "io/transport.h"

namespace tailward::io {
namespace {

constexpr const char* kForms = "write host:port, 1.2.3.4:80, [::1]:80 or :80";

tl::unexpected<Error> refuse(std::string_view text, std::string_view why) {
  std::string message = "\"";
  message += text;
  message += "\" is no address: ";
  message += why;
  return fail(ErrorKind::kInvalid, std::move(message), kForms);
}

bool is_host_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '-' || c == '_';
}

bool is_v6_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == ':' || c == '%';
}

bool all_of(std::string_view text, bool (*test)(char)) {
  for (const char c : text) {
    if (!test(c)) return false;
  }
  return true;
}

}  // namespace

Result<HostPort> parse_host_port(std::string_view text) {
  if (text.find("://") != std::string_view::npos) return refuse(text, "it is a URL");
  std::string_view host;
  std::string_view port;
  if (text.starts_with('[')) {
    const std::size_t close = text.find(']');
    if (close == std::string_view::npos) return refuse(text, "the bracket is not closed");
    host = text.substr(1, close - 1);
    if (host.find(':') == std::string_view::npos || !all_of(host, is_v6_character)) {
      return refuse(text, "what is in brackets is no IPv6 address");
    }
    port = text.substr(close + 1);
    if (!port.starts_with(':')) return refuse(text, "the port is missing");
    port.remove_prefix(1);
  } else {
    const std::size_t colon = text.rfind(':');
    if (colon == std::string_view::npos) return refuse(text, "the port is missing");
    host = text.substr(0, colon);
    port = text.substr(colon + 1);
    if (host.find(':') != std::string_view::npos) {
      return refuse(text, "an IPv6 address goes in brackets");
    }
    if (!all_of(host, is_host_character)) {
      return refuse(text, "the host holds a character that no host name has");
    }
  }
  std::uint16_t number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (port.empty() || error != std::errc{} || end != port.data() + port.size()) {
    return refuse(text, "the port is no number in 0…65535");
  }
  return HostPort{std::string(host), number};
}

std::string to_string(const HostPort& endpoint) {
  const bool v6 = endpoint.host.find(':') != std::string::npos;
  std::string text;
  if (v6) text += '[';
  text += endpoint.host;
  if (v6) text += ']';
  text += ':';
  text += std::to_string(endpoint.port);
  return text;
}

}  // namespace tailward::io
