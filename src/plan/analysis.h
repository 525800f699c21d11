// What hedging policies would do to a log's latencies and to the load, and what fan-out does.
//
// The model: an attempt elsewhere takes as long as any other attempt, whatever the first one met
// (hedge/planning/planner.h). A log cannot tell whether that is so: where both attempts wait for
// the same lock, query or size, hedging gains nothing. Reports have to say it.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "hedge/planning/planner.h"
#include "plan/read.h"
#include "plan/signatures.h"
#include "stats/curve.h"

namespace tailward::plan {

struct PlanOptions {
  double goal = 0.99;
  double budget = 0.05;      // hedges per request
  std::uint64_t fanout = 0;  // a number of calls to show beside the usual ones; 0: none
};

struct Forecast {
  std::string name;  // "off", "static", "quantile", "adaptive"
  hedge::Plan plan;
  double extra_load = 0;
  stats::Curve curve;
};

// One request that makes n calls at once and needs all of their responses.
struct FanoutRow {
  std::uint64_t n = 1;
  double slow_share = 0;  // of its requests have at least one call beyond the single call's P99
  std::optional<Duration> p50;
  std::optional<Duration> p99;
  // The same when each call is hedged by the adaptive plan.
  double hedged_slow_share = 0;
  std::optional<Duration> hedged_p50;
  std::optional<Duration> hedged_p99;
};

class Analysis {
 public:
  Analysis(const Reading& reading, const PlanOptions& options);

  [[nodiscard]] const PlanOptions& options() const { return options_; }
  [[nodiscard]] const stats::Histogram& measured() const { return measured_; }
  // off, static, quantile, adaptive.
  [[nodiscard]] const std::vector<Forecast>& policies() const { return policies_; }
  [[nodiscard]] const Forecast& off() const { return policies_.front(); }
  [[nodiscard]] const Forecast& adaptive() const { return policies_.back(); }
  [[nodiscard]] bool within_budget(const Forecast& policy) const;
  // Within the budget, the policy with the smallest goal quantile; of those within 2 % of it, the
  // one with the smallest quantile ten times farther out; `off` where none gains 2 %.
  [[nodiscard]] const Forecast& best() const { return policies_[best_]; }
  [[nodiscard]] const std::vector<FanoutRow>& fanout() const { return fanout_; }
  [[nodiscard]] const SignatureSearch& signatures() const { return signatures_; }

  // Empty when the log is too short to know it: fewer than kBeyondMin latencies are longer, and the
  // interval of the same quantile without hedging has no upper end.
  static constexpr std::uint64_t kBeyondMin = 4;
  [[nodiscard]] std::optional<Duration> quantile(const Forecast& policy, double q) const;

 private:
  void add(std::string name, const hedge::Plan& plan);
  void choose_best();
  void fan_out();

  PlanOptions options_;
  stats::Histogram measured_;
  std::vector<Forecast> policies_;
  std::size_t best_ = 0;
  std::vector<FanoutRow> fanout_;
  SignatureSearch signatures_;
};

}  // namespace tailward::plan
