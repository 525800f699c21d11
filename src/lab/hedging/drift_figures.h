// The figures of one run of `drift`, and what is computed from them: when hedging stopped, when it
// came back, how long the slow host was on probation.
//
// Plain values and pure functions. Times are counted from the start of the run.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "stats/histogram.h"

namespace tailward::lab {

// Without a hedge for this long, where there were many, hedging has stopped.
inline constexpr Duration kHedgingQuiet = std::chrono::seconds(1);
// How long the policy may take to notice: a brown-out, a slow host, a recovery. Only what follows
// is judged.
inline constexpr Duration kStopWithin = std::chrono::milliseconds(200);
inline constexpr Duration kSettledAfter = std::chrono::seconds(3);
inline constexpr Duration kBackWithin = std::chrono::seconds(5);

// One stretch of a run.
enum class DriftFault { kNone, kAllSlow, kOneSlow, kAllFail };

struct PhasePlan {
  std::string name;
  Duration length{};
  DriftFault fault = DriftFault::kNone;
  double traffic = 1;  // times the usual rate
};
// How many times as long the work takes then.
inline constexpr int kAllSlowBy = 3;
inline constexpr int kOneSlowBy = 10;

// How many hedges were sent since the sample before. `at` is when they were counted: up to one
// sampling interval after they were sent.
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
  Duration from{};  // when all servers had confirmed the fault
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

// One arm's run, and the figures that the bars judge. What never happened is empty, and so is what
// a run that ended early did not come to see.
struct Drift {
  std::vector<DriftPhase> phases;
  std::vector<DriftPoint> timeline;
  std::vector<ProbationChange> probation;  // of the host that is slow in "one-slow"
  double budget_share = 0;
  double budget_burst = 0;                // of all runs together
  std::uint64_t delayed = 0;              // requests that began late: too many were in flight
  std::uint64_t unexpected_failures = 0;  // failed while no server was told to fail

  // From the beginning of the brown-out to the last hedge before hedging stopped.
  std::optional<Duration> brownout_stop;
  // Hedges sent in the brown-out later than kStopWithin, for each of its requests.
  std::optional<double> brownout_late_load;
  // From its end to the first hedge with which hedging is back.
  std::optional<Duration> back_after;
  // The slow host: how long after it became slow it was put on probation; the share of the time
  // from then until it was healthy again that it stayed there; how long after that it was taken off
  // (empty if it was off before).
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

// Fills in the figures that the bars judge. REQUIRES: hedges and drift.probation in the order of
// time.
void evaluate(Drift& drift, std::span<const HedgeSample> hedges);
// Adds a further run to those before it: counts and histograms add up, the other figures are the
// worst run's, and empty if one run has none. Phases begin and end at slightly different times in
// each run, so the times of phases, the timeline and the changes of probation stay the first run's.
void merge(Drift& into, const Drift& run);

}  // namespace tailward::lab
