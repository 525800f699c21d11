#include "http/message.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "http/text.h"

namespace tailward::http {

bool equals_ignoring_case(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i] && to_lower(a[i]) != to_lower(b[i])) return false;
  }
  return true;
}

void Fields::add(std::string_view name, std::string_view value) {
  const std::size_t at = text_.size();
  TAILWARD_CHECK(at + name.size() + value.size() <= UINT32_MAX);
  text_.append(name);
  text_.append(value);
  spans_.push_back({static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(name.size()),
                    static_cast<std::uint32_t>(value.size())});
}

void Fields::set(std::string_view name, std::string_view value) {
  remove(name);
  add(name, value);
}

std::size_t Fields::remove(std::string_view name) {
  if (!find(name)) return 0;
  return remove_if([name](const Field& field) { return equals_ignoring_case(field.name, name); });
}

std::optional<std::string_view> Fields::find(std::string_view name) const {
  for (std::size_t i = 0; i < spans_.size(); ++i) {
    const Field field = at(i);
    if (equals_ignoring_case(field.name, name)) return field.value;
  }
  return std::nullopt;
}

std::size_t Fields::count(std::string_view name) const {
  std::size_t found = 0;
  for (std::size_t i = 0; i < spans_.size(); ++i) {
    if (equals_ignoring_case(at(i).name, name)) ++found;
  }
  return found;
}

bool Fields::has_token(std::string_view name, std::string_view token) const {
  for (std::size_t i = 0; i < spans_.size(); ++i) {
    const Field field = at(i);
    if (equals_ignoring_case(field.name, name) && list_has_token(field.value, token)) return true;
  }
  return false;
}

Fields::Field Fields::at(std::size_t index) const {
  TAILWARD_CHECK(index < spans_.size());
  const Span& span = spans_[index];
  const char* name = text_.data() + span.at;
  return {{name, span.name_size}, {name + span.name_size, span.value_size}};
}

void Fields::clear() {
  text_.clear();
  spans_.clear();
}

void Fields::reserve(std::size_t bytes, std::size_t fields) {
  text_.reserve(bytes);
  spans_.reserve(fields);
}

Fields::Span Fields::moved(Span span, std::size_t at) {
  if (span.at == at) return span;
  std::memmove(text_.data() + at, text_.data() + span.at, span.name_size + span.value_size);
  span.at = static_cast<std::uint32_t>(at);
  return span;
}

bool is_safe(std::string_view method) {
  return method == "GET" || method == "HEAD" || method == "OPTIONS" || method == "TRACE";
}

bool is_idempotent(std::string_view method) {
  return is_safe(method) || method == "PUT" || method == "DELETE";
}

std::string_view reason_phrase(int status) {
  // RFC 9110 §15, RFC 6585, RFC 7725; sorted.
  static constexpr auto kPhrases = std::to_array<std::pair<int, std::string_view>>({
      {100, "Continue"},
      {101, "Switching Protocols"},
      {102, "Processing"},
      {103, "Early Hints"},
      {200, "OK"},
      {201, "Created"},
      {202, "Accepted"},
      {203, "Non-Authoritative Information"},
      {204, "No Content"},
      {205, "Reset Content"},
      {206, "Partial Content"},
      {300, "Multiple Choices"},
      {301, "Moved Permanently"},
      {302, "Found"},
      {303, "See Other"},
      {304, "Not Modified"},
      {305, "Use Proxy"},
      {307, "Temporary Redirect"},
      {308, "Permanent Redirect"},
      {400, "Bad Request"},
      {401, "Unauthorized"},
      {402, "Payment Required"},
      {403, "Forbidden"},
      {404, "Not Found"},
      {405, "Method Not Allowed"},
      {406, "Not Acceptable"},
      {407, "Proxy Authentication Required"},
      {408, "Request Timeout"},
      {409, "Conflict"},
      {410, "Gone"},
      {411, "Length Required"},
      {412, "Precondition Failed"},
      {413, "Content Too Large"},
      {414, "URI Too Long"},
      {415, "Unsupported Media Type"},
      {416, "Range Not Satisfiable"},
      {417, "Expectation Failed"},
      {421, "Misdirected Request"},
      {422, "Unprocessable Content"},
      {425, "Too Early"},
      {426, "Upgrade Required"},
      {428, "Precondition Required"},
      {429, "Too Many Requests"},
      {431, "Request Header Fields Too Large"},
      {451, "Unavailable For Legal Reasons"},
      {500, "Internal Server Error"},
      {501, "Not Implemented"},
      {502, "Bad Gateway"},
      {503, "Service Unavailable"},
      {504, "Gateway Timeout"},
      {505, "HTTP Version Not Supported"},
      {511, "Network Authentication Required"},
  });
  const auto* at = std::lower_bound(kPhrases.begin(), kPhrases.end(), status,
                                    [](const auto& entry, int code) { return entry.first < code; });
  return at != kPhrases.end() && at->first == status ? at->second : std::string_view{};
}

}  // namespace tailward::http
