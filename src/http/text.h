// The characters and lists of HTTP, for this folder's own use. RFC 9110 §5.6.
//
// Thread safety: pure functions.
#pragma once

#include <string_view>

namespace tailward::http {

constexpr char to_lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_blank(char c) { return c == ' ' || c == '\t'; }

[[nodiscard]] bool is_token_char(char c);
// Visible ASCII.
[[nodiscard]] constexpr bool is_visible(char c) { return c > 0x20 && c < 0x7f; }

[[nodiscard]] std::string_view trimmed(std::string_view text);

// True when the comma-separated list holds `token`, without case.
[[nodiscard]] bool list_has_token(std::string_view list, std::string_view token);

// uri-host [":" port], loosely: what could end a host early or begin a path is refused; empty is
// valid.
[[nodiscard]] bool is_host_value(std::string_view text);

}  // namespace tailward::http
