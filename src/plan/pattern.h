// The format of an access log, as its server's configuration gives it, and how to find one of its
// variables in a line.
//
// Thread safety: a const Pattern may be shared.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tailward::plan {

// nginx writes variables as $name or ${name} (ngx_http_log_module), Envoy as %NAME%, %NAME(…)% or
// %NAME(…):9% (access log command operators).
enum class Dialect { kNginx, kEnvoy };

class Pattern {
 public:
  // kInvalid: no variable, two without anything between them, or a % that does not end.
  static Result<Pattern> parse(std::string_view format, Dialect dialect);

  [[nodiscard]] const std::vector<std::string>& variables() const { return names_; }
  [[nodiscard]] std::optional<std::size_t> index_of(std::string_view variable) const;
  // What stands in `line` for the variable of that index: each variable ends where the text after
  // it first comes. Empty: the line is not of this form up to there. REQUIRES: index <
  // variables().size().
  [[nodiscard]] std::optional<std::string_view> find(std::string_view line,
                                                     std::size_t index) const;

 private:
  std::vector<std::string> names_;
  std::vector<std::string> texts_;  // before each variable, and after the last one
};

}  // namespace tailward::plan
