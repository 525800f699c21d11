#include "base/units.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

namespace tailward {
namespace {

struct UnitFactor {
  std::string_view name;
  double factor;
};

// Splits "1.5ms" into 1.5 and "ms"; false when there is no finite, non-negative number at the
// start.
bool split(std::string_view text, double& value, std::string_view& unit) {
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value, std::chars_format::fixed);
  if (error != std::errc{} || !std::isfinite(value) || value < 0) return false;
  unit = std::string_view(rest, static_cast<std::size_t>(end - rest));
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  return true;
}

template <std::size_t N>
const UnitFactor* find_unit(const std::array<UnitFactor, N>& units, std::string_view name) {
  for (const UnitFactor& unit : units) {
    if (unit.name == name) return &unit;
  }
  return nullptr;
}

}  // namespace

Result<Duration> parse_duration(std::string_view text) {
  static constexpr std::array<UnitFactor, 8> kUnits{{{"ns", 1},
                                                     {"us", 1e3},
                                                     {"µs", 1e3},
                                                     {"ms", 1e6},
                                                     {"s", 1e9},
                                                     {"m", 60e9},
                                                     {"min", 60e9},
                                                     {"h", 3600e9}}};
  const std::string hint = "write a number and a unit: 250us, 10ms, 1.5s, 2m, 1h";
  double value = 0;
  std::string_view unit_name;
  if (!split(text, value, unit_name)) {
    return fail(ErrorKind::kInvalid, fmt::format("'{}' is not a duration", text), hint);
  }
  if (unit_name.empty() && value == 0) return Duration{0};
  const UnitFactor* unit = find_unit(kUnits, unit_name);
  if (unit == nullptr) {
    return fail(ErrorKind::kInvalid,
                fmt::format("'{}' has {} unit", text, unit_name.empty() ? "no" : "an unknown"),
                hint);
  }
  // A double has 53 bits: exact to a nanosecond up to 104 days, and longer durations are typed in
  // hours.
  const double ns = value * unit->factor;
  if (ns > static_cast<double>(kForever.count())) {
    return fail(ErrorKind::kInvalid, fmt::format("'{}' is too long", text), hint);
  }
  return Duration{static_cast<std::int64_t>(std::llround(ns))};
}

Result<std::uint64_t> parse_size(std::string_view text) {
  static constexpr std::array<UnitFactor, 11> kUnits{{{"", 1},
                                                      {"B", 1},
                                                      {"KiB", 1024},
                                                      {"MiB", 1024.0 * 1024},
                                                      {"GiB", 1024.0 * 1024 * 1024},
                                                      {"K", 1024},
                                                      {"M", 1024.0 * 1024},
                                                      {"G", 1024.0 * 1024 * 1024},
                                                      {"kB", 1e3},
                                                      {"MB", 1e6},
                                                      {"GB", 1e9}}};
  const std::string hint = "write a number of bytes, or one with a unit: 512, 64KiB, 10MB";
  double value = 0;
  std::string_view unit_name;
  const UnitFactor* unit = split(text, value, unit_name) ? find_unit(kUnits, unit_name) : nullptr;
  // Far beyond any memory or disk, and safe to add up in 64 bits.
  if (unit == nullptr || value * unit->factor > 0x1.0p62) {
    return fail(ErrorKind::kInvalid, fmt::format("'{}' is not a size", text), hint);
  }
  return static_cast<std::uint64_t>(std::llround(value * unit->factor));
}

Result<double> parse_share(std::string_view text) {
  double value = 0;
  std::string_view unit;
  const bool number = split(text, value, unit);
  if (number && unit == "%") value /= 100;
  if (!number || (!unit.empty() && unit != "%") || value > 1) {
    return fail(ErrorKind::kInvalid, fmt::format("'{}' is not a share", text),
                "write a percentage or a number from 0 to 1: 5%, 0.05");
  }
  return value;
}

Result<double> parse_percentile(std::string_view text) {
  const bool named = text.starts_with('p') || text.starts_with('P');
  double value = 0;
  std::string_view rest;
  const bool number = split(named ? text.substr(1) : text, value, rest) && rest.empty();
  // 99.9 % is 0.999, whatever the division by 100 made of it.
  constexpr double kDigits = 1e12;
  value = std::round((named ? value / 100 : value) * kDigits) / kDigits;
  if (!number || value <= 0 || value >= 1) {
    return fail(ErrorKind::kInvalid, fmt::format("'{}' is not a percentile", text),
                "write p50, p99, p99.9 or a number between 0 and 1");
  }
  return value;
}

std::string format_percentile(double quantile) { return fmt::format("p{:.12g}", quantile * 100); }

std::string format_duration(Duration duration) {
  const double ns = static_cast<double>(duration.count());
  const auto three = [](double value, std::string_view unit) {
    // The limits are where rounding would add a fourth digit.
    const double magnitude = std::abs(value);
    const int decimals = magnitude < 9.995 ? 2 : magnitude < 99.95 ? 1 : 0;
    return fmt::format("{:.{}f} {}", value, decimals, unit);
  };
  const double size = std::abs(ns);
  if (size < 1e3) return fmt::format("{} ns", duration.count());
  // Half a unit below the next one: 999.6 µs is written as 1.00 ms, never as 1000 µs.
  if (size < 999.5e3) return three(ns / 1e3, "µs");
  if (size < 999.5e6) return three(ns / 1e6, "ms");
  return three(ns / 1e9, "s");
}

std::string format_share(double share) { return fmt::format("{:.1f} %", share * 100); }

std::string format_count(std::uint64_t count) {
  std::string digits = fmt::format("{}", count);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

}  // namespace tailward
