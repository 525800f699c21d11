#include "hedge/planning/policy.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <charconv>
#include <cmath>

#include "base/units.h"

namespace tailward::hedge {
namespace {

constexpr const char* kTooLate = "its last hedge would come more than an hour late";
constexpr const char* kForms =
    "one of: off, fixed:50ms, quantile:0.95, adaptive:p99; a further :N sends up to N hedges";

std::string_view take(std::string_view& rest) {
  const std::size_t colon = rest.find(':');
  const std::string_view head = rest.substr(0, colon);
  rest = colon == std::string_view::npos ? std::string_view() : rest.substr(colon + 1);
  return head;
}

tl::unexpected<Error> bad(std::string_view text, std::string_view why) {
  return fail(ErrorKind::kInvalid, fmt::format("policy '{}': {}", text, why), kForms);
}

// In milliseconds, to the nanosecond.
std::string exact_ms(Duration duration) {
  const std::int64_t ns = duration.count();
  std::string text = fmt::format("{}.{:06}", ns / 1'000'000, ns % 1'000'000);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text + "ms";
}

// As few digits as tell it from every other number, and no exponent, which parse_share() does not
// read.
std::string exact_share(double share) {
  std::array<char, 400> digits{};
  const auto [end, error] =
      std::to_chars(digits.data(), digits.data() + digits.size(), share, std::chars_format::fixed);
  return {digits.data(), error == std::errc{} ? end : digits.data()};
}

}  // namespace

Result<Policy> parse_policy(std::string_view text) {
  Policy policy;
  if (text == "off") return policy;
  if (text.ends_with(':')) return bad(text, "something is missing after the last colon");
  std::string_view rest = text;
  const std::string_view kind = take(rest);
  const std::string_view value = take(rest);
  if (kind == "fixed") {
    policy.kind = Policy::Kind::kFixed;
    const Result<Duration> delay = parse_duration(value);
    if (!delay) return bad(text, delay.error().message);
    if (*delay > kLastHedgeMax) return bad(text, kTooLate);
    policy.delay = *delay;
  } else if (kind == "quantile") {
    policy.kind = Policy::Kind::kQuantile;
    const Result<double> quantile = parse_share(value);
    if (!quantile || *quantile <= 0 || *quantile >= 1) {
      return bad(text, "the quantile must lie between 0 and 1");
    }
    // 99.9 % is 0.999, whatever the division by 100 made of it.
    constexpr double kDigits = 1e12;
    const double rounded = std::round(*quantile * kDigits) / kDigits;
    policy.quantile = value.ends_with('%') && rounded > 0 && rounded < 1 ? rounded : *quantile;
  } else if (kind == "adaptive") {
    policy.kind = Policy::Kind::kAdaptive;
    policy.copies = kAdaptiveCopiesMax;
    if (!value.empty()) {
      const Result<double> goal = parse_percentile(value);
      if (!goal) return bad(text, goal.error().message);
      policy.goal = *goal;
    }
  } else {
    return bad(text, "unknown");
  }
  if (!rest.empty()) {
    const auto [end, error] =
        std::from_chars(rest.data(), rest.data() + rest.size(), policy.copies);
    if (error != std::errc{} || end != rest.data() + rest.size() || policy.copies < 1 ||
        policy.copies > kHedgesMax) {
      return bad(text, fmt::format("hedges of one request must be 1 to {}", kHedgesMax));
    }
    if (policy.kind == Policy::Kind::kAdaptive && policy.copies > kAdaptiveCopiesMax) {
      return bad(text, "adaptive plans one or two hedges of one request");
    }
  }
  if (policy.delay * policy.copies > kLastHedgeMax) return bad(text, kTooLate);
  return policy;
}

std::string to_string(const Policy& policy) {
  const std::string copies = policy.copies == 1 ? "" : fmt::format(":{}", policy.copies);
  switch (policy.kind) {
    case Policy::Kind::kOff:
      return "off";
    case Policy::Kind::kFixed:
      return fmt::format("fixed:{}{}", exact_ms(policy.delay), copies);
    case Policy::Kind::kQuantile:
      return fmt::format("quantile:{}{}", exact_share(policy.quantile), copies);
    case Policy::Kind::kAdaptive:
      return fmt::format("adaptive:{}{}", format_percentile(policy.goal),
                         policy.copies == kAdaptiveCopiesMax ? "" : ":1");
  }
  return "off";
}

void PlanBoard::publish(const Plan& plan) {
  const std::uint64_t version = version_.load(std::memory_order_relaxed);
  version_.store(version + 1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  const auto put = [this](std::size_t word, std::uint64_t value) {
    words_[word].store(value, std::memory_order_relaxed);
  };
  put(0, static_cast<std::uint64_t>(plan.stages));
  put(1, static_cast<std::uint64_t>(plan.fresh_median.count()));
  for (std::size_t i = 0; i < kHedgesMax; ++i) {
    put(2 + 2 * i, static_cast<std::uint64_t>(plan.stage[i].delay.count()));
    put(3 + 2 * i, std::bit_cast<std::uint64_t>(plan.stage[i].probability));
  }
  version_.store(version + 2, std::memory_order_release);
}

Plan PlanBoard::read() const {
  for (;;) {
    const std::uint64_t before = version_.load(std::memory_order_acquire);
    Plan plan;
    const auto get = [this](std::size_t word) {
      return words_[word].load(std::memory_order_relaxed);
    };
    plan.stages = static_cast<int>(get(0));
    plan.fresh_median = Duration{static_cast<std::int64_t>(get(1))};
    for (std::size_t i = 0; i < kHedgesMax; ++i) {
      plan.stage[i].delay = Duration{static_cast<std::int64_t>(get(2 + 2 * i))};
      plan.stage[i].probability = std::bit_cast<double>(get(3 + 2 * i));
    }
    std::atomic_thread_fence(std::memory_order_acquire);
    if ((before & 1) == 0 && version_.load(std::memory_order_relaxed) == before) return plan;
  }
}

}  // namespace tailward::hedge
