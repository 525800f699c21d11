#include "lab/hedging/hedging_result.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/units.h"
#include "hedge_report/hedging_json.h"

namespace tailward::lab {
namespace {

using report::Cell;
using report::Json;

Cell published_ms(const std::optional<double>& value) {
  return value ? report::number_cell(*value, 1, report::Emphasis::kMuted)
               : report::text_cell("–", report::Emphasis::kMuted);
}

bool any_lock(const std::vector<ArmResult>& arms) {
  for (const ArmResult& arm : arms) {
    if (arm.server.lock_wait.count() > 0) return true;
  }
  return false;
}

// Our latency, with the article's beside it.
report::Table latency_table(const std::vector<ArmResult>& arms) {
  report::Table table;
  table.title = "Latency at the client";
  table.columns = {{"arm", report::Align::kLeft, ""},
                   {"P50", report::Align::kRight, "ms"},
                   {"article's P50", report::Align::kRight, "", 2},
                   {"P95", report::Align::kRight, "ms", 1},
                   {"article's P95", report::Align::kRight, "", 4},
                   {"P99 (95 % interval)", report::Align::kRight, "ms"},
                   {"article's P99", report::Align::kRight, "", 2},
                   {"P99.9", report::Align::kRight, "ms", 3},
                   {"article's P99.9", report::Align::kRight, "", 5}};
  for (const ArmResult& arm : arms) {
    const stats::DurationInterval p99 = arm.latency.quantile_interval(0.99);
    table.rows.push_back({report::text_cell(arm.name + (arm.partial ? " (partial)" : "")),
                          report::number_cell(arm.ms(0.5)), published_ms(arm.published.p50_ms),
                          report::number_cell(arm.ms(0.95)), published_ms(arm.published.p95_ms),
                          report::interval_cell(arm.ms(0.99), to_ms(p99.low), to_ms(p99.high)),
                          published_ms(arm.published.p99_ms), report::number_cell(arm.ms(0.999)),
                          published_ms(arm.published.p999_ms)});
  }
  return table;
}

// Requests at the server, hedges, and the wait for the lock.
report::Table load_table(const std::vector<ArmResult>& arms) {
  const bool lock = any_lock(arms);
  report::Table table;
  table.title = "What it took";
  table.columns = {{"arm", report::Align::kLeft, ""},
                   {"requests", report::Align::kRight, "", 1},
                   {"at the server", report::Align::kRight, ""},
                   {"in the article", report::Align::kRight, "", 3},
                   {"hedged", report::Align::kRight, ""},
                   {"extra load", report::Align::kRight, "", 1},
                   {"verdict", report::Align::kLeft, ""}};
  if (lock)
    table.columns.insert(table.columns.end() - 1, {"lock wait", report::Align::kRight, "s"});
  for (const ArmResult& arm : arms) {
    std::vector<Cell> row{
        report::text_cell(arm.name),
        report::count_cell(arm.counters.requests),
        report::count_cell(arm.server.requests),
        arm.published.server_requests
            ? report::count_cell(*arm.published.server_requests, report::Emphasis::kMuted)
            : report::text_cell("–", report::Emphasis::kMuted),
        report::share_cell(arm.counters.trigger_rate()),
        report::share_cell(arm.counters.extra_load()),
        report::text_cell(arm.hedging ? std::string(to_string(arm.verdict.layer)) : "–")};
    if (lock) row.insert(row.end() - 1, report::number_cell(to_seconds(arm.server.lock_wait), 1));
    table.rows.push_back(std::move(row));
  }
  return table;
}

report::Table cost_table(const std::vector<ArmResult>& arms) {
  report::Table table;
  table.title = "Besides requests";
  table.columns = {{"arm", report::Align::kLeft, ""},
                   {"heap peak", report::Align::kRight, "KiB"},
                   {"allocated", report::Align::kRight, "MiB"},
                   {"allocations", report::Align::kRight, "", 1},
                   {"connections", report::Align::kRight, ""},
                   {"log lines", report::Align::kRight, ""},
                   {"spans", report::Align::kRight, ""},
                   {"server peak", report::Align::kRight, "MiB", 2}};
  for (const ArmResult& arm : arms) {
    table.rows.push_back(
        {report::text_cell(arm.name),
         report::number_cell(static_cast<double>(arm.heap.peak_bytes) / 1024, 0),
         report::number_cell(static_cast<double>(arm.heap.allocated_bytes) / 1048576, 1),
         report::count_cell(arm.heap.allocations), report::count_cell(arm.connections_opened),
         report::count_cell(arm.server.log_lines), report::count_cell(arm.counters.attempts),
         report::number_cell(static_cast<double>(arm.server_peak_bytes) / 1048576, 1)});
  }
  table.notes = {"spans: what tracing would record, one for each attempt at the server"};
  return table;
}

report::Table fanout_table(const std::vector<ArmResult>& arms) {
  report::Table table;
  table.title = "Slow requests";
  table.columns = {{"arm", report::Align::kLeft, ""},
                   {"where", report::Align::kLeft, "", 1},
                   {"samples", report::Align::kRight, ""},
                   {"slow (95 % interval)", report::Align::kRight, "%"},
                   {"1 − 0.99^N", report::Align::kRight, "%"},
                   {"P50", report::Align::kRight, "ms"},
                   {"P99", report::Align::kRight, "ms"}};
  for (const ArmResult& arm : arms) {
    if (!arm.fanout) continue;
    const Fanout& fanout = *arm.fanout;
    table.rows.push_back(
        {report::text_cell(arm.name), report::text_cell(fanout.live ? "live" : "virtual time"),
         report::count_cell(arm.requests),
         report::interval_cell(fanout.share * 100, fanout.low * 100, fanout.high * 100, 1),
         report::number_cell(fanout.theory * 100, 1), report::number_cell(arm.ms(0.5)),
         report::number_cell(arm.ms(0.99))});
  }
  return table;
}

report::CurveChart curves(const std::vector<ArmResult>& arms) {
  report::CurveChart chart;
  chart.title = "Latency by percentile";
  chart.log_y = true;
  for (const ArmResult& arm : arms) {
    if (arm.latency.count() == 0) continue;
    chart.series.push_back(
        {arm.name, report::tail_points(arm.latency.count(),
                                       [&arm](double quantile) { return arm.ms(quantile); })});
    report::CurveSeries article{arm.name + " (article)", {}, report::Line::kMarkers};
    const auto add = [&article](double quantile, const std::optional<double>& ms) {
      if (ms) article.points.push_back({quantile, *ms});
    };
    add(0.5, arm.published.p50_ms);
    add(0.9, arm.published.p90_ms);
    add(0.95, arm.published.p95_ms);
    add(0.99, arm.published.p99_ms);
    add(0.999, arm.published.p999_ms);
    if (!article.points.empty()) chart.series.push_back(std::move(article));
  }
  return chart;
}

report::TimelineChart timeline(const std::vector<ArmResult>& arms) {
  report::TimelineChart chart;
  chart.title = "Over time: trigger rate and lock wait";
  const bool lock = any_lock(arms);
  for (const ArmResult& arm : arms) {
    report::TimeSeries rate{
        "trigger rate, " + arm.name, "%", {}, report::Side::kLeft, report::Line::kSolid};
    report::TimeSeries wait{
        "lock wait, " + arm.name, "ms/s", {}, report::Side::kRight, report::Line::kDashed};
    for (const TimelinePoint& point : arm.timeline) {
      rate.points.push_back({point.seconds, point.trigger_rate * 100});
      wait.points.push_back({point.seconds, point.lock_wait_ms_per_s});
    }
    if (arm.hedging && !rate.points.empty()) chart.series.push_back(std::move(rate));
    if (lock && !wait.points.empty()) chart.series.push_back(std::move(wait));
  }
  const bool any_rate =
      std::any_of(chart.series.begin(), chart.series.end(),
                  [](const report::TimeSeries& one) { return one.side == report::Side::kLeft; });
  if (any_rate) {
    chart.levels = {{15, "healthy below", report::Side::kLeft},
                    {50, "cause above", report::Side::kLeft}};
  }
  return chart;
}

Json published_json(const Published& published) {
  Json json = Json::object();
  const auto put = [&json](const char* name, const auto& value) {
    if (value) json[name] = *value;
  };
  put("p50_ms", published.p50_ms);
  put("p90_ms", published.p90_ms);
  put("p95_ms", published.p95_ms);
  put("p99_ms", published.p99_ms);
  put("p999_ms", published.p999_ms);
  put("server_requests", published.server_requests);
  put("hedges", published.hedges);
  put("lock_wait_ms", published.lock_wait_ms);
  put("extra_load", published.extra_load);
  put("memory_mb", published.memory_mb);
  put("slow_share", published.slow_share);
  return json;
}

void add_cost(Json& json, const ArmResult& arm) {
  json["heap_peak_bytes"] = arm.heap.peak_bytes;
  json["allocated_bytes"] = arm.heap.allocated_bytes;
  json["allocations"] = arm.heap.allocations;
  json["server_peak_bytes"] = arm.server_peak_bytes;
  json["log_lines"] = arm.server.log_lines;
  json["log_bytes"] = arm.server.log_bytes;
  json["spans"] = arm.counters.attempts;
}

}  // namespace

report::Json arm_json(const ArmResult& arm) {
  const stats::DurationInterval p99 = arm.latency.quantile_interval(0.99);
  Json json{{"name", arm.name},
            {"requests", arm.requests},
            {"failed", arm.failed},
            {"partial", arm.partial},
            {"seconds", arm.seconds},
            {"p50_ms", arm.ms(0.5)},
            {"p90_ms", arm.ms(0.9)},
            {"p95_ms", arm.ms(0.95)},
            {"p99_ms", arm.ms(0.99)},
            {"p99_low_ms", to_ms(p99.low)},
            {"p99_high_ms", to_ms(p99.high)},
            {"p99_bounded", p99.bounded},
            {"p999_ms", arm.ms(0.999)},
            {"max_ms", to_ms(arm.latency.max())},
            {"server_requests", arm.server.requests},
            {"server_cancelled", arm.server.cancelled},
            {"hedges", arm.counters.hedges},
            {"hedge_wins", arm.counters.hedge_wins},
            {"trigger_rate", arm.counters.trigger_rate()},
            {"extra_load", arm.counters.extra_load()},
            {"wasted_ms", to_ms(arm.counters.wasted)},
            {"lock_wait_ms", to_ms(arm.server.lock_wait)},
            {"lock_contentions", arm.server.lock_contentions},
            {"connections", arm.connections_opened},
            {"article", published_json(arm.published)}};
  if (arm.call_latency.count() > arm.latency.count()) {
    json["call_p50_ms"] = to_ms(arm.call_latency.quantile(0.5));
    json["call_p99_ms"] = to_ms(arm.call_latency.quantile(0.99));
  }
  if (arm.first_median) json["first_attempt_p50_ms"] = to_ms(*arm.first_median);
  if (arm.hedging) json["verdict"] = report::to_json(arm.verdict);
  if (arm.proof) json["proof"] = hedge_report::proof_json(*arm.proof);
  if (arm.plan) json["plan"] = hedge_report::plan_json(*arm.plan);
  if (arm.off_after_seconds) json["off_after_s"] = *arm.off_after_seconds;
  if (arm.fanout) {
    json["n"] = arm.fanout->n;
    json["live"] = arm.fanout->live;
    json["slow_share"] = arm.fanout->share;
    json["slow_share_low"] = arm.fanout->low;
    json["slow_share_high"] = arm.fanout->high;
    json["theory"] = arm.fanout->theory;
  }
  Json timeline = Json::array();
  for (const TimelinePoint& point : arm.timeline) {
    timeline.push_back({{"seconds", point.seconds},
                        {"trigger_rate", point.trigger_rate},
                        {"lock_wait_ms_per_s", point.lock_wait_ms_per_s},
                        {"requests_per_s", point.requests_per_s},
                        {"first_attempt_p50_ms", point.p50_ms}});
  }
  json["timeline"] = std::move(timeline);
  return json;
}

const ArmResult* HedgingResult::find(std::string_view arm) const {
  const auto found =
      std::find_if(arms.begin(), arms.end(), [&](const auto& one) { return one.name == arm; });
  return found == arms.end() ? nullptr : &*found;
}

void HedgingResult::add_to(report::Report& report) const {
  if (arms.empty()) return;
  if (arms.front().fanout) {
    report.add(fanout_table(arms));
  } else {
    report.add(latency_table(arms));
    report.add(load_table(arms));
  }
  if (shows_cost) report.add(cost_table(arms));
  report.add(verdict);
  add_checks(report);
  report.add(curves(arms));
  report::TimelineChart over_time = timeline(arms);
  if (!over_time.series.empty()) report.add(std::move(over_time));
  add_notes(report);
  for (const ArmResult& arm : arms) {
    if (arm.failed == 0) continue;
    report.add(report::Note{report::NoteKind::kWarning,
                            fmt::format("arm {}: {} requests failed and are in no percentile",
                                        arm.name, format_count(arm.failed))});
  }
}

report::Json HedgingResult::arms_json() const {
  Json json = Json::array();
  for (const ArmResult& arm : arms) {
    json.push_back(arm_json(arm));
    if (shows_cost) add_cost(json.back(), arm);
  }
  return json;
}

}  // namespace tailward::lab
