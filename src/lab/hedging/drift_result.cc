#include "lab/hedging/drift_result.h"

#include <fmt/format.h>

#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/units.h"
#include "lab/hedging/hedging_result.h"

namespace tailward::lab {
namespace {

using report::Cell;
using report::Json;

// "Never" only for a phase that has ended: what has not happened in an unfinished one still might.
Cell ms_cell(const Drift& drift, std::string_view phase, const std::optional<Duration>& value) {
  if (value) return report::number_cell(to_ms(*value), 0);
  const DriftPhase* found = drift.find(phase);
  const bool ended = found != nullptr && found != &drift.phases.back();
  return report::text_cell(ended ? "never" : "–", report::Emphasis::kMuted);
}

Cell times_cell(const std::optional<double>& value) {
  return value ? report::text_cell(fmt::format("×{:.2f}", *value))
               : report::text_cell("–", report::Emphasis::kMuted);
}

Cell load_cell(const DriftPhase* phase) {
  return phase == nullptr ? report::text_cell("–", report::Emphasis::kMuted)
                          : report::share_cell(phase->extra_load());
}

// One line for each question, one column for each arm.
report::Table questions_table(const std::vector<DriftRun>& arms) {
  report::Table table;
  table.title = "How hedging takes it";
  table.columns = {{"", report::Align::kLeft, ""}};
  for (const DriftRun& run : arms) {
    table.columns.push_back({run.arm.name, report::Align::kRight, ""});
  }
  const auto row = [&](std::string name, auto cell) {
    std::vector<Cell> cells{report::text_cell(std::move(name))};
    for (const DriftRun& run : arms) cells.push_back(cell(run.drift));
    table.rows.push_back(std::move(cells));
  };
  row("healthy: extra load", [](const Drift& drift) { return load_cell(drift.find("healthy")); });
  row(fmt::format("all ×{}: hedging stops after, ms", kAllSlowBy),
      [](const Drift& drift) { return ms_cell(drift, "brown-out", drift.brownout_stop); });
  row("  extra load from 200 ms on", [](const Drift& drift) {
    return drift.brownout_late_load ? report::share_cell(*drift.brownout_late_load)
                                    : report::text_cell("–", report::Emphasis::kMuted);
  });
  row("recovered: hedging is back after, ms",
      [](const Drift& drift) { return ms_cell(drift, "recovered", drift.back_after); });
  row(fmt::format("one host ×{}: P99 from 3 s on, times the healthy", kOneSlowBy),
      [](const Drift& drift) { return times_cell(drift.one_slow_ratio()); });
  row("  attempts that went to it", [](const Drift& drift) {
    const DriftPhase* phase = drift.find("one-slow");
    return phase == nullptr ? report::text_cell("–", report::Emphasis::kMuted)
                            : report::share_cell(phase->slow_host_share());
  });
  row("  on probation after, ms",
      [](const Drift& drift) { return ms_cell(drift, "one-slow", drift.probation_after); });
  row("  share of the time since then", [](const Drift& drift) {
    return drift.probation_share ? report::share_cell(*drift.probation_share)
                                 : report::text_cell("–", report::Emphasis::kMuted);
  });
  row("healed: off probation after, ms",
      [](const Drift& drift) { return ms_cell(drift, "healed", drift.probation_over_after); });
  row("a tenth of the traffic: extra load",
      [](const Drift& drift) { return load_cell(drift.find("low-traffic")); });
  row("all fail: extra load", [](const Drift& drift) { return load_cell(drift.find("all-fail")); });
  row("brown-outs seen where there was none",
      [](const Drift& drift) { return report::count_cell(drift.false_alarms()); });
  return table;
}

report::Table phases_table(const std::string& arm, const Drift& drift) {
  report::Table table;
  table.title = "Phases of arm " + arm;
  table.columns = {{"phase", report::Align::kLeft, ""},
                   {"from", report::Align::kRight, "s", 2},
                   {"requests", report::Align::kRight, ""},
                   {"failed", report::Align::kRight, "", 1},
                   {"P50", report::Align::kRight, "ms"},
                   {"P99 (95 % interval)", report::Align::kRight, "ms"},
                   {"triggered", report::Align::kRight, ""},
                   {"extra load", report::Align::kRight, ""}};
  for (const DriftPhase& phase : drift.phases) {
    const stats::DurationInterval p99 = phase.latency.quantile_interval(0.99);
    // Where most fail, the few others are no sample of anything.
    const bool any = phase.latency.count() > phase.failed;
    table.rows.push_back(
        {report::text_cell(phase.name), report::number_cell(to_seconds(phase.from), 0),
         report::count_cell(phase.requests), report::count_cell(phase.failed),
         any ? report::number_cell(to_ms(phase.latency.quantile(0.5))) : report::text_cell("–"),
         any ? report::interval_cell(to_ms(phase.latency.quantile(0.99)), to_ms(p99.low),
                                     to_ms(p99.high))
             : report::text_cell("–"),
         report::share_cell(phase.trigger_rate()), report::share_cell(phase.extra_load())});
  }
  return table;
}

report::TimelineChart timeline(const std::string& arm, const Drift& drift) {
  report::TimelineChart chart;
  chart.title = "Over time: arm " + arm;
  report::TimeSeries load{"extra load", "%", {}, report::Side::kLeft, report::Line::kSolid};
  report::TimeSeries rate{"trigger rate", "%", {}, report::Side::kLeft, report::Line::kDashed};
  report::TimeSeries p99{"P99", "ms", {}, report::Side::kRight, report::Line::kSolid};
  for (const DriftPoint& point : drift.timeline) {
    load.points.push_back({point.seconds, point.extra_load * 100});
    rate.points.push_back({point.seconds, point.trigger_rate * 100});
    p99.points.push_back(
        {point.seconds, point.p99_ms.value_or(std::numeric_limits<double>::quiet_NaN())});
  }
  chart.series = {std::move(load), std::move(rate), std::move(p99)};
  for (const DriftPhase& phase : drift.phases) {
    chart.events.push_back({to_seconds(phase.from), phase.name});
  }
  chart.levels = {{drift.budget_share * 100, "budget", report::Side::kLeft}};
  return chart;
}

Json phase_json(const DriftPhase& phase) {
  const stats::DurationInterval p99 = phase.latency.quantile_interval(0.99);
  return {{"name", phase.name},
          {"from_s", to_seconds(phase.from)},
          {"to_s", to_seconds(phase.to)},
          {"requests", phase.requests},
          {"answered", phase.latency.count()},
          {"failed", phase.failed},
          {"p50_ms", to_ms(phase.latency.quantile(0.5))},
          {"p99_ms", to_ms(phase.latency.quantile(0.99))},
          {"p99_low_ms", to_ms(p99.low)},
          {"p99_high_ms", to_ms(p99.high)},
          {"settled_p99_ms", to_ms(phase.settled.quantile(0.99))},
          {"trigger_rate", phase.trigger_rate()},
          {"hedges", phase.hedges},
          {"extra_load", phase.extra_load()},
          {"brownouts", phase.brownouts},
          {"slow_host_share", phase.slow_host_share()}};
}

Json drift_json(const Drift& drift) {
  Json json = Json::object();
  json["phases"] = Json::array();
  for (const DriftPhase& phase : drift.phases) json["phases"].push_back(phase_json(phase));
  // null: it never happened.
  const auto put = [&json](const char* name, const std::optional<double>& value) {
    json[name] = value ? Json(*value) : Json();
  };
  const auto put_ms = [&put](const char* name, const std::optional<Duration>& value) {
    put(name, value ? std::optional<double>(to_ms(*value)) : std::nullopt);
  };
  put_ms("brownout_stop_ms", drift.brownout_stop);
  put("brownout_late_load", drift.brownout_late_load);
  put_ms("back_after_ms", drift.back_after);
  put("one_slow_p99_ratio", drift.one_slow_ratio());
  put_ms("probation_after_ms", drift.probation_after);
  put("probation_share", drift.probation_share);
  put_ms("probation_over_after_ms", drift.probation_over_after);
  put("all_fail_spent", drift.all_fail_spent());
  json["false_alarms"] = drift.false_alarms();
  json["budget_share"] = drift.budget_share;
  json["budget_burst"] = drift.budget_burst;
  json["delayed"] = drift.delayed;
  json["unexpected_failures"] = drift.unexpected_failures;
  json["probation"] = Json::array();
  for (const ProbationChange& change : drift.probation) {
    json["probation"].push_back({{"seconds", to_seconds(change.at)}, {"on", change.on}});
  }
  json["timeline"] = Json::array();
  for (const DriftPoint& point : drift.timeline) {
    json["timeline"].push_back({{"seconds", point.seconds},
                                {"trigger_rate", point.trigger_rate},
                                {"extra_load", point.extra_load},
                                {"p99_ms", point.p99_ms ? Json(*point.p99_ms) : Json()}});
  }
  return json;
}

}  // namespace

void DriftResult::add_to(report::Report& report) const {
  if (arms.empty()) return;
  report.add(questions_table(arms));
  add_checks(report);
  for (const auto& [arm, drift] : arms) {
    report.add(phases_table(arm.name, drift));
    report.add(timeline(arm.name, drift));
    if (drift.delayed == 0) continue;
    report.add(report::Note{
        report::NoteKind::kWarning,
        fmt::format("arm {}: {} requests began late, since too many were in flight; the wait is "
                    "in their response time",
                    arm.name, format_count(drift.delayed))});
  }
  add_notes(report);
}

report::Json DriftResult::arms_json() const {
  Json json = Json::array();
  for (const auto& [arm, drift] : arms) {
    json.push_back(arm_json(arm));
    json.back().update(drift_json(drift));
  }
  return json;
}

}  // namespace tailward::lab
