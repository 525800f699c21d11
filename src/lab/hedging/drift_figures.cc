#include "lab/hedging/drift_figures.h"

#include <algorithm>
#include <chrono>

#include "lab/checks.h"

namespace tailward::lab {
namespace {

using namespace std::chrono_literals;

double share_of(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

template <class T>
std::optional<T> worse(const std::optional<T>& a, const std::optional<T>& b) {
  return a && b ? std::optional<T>(std::max(*a, *b)) : std::nullopt;
}

void merge(DriftPhase& into, const DriftPhase& run) {
  into.requests += run.requests;
  into.failed += run.failed;
  into.latency.merge(run.latency);
  into.settled.merge(run.settled);
  into.eligible += run.eligible;
  into.hedged += run.hedged;
  into.hedges += run.hedges;
  into.attempts += run.attempts;
  into.brownouts += run.brownouts;
  into.slow_host_attempts += run.slow_host_attempts;
}

}  // namespace

double DriftPhase::extra_load() const { return share_of(hedges, requests); }
double DriftPhase::trigger_rate() const { return share_of(hedged, eligible); }
double DriftPhase::slow_host_share() const { return share_of(slow_host_attempts, attempts); }
double DriftPhase::hedges_per_s() const {
  return to > from ? static_cast<double>(hedges) / to_seconds(to - from) : 0;
}

const DriftPhase* Drift::find(std::string_view phase) const {
  const auto found = std::find_if(phases.begin(), phases.end(),
                                  [phase](const DriftPhase& one) { return one.name == phase; });
  return found == phases.end() ? nullptr : &*found;
}

std::optional<double> Drift::one_slow_ratio() const {
  const DriftPhase* healthy = find("healthy");
  const DriftPhase* slow = find("one-slow");
  if (healthy == nullptr || slow == nullptr || slow->settled.count() == 0) return {};
  return ratio(to_ms(slow->settled.quantile(0.99)), to_ms(healthy->latency.quantile(0.99)));
}

std::optional<double> Drift::load_ratio(std::string_view phase) const {
  const DriftPhase* healthy = find("healthy");
  const DriftPhase* then = find(phase);
  if (healthy == nullptr || then == nullptr || healthy->hedges == 0) return {};
  return then->extra_load() / healthy->extra_load();
}

std::uint64_t Drift::false_alarms() const {
  std::uint64_t sum = 0;
  for (const DriftPhase& phase : phases) sum += phase.name == "brown-out" ? 0 : phase.brownouts;
  return sum;
}

std::optional<double> Drift::all_fail_spent() const {
  const DriftPhase* failing = find("all-fail");
  if (failing == nullptr) return {};
  const double allowed = budget_share * static_cast<double>(failing->requests) + budget_burst;
  return static_cast<double>(failing->hedges) / allowed;
}

std::uint64_t hedges_between(std::span<const HedgeSample> hedges, Duration from, Duration to) {
  std::uint64_t sum = 0;
  for (const HedgeSample& sample : hedges) {
    if (sample.at > from && sample.at <= to) sum += sample.count;
  }
  return sum;
}

std::optional<Duration> stops_after(std::span<const HedgeSample> hedges, Duration from,
                                    Duration to) {
  Duration last = from;
  for (const HedgeSample& sample : hedges) {
    if (sample.at <= from || sample.count == 0) continue;
    if (sample.at > to || sample.at - last >= kHedgingQuiet) break;
    last = sample.at;
  }
  if (to - last < kHedgingQuiet) return std::nullopt;
  return last - from;
}

std::optional<Duration> back_after(std::span<const HedgeSample> hedges, Duration from, Duration to,
                                   double healthy_per_s) {
  constexpr double kBackShare = 0.25;
  if (healthy_per_s <= 0) return std::nullopt;
  for (const HedgeSample& sample : hedges) {
    if (sample.at <= from || sample.count == 0) continue;
    if (sample.at + 1s > to) break;
    const auto next = hedges_between(hedges, sample.at - 1ns, sample.at + 1s);
    if (static_cast<double>(next) >= kBackShare * healthy_per_s) return sample.at - from;
  }
  return std::nullopt;
}

std::optional<Duration> turns_after(std::span<const ProbationChange> changes, Duration from,
                                    Duration to, bool on) {
  bool state = false;
  for (const ProbationChange& change : changes) {
    if (change.at > to) break;
    if (change.at > from && state != on && change.on == on) return change.at - from;
    if (change.at > from && state == on) break;
    state = change.on;
  }
  return state == on ? std::optional<Duration>(Duration{}) : std::nullopt;
}

double share_on(std::span<const ProbationChange> changes, Duration from, Duration to) {
  if (to <= from) return 0;
  Duration on{};
  for (std::size_t i = 0; i < changes.size(); ++i) {
    if (!changes[i].on) continue;
    const Duration until = i + 1 < changes.size() ? changes[i + 1].at : to;
    on += std::max(std::min(until, to) - std::max(changes[i].at, from), Duration{});
  }
  return to_seconds(on) / to_seconds(to - from);
}

void evaluate(Drift& drift, std::span<const HedgeSample> hedges) {
  const std::span<const ProbationChange> changes = drift.probation;
  const DriftPhase* healthy = drift.find("healthy");
  const DriftPhase* brownout = drift.find("brown-out");
  const DriftPhase* recovered = drift.find("recovered");
  const DriftPhase* slow = drift.find("one-slow");
  const DriftPhase* healed = drift.find("healed");
  // A policy that never hedged has nothing to stop.
  const bool hedging = healthy != nullptr && healthy->hedges > 0;
  if (hedging && brownout != nullptr && brownout->requests > 0) {
    drift.brownout_stop = stops_after(hedges, brownout->from, brownout->to);
    drift.brownout_late_load = share_of(
        hedges_between(hedges, brownout->from + kStopWithin, brownout->to), brownout->requests);
  }
  if (hedging && recovered != nullptr) {
    drift.back_after = back_after(hedges, recovered->from, recovered->to, healthy->hedges_per_s());
  }
  if (slow != nullptr) drift.probation_after = turns_after(changes, slow->from, slow->to, true);
  if (!drift.probation_after) return;
  drift.probation_share = share_on(changes, slow->from + *drift.probation_after, slow->to);
  // A host that left probation while it was still slow did not leave because it was healthy.
  if (healed != nullptr && turns_after(changes, healed->from, healed->from, true)) {
    drift.probation_over_after = turns_after(changes, healed->from, healed->to, false);
  }
}

void merge(Drift& into, const Drift& run) {
  for (std::size_t i = 0; i < std::min(into.phases.size(), run.phases.size()); ++i) {
    merge(into.phases[i], run.phases[i]);
  }
  into.budget_burst += run.budget_burst;
  into.delayed += run.delayed;
  into.unexpected_failures += run.unexpected_failures;
  into.brownout_stop = worse(into.brownout_stop, run.brownout_stop);
  into.brownout_late_load = worse(into.brownout_late_load, run.brownout_late_load);
  into.back_after = worse(into.back_after, run.back_after);
  into.probation_after = worse(into.probation_after, run.probation_after);
  if (into.probation_share && run.probation_share) {
    into.probation_share = std::min(*into.probation_share, *run.probation_share);
  } else {
    into.probation_share.reset();
  }
  into.probation_over_after = worse(into.probation_over_after, run.probation_over_after);
}

}  // namespace tailward::lab
