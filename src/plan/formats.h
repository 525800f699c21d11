// The kinds of logs that are understood, and how one is told from another.
//
// Thread safety: none; one log on one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "plan/samples.h"

namespace tailward::plan {

struct ReadOptions {
  // "auto", "list", "csv", "nginx", "envoy", "hdr"; "nginx:FORMAT" and "envoy:FORMAT" with the
  // server's own format of the access log.
  std::string format = "auto";
  std::optional<Unit> unit = {};  // none: what is usual for the format
  // A column of a CSV file, by name or number; a variable of an access log; a tag of an
  // HdrHistogram log.
  std::string column = {};
};

// One log: what it is, and how its lines become latencies.
class LogFormat {
 public:
  virtual ~LogFormat() = default;

  // Takes the next line. An error ends the reading.
  virtual Result<void> take(std::string_view line, std::uint64_t number, Recorder& into) = 0;
  // There are no more lines.
  virtual Result<void> end() { return {}; }

  std::string name;        // "list", "csv", …
  std::string understood;  // "nginx access log, $request_time"
  Unit unit = Unit::kMs;   // of what carries none
};

// How many lines at the start of a log are looked at.
inline constexpr std::size_t kFirstLines = 50;

// The format of a log that starts with these lines: what the options say or, for "auto", what fits.
// kInvalid: none does, the lines have no latency, or there is no such column (the error lists those
// there are).
Result<std::unique_ptr<LogFormat>> choose_format(const ReadOptions& options,
                                                 std::span<const std::string> first_lines);

// Made by choose_format(); each asks the first lines whether it fits, and complains if not.
Result<std::unique_ptr<LogFormat>> make_csv(const ReadOptions& options,
                                            std::span<const std::string> first_lines);
Result<std::unique_ptr<LogFormat>> make_access_log(const ReadOptions& options,
                                                   std::span<const std::string> first_lines);
Result<std::unique_ptr<LogFormat>> make_hdr(const ReadOptions& options,
                                            std::span<const std::string> first_lines);

// What the formats look like.
bool looks_like_csv(std::span<const std::string> first_lines);
bool looks_like_envoy(std::string_view line);
bool looks_like_access_log(std::string_view line);
bool looks_like_hdr(std::string_view line);

}  // namespace tailward::plan
