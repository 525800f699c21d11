// When to hedge: what the user asks for (Policy) and what the engine makes of it (Plan).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"

namespace tailward::hedge {

inline constexpr int kHedgesMax = 4;                              // of one request
inline constexpr int kAttemptsMax = 1 + kHedgesMax;               // the primary and its hedges
inline constexpr int kAdaptiveCopiesMax = 2;                      // stages that the planner plans
inline constexpr Duration kLastHedgeMax = std::chrono::hours(1);  // after the start

struct Policy {
  enum class Kind {
    kOff,       // nothing is ever hedged
    kFixed,     // the n-th hedge n × `delay` after the start
    kQuantile,  // the same, with the `quantile` of first attempts as the delay, learned
    kAdaptive,  // what makes the `goal` quantile of requests smallest within the budget
  };
  Kind kind = Kind::kOff;
  Duration delay{};        // kFixed
  double quantile = 0.95;  // kQuantile
  double goal = 0.99;      // kAdaptive
  int copies = 1;          // hedges of one request, 1…kHedgesMax; kAdaptive: 1 or 2
};

// "off", "fixed:50ms", "fixed:50ms:2", "quantile:0.95", "quantile:0.95:2", "adaptive" (two copies
// towards P99), "adaptive:p99.9", "adaptive:p99:1". kInvalid with the forms as hint, also when the
// last hedge would come later than kLastHedgeMax.
Result<Policy> parse_policy(std::string_view text);
// What parse_policy() reads as the same policy.
std::string to_string(const Policy& policy);

// What to do for one request, stage by stage: at `delay` after its start, if it is still
// unanswered, send one more attempt with probability `probability`.
struct Stage {
  Duration delay{};
  double probability = 1;
};

struct Plan {
  int stages = 0;  // 0: do not hedge
  std::array<Stage, kHedgesMax> stage{};
  // What a fresh attempt usually needs (the median of first attempts): a hedge that could not make
  // the caller's deadline is not sent. 0 while unknown.
  Duration fresh_median{};
};

// Where a planner leaves its plan for the hot path: a sequence lock over a fixed-size copy.
//
// Thread safety: one writer, any number of readers, which never block the writer and never
// allocate; a reader retries while a write is under way. (H.-J. Boehm, "Can seqlocks get along with
// programming language memory models?", MSPC 2012: the data are relaxed atomics, so there is no
// race.)
class PlanBoard {
 public:
  PlanBoard() { publish(Plan{}); }
  void publish(const Plan& plan);
  [[nodiscard]] Plan read() const;

 private:
  static constexpr std::size_t kWords = 2 + 2 * kHedgesMax;
  std::atomic<std::uint64_t> version_{0};
  std::array<std::atomic<std::uint64_t>, kWords> words_{};
};

}  // namespace tailward::hedge
