#include "plan/value.h"

#include <array>
#include <charconv>
#include <cmath>

namespace tailward::plan {
namespace {

struct Named {
  std::string_view name;
  Unit unit;
};
// The two signs that look like µ.
constexpr std::array<Named, 6> kUnits{{{"ns", Unit::kNs},
                                       {"us", Unit::kUs},
                                       {"\xc2\xb5s", Unit::kUs},
                                       {"\xce\xbcs", Unit::kUs},
                                       {"ms", Unit::kMs},
                                       {"s", Unit::kS}}};

constexpr Duration kLongest = std::chrono::hours(24);

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

}  // namespace

std::string_view to_string(Unit unit) {
  switch (unit) {
    case Unit::kNs:
      return "ns";
    case Unit::kUs:
      return "us";
    case Unit::kMs:
      return "ms";
    case Unit::kS:
      break;
  }
  return "s";
}

Duration one(Unit unit) {
  switch (unit) {
    case Unit::kNs:
      return Duration{1};
    case Unit::kUs:
      return std::chrono::microseconds(1);
    case Unit::kMs:
      return std::chrono::milliseconds(1);
    case Unit::kS:
      break;
  }
  return std::chrono::seconds(1);
}

std::optional<Unit> parse_unit(std::string_view text) {
  for (const Named& named : kUnits) {
    if (named.name == text) return named.unit;
  }
  return std::nullopt;
}

std::string_view to_string(Skip why) {
  switch (why) {
    case Skip::kNone:
      break;
    case Skip::kNoValue:
      return "has no value";
    case Skip::kNoColumn:
      return "has fewer columns";
    case Skip::kNoMatch:
      return "is not of this form";
    case Skip::kNoNumber:
      return "is not a number";
    case Skip::kNotFinite:
      return "is not a finite number";
    case Skip::kNegative:
      return "is negative";
    case Skip::kTooLong:
      return "is out of range";
    case Skip::kDamaged:
      return "is not a histogram that can be decoded";
  }
  return "is good";
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

Value parse_value(std::string_view text, Unit bare) {
  text = trimmed(text);
  if (text.empty() || text == "-") return {.skip = Skip::kNoValue};
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc::result_out_of_range) return {.skip = Skip::kTooLong};
  if (error != std::errc{}) return {.skip = Skip::kNoNumber};
  Unit unit = bare;
  const bool own_unit = rest != end;
  if (own_unit) {
    const std::optional<Unit> named =
        parse_unit(trimmed({rest, static_cast<std::size_t>(end - rest)}));
    if (!named) return {.skip = Skip::kNoNumber};
    unit = *named;
  }
  if (!std::isfinite(number)) return {.skip = Skip::kNotFinite};
  if (number < 0) return {.skip = Skip::kNegative};
  const double ns = number * static_cast<double>(one(unit).count());
  if (ns > static_cast<double>(kLongest.count())) return {.skip = Skip::kTooLong};
  return {.latency = Duration{std::llround(ns)}, .own_unit = own_unit};
}

}  // namespace tailward::plan
