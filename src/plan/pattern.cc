#include "plan/pattern.h"

#include <fmt/format.h>

#include <algorithm>

namespace tailward::plan {
namespace {

bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// What follows a "$"; takes it from `rest`.
std::optional<std::string> nginx_name(std::string_view& rest) {
  const bool braced = rest.starts_with('{');
  if (braced) rest.remove_prefix(1);
  const auto end = std::find_if_not(rest.begin(), rest.end(), is_name);
  std::string name(rest.begin(), end);
  rest.remove_prefix(name.size());
  if (braced && !rest.starts_with('}')) return std::nullopt;
  if (braced) rest.remove_prefix(1);
  if (name.empty()) return std::nullopt;
  return name;
}

// What follows a "%", up to the next one outside of parentheses.
std::optional<std::string> envoy_name(std::string_view& rest) {
  int depth = 0;
  for (std::size_t at = 0; at < rest.size(); ++at) {
    depth += rest[at] == '(' ? 1 : rest[at] == ')' ? -1 : 0;
    if (rest[at] != '%' || depth > 0) continue;
    std::string name(rest.substr(0, at));
    rest.remove_prefix(at + 1);
    return name;
  }
  return std::nullopt;
}

}  // namespace

Result<Pattern> Pattern::parse(std::string_view format, Dialect dialect) {
  const bool nginx = dialect == Dialect::kNginx;
  const char sign = nginx ? '$' : '%';
  Pattern pattern;
  std::string text;
  for (std::string_view rest = format; !rest.empty();) {
    const char c = rest.front();
    rest.remove_prefix(1);
    if (c != sign) {
      text += c;
      continue;
    }
    if (!nginx && rest.starts_with('%')) {  // %% is a percent sign
      text += c;
      rest.remove_prefix(1);
      continue;
    }
    std::optional<std::string> name = nginx ? nginx_name(rest) : envoy_name(rest);
    if (!name) {
      return fail(ErrorKind::kInvalid, fmt::format("a {} without a variable in the format", sign),
                  nginx ? "as in nginx's log_format: $request_time or ${request_time}"
                        : "as in Envoy's access logs: %DURATION%");
    }
    if (!pattern.names_.empty() && text.empty()) {
      return fail(ErrorKind::kInvalid,
                  fmt::format("nothing stands between {} and {} in the format",
                              pattern.names_.back(), *name),
                  "no reader could tell where the one ends");
    }
    pattern.texts_.push_back(std::move(text));
    text.clear();
    pattern.names_.push_back(std::move(*name));
  }
  if (pattern.names_.empty()) {
    return fail(ErrorKind::kInvalid, "there is no variable in the format",
                nginx ? "give it as in nginx's log_format: '$remote_addr … $request_time'"
                      : "give it as in Envoy's configuration: '[%START_TIME%] … %DURATION%'");
  }
  pattern.texts_.push_back(std::move(text));
  return pattern;
}

std::optional<std::size_t> Pattern::index_of(std::string_view variable) const {
  const auto found = std::find(names_.begin(), names_.end(), variable);
  if (found == names_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - names_.begin());
}

std::optional<std::string_view> Pattern::find(std::string_view line, std::size_t index) const {
  if (!line.starts_with(texts_[0])) return std::nullopt;
  line.remove_prefix(texts_[0].size());
  for (std::size_t at = 0;; ++at) {
    const std::string& after = texts_[at + 1];
    const bool rest = at + 1 == names_.size() && after.empty();
    const std::size_t end = rest ? line.size() : line.find(after);
    if (end == std::string_view::npos) return std::nullopt;
    if (at == index) return line.substr(0, end);
    line.remove_prefix(end + after.size());
  }
}

}  // namespace tailward::plan
