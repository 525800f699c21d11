#include "lab/checks.h"

#include <fmt/format.h>

#include <utility>

namespace tailward::lab {
namespace {

std::string format_number(double value) { return fmt::format("{:.3g}", value); }

report::Check make_check(std::string name, bool ok, double value, std::string bound) {
  report::Check check;
  check.name = std::move(name);
  check.ok = ok;
  check.value = format_number(value);
  check.bound = std::move(bound);
  check.number = value;
  return check;
}

}  // namespace

double ratio(double value, double base) { return base > 0 ? value / base : 0; }

report::Check check_above(std::string name, double value, double bound) {
  return make_check(std::move(name), value > bound, value, "> " + format_number(bound));
}

report::Check check_below(std::string name, double value, double bound) {
  return make_check(std::move(name), value < bound, value, "< " + format_number(bound));
}

report::Check check_between(std::string name, double value, double low, double high) {
  return make_check(std::move(name), value >= low && value <= high, value,
                    fmt::format("{} to {}", format_number(low), format_number(high)));
}

}  // namespace tailward::lab
