#include "http/text.h"

#include "http/codec.h"
#include "http/message.h"

namespace tailward::http {

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

bool is_token(std::string_view text) { return !text.empty() && all_are(kTokenChar, text); }

bool is_field_value(std::string_view text) {
  return trimmed(text).size() == text.size() && all_are(kTextChar, text);
}

}  // namespace tailward::http
