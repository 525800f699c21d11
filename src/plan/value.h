// A latency as logs write it.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/time.h"

namespace tailward::plan {

enum class Unit : std::uint8_t { kNs, kUs, kMs, kS };

std::string_view to_string(Unit unit);
Duration one(Unit unit);
// "ns", "us" or "µs", "ms", "s"; case counts.
std::optional<Unit> parse_unit(std::string_view text);

// Why something gave no latency.
enum class Skip : std::uint8_t {
  kNone,
  kNoValue,    // empty, or "-"
  kNoColumn,   // the line has fewer columns
  kNoMatch,    // the line is not of the log's form
  kNoNumber,   // something else than a number, perhaps with a unit
  kNotFinite,  // NaN, infinity
  kNegative,
  kTooLong,  // over a day, or no number that a computer can hold
  kDamaged,  // a histogram that cannot be decoded
};
inline constexpr std::size_t kSkipCount = 9;

// As the end of a sentence: "is not a number", …
std::string_view to_string(Skip why);

struct Value {
  Duration latency{};
  bool own_unit = false;  // the text says its unit
  Skip skip = Skip::kNone;
};

// "12.5", "1e-3", "12.5ms", "800 us", "1.2s"; without a unit in `bare`. Blanks around it are
// nothing.
Value parse_value(std::string_view text, Unit bare);

// The same without blanks, carriage returns and tabs at either end.
std::string_view trimmed(std::string_view text);

}  // namespace tailward::plan
