#include "lab/hedging/drift.h"

#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "lab/checks.h"
#include "lab/hedging/drift_result.h"
#include "lab/hedging/drift_run.h"
#include "lab/hedging/merge.h"

namespace tailward::lab {
namespace {

using namespace std::chrono_literals;
using Kind = hedge::Policy::Kind;

// A claim that something happens, within a time.
report::Check check_within(std::string name, const std::optional<Duration>& took, Duration bound) {
  report::Check check;
  check.name = std::move(name);
  check.ok = took && *took < bound;
  check.value = took ? fmt::format("{:.0f}", to_ms(*took)) : "never";
  check.bound = fmt::format("< {:.0f}", to_ms(bound));
  if (took) check.number = to_ms(*took);
  return check;
}

// A claim about a figure. It is missing, and the claim fails, when what it measures never began.
report::Check check_ratio(std::string name, const std::optional<double>& value, bool above,
                          double bound) {
  if (value) {
    return above ? check_above(std::move(name), *value, bound)
                 : check_below(std::move(name), *value, bound);
  }
  report::Check check;
  check.name = std::move(name);
  check.value = "–";
  check.bound = fmt::format("{} {}", above ? '>' : '<', bound);
  return check;
}

Result<DriftResult> run(Context& context) {
  DriftResult result;
  const std::vector<DriftSpec> specs{
      {"fixed", {.kind = Kind::kFixed, .delay = 10ms}},
      {"quantile", {.kind = Kind::kQuantile, .quantile = 0.95}},
      {"adaptive", {.kind = Kind::kAdaptive, .goal = 0.99, .copies = hedge::kAdaptiveCopiesMax}}};
  for (int run = 0; run < context.runs && !context.stopped(); ++run) {
    for (std::size_t i = 0; i < specs.size() && !context.stopped(); ++i) {
      Result<DriftRun> arm = run_drift_arm(specs[i], drift_plan(context.quick),
                                           context.seed + static_cast<std::uint64_t>(run), context);
      if (!arm) return fail(arm.error());
      if (arm->arm.requests == 0 && context.stopped()) break;
      if (run == 0) {
        result.arms.push_back(std::move(*arm));
      } else {
        merge(result.arms[i].drift, arm->drift);
        merge(result.arms[i].arm, std::move(arm->arm));
      }
    }
  }
  result.partial = context.stopped();
  for (const DriftRun& run : result.arms) {
    if (run.arm.name != "adaptive") continue;
    result.checks = drift_checks(run.drift);
    result.verdict = run.arm.verdict;
  }
  std::uint64_t failed = 0;
  for (const DriftRun& run : result.arms) failed += run.drift.unexpected_failures;
  result.checks.push_back(
      check_below("every other request was answered (failed)", static_cast<double>(failed), 1));
  result.notes.push_back(fmt::format(
      "Three servers, {} requests/s in an open loop, response time from the intended start; "
      "budget {:.0f} %. The bars are the adaptive arm's; the others stand beside it.",
      kDriftPerSecond, kDriftBudget * 100));
  return result;
}

}  // namespace

std::vector<PhasePlan> drift_plan(bool quick) {
  // The warm-up covers the adaptive policy's trial of hedging, up to 24 s with hedging off half of
  // the time.
  return {{"warm-up", 30s},
          {"healthy", 10s},
          {"brown-out", quick ? 8s : 60s, DriftFault::kAllSlow},
          {"recovered", 10s},
          {"one-slow", 12s, DriftFault::kOneSlow},
          {"healed", 10s},
          {"low-traffic", 12s, DriftFault::kNone, 0.1},
          {"traffic-back", 4s},
          {"all-fail", 6s, DriftFault::kAllFail},
          {"after-fail", 8s}};
}

std::vector<report::Check> drift_checks(const Drift& adaptive) {
  std::optional<double> late = adaptive.brownout_late_load;
  if (const DriftPhase* healthy = adaptive.find("healthy"); late && healthy != nullptr) {
    late = ratio(*late, healthy->extra_load());
  }
  return {
      check_within("brown-out: hedging stops after (ms)", adaptive.brownout_stop, kStopWithin),
      check_ratio("and stays off: extra load (times the healthy)", late, false, 0.1),
      check_within("recovery: hedging is back after (ms)", adaptive.back_after, kBackWithin),
      check_ratio("one slow host: P99 from 3 s on (times the healthy)", adaptive.one_slow_ratio(),
                  false, 1.5),
      check_within("that host is on probation after (ms)", adaptive.probation_after, kSettledAfter),
      check_ratio("and stays there until it heals (share of the time)", adaptive.probation_share,
                  true, 0.9),
      check_within("and off it, once healed, after (ms)", adaptive.probation_over_after, 10s),
      check_ratio("a tenth of the traffic: extra load (times the healthy)",
                  adaptive.load_ratio("low-traffic"), true, 0.25),
      check_ratio("all fail: hedges (times what the budget allows)", adaptive.all_fail_spent(),
                  false, 1.001)};
}

Experiment drift() {
  return {
      .name = "drift",
      .title = "When the service drifts: does hedging notice, and let go?",
      .about = "a brown-out, a slow host, little traffic, failing hosts: how hedging takes each",
      .arms = {"fixed", "quantile", "adaptive"},
      .about_time = "about 8 min, 6 with --quick",
      .run = [](Context& context) { return any_result(run(context)); }};
}

}  // namespace tailward::lab
