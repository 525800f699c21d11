#include "http/text.h"

#include <algorithm>
#include <array>

#include "http/codec.h"
#include "http/message.h"

namespace tailward::http {

namespace {

using CharSet = std::array<bool, 256>;

constexpr CharSet make_token_chars() {
  CharSet set{};
  for (unsigned c = '0'; c <= '9'; ++c) set[c] = true;
  for (unsigned c = 'A'; c <= 'Z'; ++c) set[c] = true;
  for (unsigned c = 'a'; c <= 'z'; ++c) set[c] = true;
  for (const char c : std::string_view("!#$%&'*+-.^_`|~"))
    set[static_cast<unsigned char>(c)] = true;
  return set;
}

constexpr CharSet kTokenChars = make_token_chars();

bool is_text(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte >= 0x20 && byte != 0x7f) || c == '\t';
}

}  // namespace

bool is_token_char(char c) { return kTokenChars[static_cast<unsigned char>(c)]; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

bool list_has_token(std::string_view list, std::string_view token) {
  while (true) {
    const std::size_t comma = list.find(',');
    if (equals_ignoring_case(trimmed(list.substr(0, comma)), token)) return true;
    if (comma == std::string_view::npos) return false;
    list.remove_prefix(comma + 1);
  }
}

bool is_host_value(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return is_visible(c) && std::string_view("/?#@\\\"<>^`{|}").find(c) == std::string_view::npos;
  });
}

bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_token_char);
}

bool is_field_value(std::string_view text) {
  return trimmed(text).size() == text.size() && std::all_of(text.begin(), text.end(), is_text);
}

}  // namespace tailward::http
