// A service that drifts: it slows down as a whole, one of its hosts slows down, its traffic falls,
// all its hosts fail, and each time it recovers. What does hedging do meanwhile, and how long does
// it take to notice?
//
// Plain values and pure functions; the run itself is in lab/drift_run.h. Times are counted from the
// start of the run.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "hedge/proof/verdict.h"
#include "report/report.h"
#include "stats/histogram.h"

namespace tailward::lab {

// A second without a hedge, where there were many: hedging has stopped.
inline constexpr Duration kHedgingQuiet = std::chrono::seconds(1);
// What a brown-out and a slow host may take to be noticed, before what follows is judged.
inline constexpr Duration kStopWithin = std::chrono::milliseconds(200);
inline constexpr Duration kSettledAfter = std::chrono::seconds(3);
inline constexpr Duration kBackWithin = std::chrono::seconds(5);

// One stretch of a run.
struct PhasePlan {
  enum class Fault { kNone, kAllSlow, kOneSlow, kAllFail };
  std::string name;
  Duration length{};
  Fault fault = Fault::kNone;
  double traffic = 1;  // times the usual
};
inline constexpr int kAllSlowBy = 3;
inline constexpr int kOneSlowBy = 10;

std::vector<PhasePlan> drift_plan(bool quick);

// So many hedges were sent since the sample before; `at` is when they were counted, up to the
// sampling interval later than they were sent.
struct HedgeSample {
  Duration at{};
  std::uint64_t count = 0;
};

struct ProbationChange {
  Duration at{};
  bool on = false;
};

// What happened in one phase. A request belongs to the phase in which it was meant to begin, a
// hedge to that in which it was sent.
struct DriftPhase {
  std::string name;
  Duration from{};  // when the servers had answered that the fault is there
  Duration to{};
  std::uint64_t requests = 0;
  std::uint64_t failed = 0;
  stats::Histogram latency;  // response time of the answered
  stats::Histogram settled;  // of those that began kSettledAfter or later in it
  std::uint64_t eligible = 0;
  std::uint64_t hedged = 0;  // because a delay had passed
  std::uint64_t hedges = 0;
  std::uint64_t attempts = 0;
  std::uint64_t brownouts = 0;           // that the route saw begin
  std::uint64_t slow_host_attempts = 0;  // to the host that is slow in "one-slow"

  [[nodiscard]] double extra_load() const;
  [[nodiscard]] double trigger_rate() const;
  [[nodiscard]] double slow_host_share() const;
  [[nodiscard]] double hedges_per_s() const;
};

struct DriftPoint {
  double seconds = 0;
  double trigger_rate = 0;
  double extra_load = 0;
  // Of the requests that ended in the slice; empty when none did.
  std::optional<double> p99_ms = {};
};

// One arm's run, and what its bars are about. What never happened, or could not be seen any more
// when the run ended early, is empty.
struct Drift {
  std::vector<DriftPhase> phases;
  std::vector<DriftPoint> timeline;
  std::vector<ProbationChange> probation;  // of the host that is slow in "one-slow"
  double budget_share = 0;
  double budget_burst = 0;                // of all runs together
  std::uint64_t delayed = 0;              // requests that began late for want of room
  std::uint64_t unexpected_failures = 0;  // failed while no server was told to fail

  // From the beginning of the brown-out to the last hedge before hedging stopped.
  std::optional<Duration> brownout_stop;
  // Hedges sent in the brown-out later than kStopWithin, for each of its requests.
  std::optional<double> brownout_late_load;
  // From its end to the first hedge with which hedging is back.
  std::optional<Duration> back_after;
  // The slow host: on probation so long after it became slow, for such a share of the time from
  // then until it was well, and off it so long after that; empty when it was off it before.
  std::optional<Duration> probation_after;
  std::optional<double> probation_share;
  std::optional<Duration> probation_over_after;

  [[nodiscard]] const DriftPhase* find(std::string_view phase) const;
  // P99 of the phase with one slow host, once settled, ÷ that of the healthy phase.
  [[nodiscard]] std::optional<double> one_slow_ratio() const;
  // Extra load of that phase ÷ that of the healthy phase.
  [[nodiscard]] std::optional<double> load_ratio(std::string_view phase) const;
  // Brown-outs seen where there was none.
  [[nodiscard]] std::uint64_t false_alarms() const;
  // Hedges while all hosts fail ÷ those that the budget allows.
  [[nodiscard]] std::optional<double> all_fail_spent() const;
};

// Hedges counted after `from` and up to `to`.
std::uint64_t hedges_between(std::span<const HedgeSample> hedges, Duration from, Duration to);
// From `from` to the last hedge before the first kHedgingQuiet without any, all of it before `to`.
std::optional<Duration> stops_after(std::span<const HedgeSample> hedges, Duration from,
                                    Duration to);
// From `from` to the first hedge with which a second begins, within `to`, that has at least a
// quarter of the hedges of a healthy one.
std::optional<Duration> back_after(std::span<const HedgeSample> hedges, Duration from, Duration to,
                                   double healthy_per_s);
// From `from` until the state is `on`; 0 when it is so already.
std::optional<Duration> turns_after(std::span<const ProbationChange> changes, Duration from,
                                    Duration to, bool on);

// The share of the time from `from` to `to` in which the state was on. 0 of no time.
double share_on(std::span<const ProbationChange> changes, Duration from, Duration to);

// Fills in what the bars are about. REQUIRES: hedges and drift.probation in the order of time.
void evaluate(Drift& drift, std::span<const HedgeSample> hedges);
// Puts a further run to those before it: sums of what adds up, the worst of the rest. The course
// of time stays the first run's.
void merge(Drift& into, const Drift& run);

std::vector<report::Check> drift_checks(const Drift& adaptive);

}  // namespace tailward::lab
