#include "plan/render.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/units.h"

namespace tailward::plan {
namespace {

using report::Align;
using report::Cell;
using report::Json;

constexpr const char* kAssumption =
    "The forecasts take a second attempt to be as quick as any attempt, whatever the first one "
    "met. "
    "A log cannot tell whether that is so: where both wait for the same lock, query or overloaded "
    "server, hedging gains nothing and adds load. Measure it before you rely on it: tailward proxy "
    "says what hedges bring, and tailward lab three-layer shows what happens when it does not "
    "hold.";

constexpr const char* kCauseFirst =
    "A number like these points to a cause that can be fixed. Fix it first: hedging would only "
    "hide it.";

constexpr std::array<double, 5> kQuantiles{0.5, 0.9, 0.95, 0.99, 0.999};

std::string title_of(double quantile) {
  std::string text = format_percentile(quantile);
  text[0] = 'P';
  return text;
}

double ms_or_nan(const std::optional<Duration>& value) {
  return value ? to_ms(*value) : std::numeric_limits<double>::quiet_NaN();
}

// Microseconds have digits, too.
int decimals_for(const Analysis& analysis) {
  const double median = to_ms(analysis.measured().quantile(0.5));
  return median < 1 ? 3 : median < 10 ? 2 : 1;
}

Cell known_cell(const std::optional<Duration>& value, int decimals,
                report::Emphasis emphasis = report::Emphasis::kNone) {
  return value ? report::number_cell(to_ms(*value), decimals, emphasis)
               : report::text_cell("unknown", report::Emphasis::kMuted);
}

std::string stages_text(const hedge::Plan& plan) {
  if (plan.stages == 0) return "never";
  std::string text;
  for (int at = 0; at < plan.stages; ++at) {
    const hedge::Stage& stage = plan.stage[static_cast<std::size_t>(at)];
    text += (at > 0 ? ", then " : "") + format_duration(stage.delay);
    if (stage.probability < 1) text += fmt::format(" ({})", format_share(stage.probability));
  }
  return text;
}

// ---- the report -------------------------------------------------------------------------------

// A plan for the goal may leave what lies beyond it to itself: who would do better there.
std::string beyond_text(const Analysis& analysis) {
  constexpr double kNotable = 0.8;
  const PlanOptions& options = analysis.options();
  const double beyond = 1 - (1 - options.goal) / 10;
  const std::optional<Duration> of_best = analysis.quantile(analysis.best(), beyond);
  if (!of_best) return "";
  for (const Forecast& policy : analysis.policies()) {
    const std::optional<Duration> other = analysis.quantile(policy, beyond);
    if (!other || !analysis.within_budget(policy)) continue;
    if (to_ms(*other) > kNotable * to_ms(*of_best)) continue;
    return fmt::format(" At {}, {} would do better: {} against {}.", title_of(beyond), policy.name,
                       format_duration(*other), format_duration(*of_best));
  }
  return "";
}

std::string summary_of(const Reading& reading, const Analysis& analysis) {
  const PlanOptions& options = analysis.options();
  const std::string goal = title_of(options.goal);
  const std::string budget = format_share(options.budget);
  const std::optional<Duration> without = analysis.quantile(analysis.off(), options.goal);
  const std::string count = format_count(reading.latencies);
  if (!without) {
    return fmt::format(
        "{} latencies are too few to know their {}: what would lower it is not known either.",
        count, goal);
  }
  const stats::DurationInterval interval = analysis.measured().quantile_interval(options.goal);
  const std::string measured = fmt::format(
      "{} latencies, {} {} (95 % interval {} to {}).", count, goal, format_duration(*without),
      format_duration(interval.low), format_duration(interval.high));
  const Forecast& best = analysis.best();
  const std::optional<Duration> with = analysis.quantile(best, options.goal);
  if (best.plan.stages == 0 || !with) {
    return fmt::format("{} No hedging within a budget of {} would lower it worth mentioning.",
                       measured, budget);
  }
  std::string text = fmt::format(
      "{} Best within a budget of {}: {}, a hedge after {}: {} {} (−{:.0f} %) for {} more load, if "
      "second attempts are independent of first ones.",
      measured, budget, best.name, stages_text(best.plan), goal, format_duration(*with),
      (1 - to_ms(*with) / to_ms(*without)) * 100, format_share(best.extra_load));
  return text + beyond_text(analysis);
}

std::string read_text(const Reading& reading) {
  std::string text = fmt::format("Read as {}: {} lines, {} latencies.", reading.understood,
                                 format_count(reading.lines), format_count(reading.latencies));
  const std::string skipped = describe(reading.skipped);
  return skipped.empty() ? text : fmt::format("{} Of the lines {}.", text, skipped);
}

std::vector<std::string> warnings_of(const Reading& reading, const Analysis& analysis) {
  std::vector<std::string> warnings;
  const stats::Histogram& measured = analysis.measured();
  const Duration resolution = reading.samples.resolution;
  constexpr int kCoarse = 5;
  if (resolution > std::chrono::microseconds(1) && measured.quantile(0.5) < kCoarse * resolution) {
    warnings.push_back(
        fmt::format("the log tells times apart by {} only: figures near that are coarse, and a 0 "
                    "means less than "
                    "that",
                    format_duration(resolution)));
  }
  const std::uint64_t long_ones = measured.count_above(std::chrono::minutes(59));
  if (long_ones > 0) {
    warnings.push_back(fmt::format("{} latencies are about an hour or longer: is the unit right?",
                                   format_count(long_ones)));
  }
  return warnings;
}

report::Table measured_table(const Analysis& analysis) {
  const stats::Histogram& measured = analysis.measured();
  const int decimals = decimals_for(analysis);
  report::Table table;
  table.title = "As logged";
  table.columns = {
      {"", Align::kLeft}, {"latency", Align::kRight, "ms"}, {"95 % interval", Align::kRight, "ms"}};
  for (const double q : kQuantiles) {
    const stats::DurationInterval interval = measured.quantile_interval(q);
    const std::string low = report::number_cell(to_ms(interval.low), decimals).text;
    const std::string high = report::number_cell(to_ms(interval.high), decimals).text;
    table.rows.push_back({report::text_cell(title_of(q)),
                          known_cell(analysis.quantile(analysis.off(), q), decimals),
                          report::text_cell(interval.bounded ? fmt::format("{}–{}", low, high)
                                                             : fmt::format("{} or more", low))});
  }
  table.rows.push_back(
      {report::text_cell("longest"), report::number_cell(to_ms(measured.max()), decimals), Cell{}});
  return table;
}

report::Table policies_table(const Analysis& analysis) {
  const int decimals = decimals_for(analysis);
  report::Table table;
  table.title = "What policies would do";
  table.columns = {{"policy", Align::kLeft}, {"hedge after", Align::kLeft}, {"extra load"}};
  for (const double q : kQuantiles) {
    const bool rather_not = q == 0.9 || (q == 0.95 && analysis.options().goal != 0.95);
    table.columns.push_back({title_of(q), Align::kRight, "ms", rather_not ? 1 : 0});
  }
  bool unknown = false;
  for (const Forecast& policy : analysis.policies()) {
    std::vector<Cell> row{report::text_cell(policy.name),
                          report::text_cell(stages_text(policy.plan)),
                          report::share_cell(policy.extra_load, analysis.within_budget(policy)
                                                                    ? report::Emphasis::kNone
                                                                    : report::Emphasis::kBad)};
    for (const double q : kQuantiles) {
      const std::optional<Duration> value = analysis.quantile(policy, q);
      const bool best =
          q == analysis.options().goal && &policy == &analysis.best() && policy.plan.stages > 0;
      row.push_back(
          known_cell(value, decimals, best ? report::Emphasis::kGood : report::Emphasis::kNone));
      unknown = unknown || !value;
    }
    table.rows.push_back(std::move(row));
  }
  table.notes = {
      fmt::format("static: a fixed delay, the log's P95. quantile: the delay that the "
                  "budget pays for, {}. adaptive: the plan that makes {} smallest "
                  "within it.",
                  format_share(analysis.options().budget), title_of(analysis.options().goal))};
  if (unknown) {
    table.notes.push_back(fmt::format("unknown: fewer than {} of the {} latencies lie beyond it",
                                      Analysis::kBeyondMin,
                                      format_count(analysis.measured().count())));
  }
  return table;
}

report::Table fanout_table(const Analysis& analysis) {
  const int decimals = decimals_for(analysis);
  const bool hedged = analysis.adaptive().plan.stages > 0;
  report::Table table;
  table.title = "One request of N such calls at once";
  table.columns = {
      {"N"}, {"slow", Align::kRight}, {"P50", Align::kRight, "ms"}, {"P99", Align::kRight, "ms"}};
  if (hedged) {
    table.columns.push_back({"slow, calls hedged"});
    table.columns.push_back({"P50 hedged", Align::kRight, "ms"});
    table.columns.push_back({"P99 hedged", Align::kRight, "ms"});
  }
  for (const FanoutRow& one : analysis.fanout()) {
    std::vector<Cell> row{report::count_cell(one.n), report::share_cell(one.slow_share),
                          known_cell(one.p50, decimals), known_cell(one.p99, decimals)};
    if (hedged) {
      row.push_back(report::share_cell(one.hedged_slow_share));
      row.push_back(known_cell(one.hedged_p50, decimals));
      row.push_back(known_cell(one.hedged_p99, decimals));
    }
    table.rows.push_back(std::move(row));
  }
  table.notes = {
      "slow: at least one of the calls takes longer than the P99 of a single one, "
      "1 − 0.99^N of the requests"};
  if (hedged) table.notes.emplace_back("calls hedged: each by the adaptive plan above");
  return table;
}

void add_signatures(report::Report& report, const SignatureSearch& search) {
  const std::string blind =
      search.blind_below > Duration{0}
          ? fmt::format(
                "Waits shorter than {} hide in the spread of the ordinary latencies ({}–{}) "
                "and were not looked for.",
                format_duration(search.blind_below), format_duration(search.body_from),
                format_duration(search.body_to))
          : "The ordinary latencies are too long or too few for waits to be looked for.";
  if (search.found.empty()) {
    report.add(report::Note{
        report::NoteKind::kNote,
        "No heap of latencies at a distance that gives a cause away (40 ms, 100 ms, 200 ms …, 1 s, "
        "3 s, 5 s …) and none at equal gaps. " +
            blind});
    return;
  }
  report::Table table;
  table.title = "Numbers that give a cause away";
  table.columns = {{"signature", Align::kLeft},
                   {"wait", Align::kRight, "ms"},
                   {"heap at", Align::kRight, "ms"},
                   {"latencies"},
                   {"share"}};
  for (const Signature& one : search.found) {
    table.rows.push_back(
        {report::text_cell(one.name), report::number_cell(to_ms(one.at), 1),
         report::text_cell(fmt::format("{:.1f}–{:.1f}", to_ms(one.from), to_ms(one.to))),
         report::count_cell(one.count),
         report::text_cell(fmt::format("{:.2f} %", one.share * 100))});
  }
  std::string last;
  for (const Signature& one : search.found) {
    if (one.name == std::exchange(last, one.name)) continue;
    table.notes.push_back(fmt::format("{}: usually {}.", one.name, one.meaning));
    table.notes.push_back(fmt::format("  How to know: {}", one.prove));
  }
  table.notes.push_back(blind);
  report.add(std::move(table));
  report.add(report::Note{report::NoteKind::kWarning, kCauseFirst});
}

report::CurveChart curves(const Analysis& analysis) {
  report::CurveChart chart;
  chart.title = "Latency by percentile, as logged and as forecast";
  chart.log_y = true;
  for (const Forecast& policy : analysis.policies()) {
    if (policy.plan.stages == 0 && policy.name != "off") continue;
    chart.series.push_back(
        {policy.name == "off" ? "off (as logged)" : policy.name,
         report::tail_points(analysis.measured().count(),
                             [&](double q) { return ms_or_nan(analysis.quantile(policy, q)); }),
         policy.name == "off" ? report::Line::kSolid : report::Line::kDashed});
  }
  return chart;
}

// ---- JSON -------------------------------------------------------------------------------------

Json policy_json(const Analysis& analysis, const Forecast& policy) {
  Json stages = Json::array();
  for (int at = 0; at < policy.plan.stages; ++at) {
    const hedge::Stage& stage = policy.plan.stage[static_cast<std::size_t>(at)];
    stages.push_back({{"delay_ms", to_ms(stage.delay)}, {"probability", stage.probability}});
  }
  const auto ms = [&](double q) { return report::ms_or_null(analysis.quantile(policy, q)); };
  return {{"name", policy.name},
          {"stages", std::move(stages)},
          {"extra_load", policy.extra_load},
          {"p50_ms", ms(0.5)},
          {"p90_ms", ms(0.9)},
          {"p95_ms", ms(0.95)},
          {"p99_ms", ms(0.99)},
          {"p999_ms", ms(0.999)},
          {"goal_ms", ms(analysis.options().goal)}};
}

Json read_json(const Reading& reading) {
  Json json{
      {"format", reading.format},         {"understood", reading.understood},
      {"lines", reading.lines},           {"latencies", reading.latencies},
      {"skipped", reading.skipped.lines}, {"resolution_ms", to_ms(reading.samples.resolution)}};
  if (reading.skipped.lines > 0) {
    json["first_skipped_line"] = reading.skipped.first_line;
    json["skipped_why"] = describe(reading.skipped);
  }
  return json;
}

Json measured_json(const Analysis& analysis) {
  const stats::Histogram& measured = analysis.measured();
  Json json = Json::object();
  for (const double q : kQuantiles) {
    std::string name = format_percentile(q);
    std::erase(name, '.');
    const stats::DurationInterval interval = measured.quantile_interval(q);
    json[name + "_ms"] = report::ms_or_null(analysis.quantile(analysis.off(), q));
    json[name + "_low_ms"] = to_ms(interval.low);
    json[name + "_high_ms"] = interval.bounded ? Json(to_ms(interval.high)) : Json(nullptr);
  }
  json["mean_ms"] = measured.mean_ns() / 1e6;
  json["max_ms"] = to_ms(measured.max());
  return json;
}

}  // namespace

report::Report to_report(const Reading& reading, const Analysis& analysis,
                         const report::RunInfo& run) {
  report::Report report;
  report.title = "What hedging would do to these latencies";
  report.summary = summary_of(reading, analysis);
  report.run = run;
  report.add(report::Note{report::NoteKind::kNote, read_text(reading)});
  for (const std::string& warning : warnings_of(reading, analysis)) {
    report.add(report::Note{report::NoteKind::kWarning, warning});
  }
  add_signatures(report, analysis.signatures());
  report.add(measured_table(analysis));
  report.add(policies_table(analysis));
  report.add(report::Note{report::NoteKind::kNote, kAssumption});
  report.add(curves(analysis));
  report.add(fanout_table(analysis));
  return report;
}

Json to_json(const Reading& reading, const Analysis& analysis, const report::RunInfo& run) {
  Json json = report::envelope(run);
  json["read"] = read_json(reading);
  json["goal"] = analysis.options().goal;
  json["budget"] = analysis.options().budget;
  json["latency"] = measured_json(analysis);
  json["policies"] = Json::array();
  for (const Forecast& policy : analysis.policies()) {
    json["policies"].push_back(policy_json(analysis, policy));
  }
  json["best"] = analysis.best().name;
  json["assumption"] = kAssumption;
  json["fanout"] = Json::array();
  for (const FanoutRow& row : analysis.fanout()) {
    json["fanout"].push_back({{"n", row.n},
                              {"slow_share", row.slow_share},
                              {"p50_ms", report::ms_or_null(row.p50)},
                              {"p99_ms", report::ms_or_null(row.p99)},
                              {"hedged_slow_share", row.hedged_slow_share},
                              {"hedged_p50_ms", report::ms_or_null(row.hedged_p50)},
                              {"hedged_p99_ms", report::ms_or_null(row.hedged_p99)}});
  }
  json["signatures"] = Json::array();
  for (const Signature& one : analysis.signatures().found) {
    json["signatures"].push_back({{"name", one.name},
                                  {"at_ms", to_ms(one.at)},
                                  {"seen_ms", to_ms(one.seen)},
                                  {"from_ms", to_ms(one.from)},
                                  {"to_ms", to_ms(one.to)},
                                  {"share", one.share},
                                  {"count", one.count},
                                  {"meaning", one.meaning},
                                  {"prove", one.prove}});
  }
  json["signatures_blind_below_ms"] = to_ms(analysis.signatures().blind_below);
  return json;
}

}  // namespace tailward::plan
