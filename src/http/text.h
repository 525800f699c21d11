// The characters and lists of HTTP, for this folder's own use. RFC 9110 §5.6.
//
// Thread safety: pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace tailward::http {

constexpr char to_lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_blank(char c) { return c == ' ' || c == '\t'; }

enum CharClass : std::uint8_t {
  kTokenChar = 1,
  kTextChar = 2,    // may stand in a field value
  kTargetChar = 4,  // visible ASCII but '#'
  kHostChar = 8,    // nothing that could end a host early or begin a path
};

constexpr std::array<std::uint8_t, 256> make_char_classes() {
  std::array<std::uint8_t, 256> classes{};
  for (unsigned c = 0; c < 256; ++c) {
    const auto is_in = [c](std::string_view set) {
      return set.find(static_cast<char>(c)) != std::string_view::npos;
    };
    const bool visible = c > 0x20 && c < 0x7f;
    if (visible && !is_in("\"(),/:;<=>?@[\\]{}")) classes[c] |= kTokenChar;
    if ((c >= 0x20 && c != 0x7f) || c == '\t') classes[c] |= kTextChar;
    if (visible && c != '#') classes[c] |= kTargetChar;
    if (visible && !is_in("/?#@\\\"<>^`{|}")) classes[c] |= kHostChar;
  }
  return classes;
}

inline constexpr std::array<std::uint8_t, 256> kCharClasses = make_char_classes();

constexpr bool is_a(CharClass wanted, char c) {
  return (kCharClasses[static_cast<unsigned char>(c)] & wanted) != 0;
}

// True when every character of `text` is of that class.
constexpr bool all_are(CharClass wanted, std::string_view text) {
  std::uint8_t common = wanted;
  for (const char c : text) common &= kCharClasses[static_cast<unsigned char>(c)];
  return common != 0;
}

[[nodiscard]] std::string_view trimmed(std::string_view text);

// True when the comma-separated list holds `token`, without case.
[[nodiscard]] bool list_has_token(std::string_view list, std::string_view token);

}  // namespace tailward::http
