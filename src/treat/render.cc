#include "treat/render.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/units.h"

namespace tailward::treat {
namespace {

using report::Json;

constexpr std::size_t kRowsMax = 24;
// From how many connections on a bootstrap over them is more than a hint.
constexpr std::size_t kManyClusters = 10;
// From which difference on, beyond chance, the halves were not alike before the change.
constexpr double kUnlike = 0.1;

std::string count_of(std::size_t count, std::string_view what) {
  return fmt::format("{} {}{}", format_count(count), what, count == 1 ? "" : "s");
}

std::string signed_duration(Duration duration) {
  if (duration == Duration{0}) return "0 ms";
  return (duration < Duration{0} ? "−" : "+") +
         format_duration(duration < Duration{0} ? -duration : duration);
}

std::string interval_text(const Effect& effect) {
  return fmt::format("{} to {}", signed_duration(effect.low), signed_duration(effect.high));
}

std::string subject_of(const Treatment& treatment) {
  const TreatmentOptions& options = treatment.options();
  const std::string name = treatment.process_name();
  if (options.pid) {
    return name.empty() ? fmt::format("process {}", *options.pid)
                        : fmt::format("{} (process {})", name, *options.pid);
  }
  return fmt::format("{} (port {})", name.empty() ? "the process" : name, options.port.value_or(0));
}

std::string change_text(const MatchedConnection& one, const std::vector<Setting>& settings) {
  std::string text;
  for (std::size_t i = 0; i < settings.size(); ++i) {
    const Option option = settings[i].option;
    const State now = one.applied ? one.after[i] : wanted(one.before[i], settings[i]);
    text += fmt::format("{}{}: {} → {}", text.empty() ? "" : "; ", info(option).name,
                        to_string(option, one.before[i]), to_string(option, now));
  }
  return text;
}

// "treated", "untreated", "–"
std::string half_of(const MatchedConnection& one) {
  if (!one.treatable) return "–";
  return one.treated ? "treated" : "untreated";
}

std::string became(const MatchedConnection& one) {
  if (!one.treatable && one.outcome == StepOutcome::kAlready) return "is already so";
  std::string text = one.late ? "new" : "";
  const auto add = [&text](std::string_view more) {
    text += (text.empty() ? "" : ", ") + std::string(more);
  };
  if (one.outcome != StepOutcome::kDone && (one.treated || !one.treatable)) {
    add(to_string(one.outcome));
    if (!one.reason.empty()) text += ": " + one.reason;
  }
  return text;
}

report::Table connections_table(const std::vector<MatchedConnection>& connections,
                                const std::vector<Setting>& settings) {
  report::Table table;
  table.title = "Connections";
  const bool one_pid = std::all_of(connections.begin(), connections.end(), [&](const auto& one) {
    return one.pid == connections.front().pid;
  });
  if (!one_pid) table.columns.push_back({"process"});
  table.columns.push_back({"fd"});
  table.columns.push_back({"peer", report::Align::kLeft});
  table.columns.push_back({"half", report::Align::kLeft});
  table.columns.push_back({"change", report::Align::kLeft});
  const bool remarks = std::any_of(connections.begin(), connections.end(),
                                   [](const auto& one) { return !became(one).empty(); });
  if (remarks) table.columns.push_back({"remark", report::Align::kLeft});
  for (const MatchedConnection& one : connections) {
    if (table.rows.size() == kRowsMax) {
      table.notes.push_back(
          fmt::format("{} more; --json has all", format_count(connections.size() - kRowsMax)));
      break;
    }
    std::vector<report::Cell> row;
    if (!one_pid) row.push_back({std::to_string(one.pid), static_cast<double>(one.pid)});
    row.push_back({std::to_string(one.target.fd), static_cast<double>(one.target.fd)});
    row.push_back(report::text_cell(tcp::to_string(one.remote)));
    row.push_back(report::text_cell(half_of(one)));
    row.push_back(
        report::text_cell(one.treatable && one.treated ? change_text(one, settings) : ""));
    if (remarks) row.push_back(report::text_cell(became(one)));
    table.rows.push_back(std::move(row));
  }
  return table;
}

// ---- the plan -----------------------------------------------------------------------------------

std::string plan_sentence(const Treatment& treatment) {
  const auto& connections = treatment.connections();
  const auto treatable = static_cast<std::size_t>(std::count_if(
      connections.begin(), connections.end(), [](const auto& one) { return one.treatable; }));
  const auto treated = static_cast<std::size_t>(
      std::count_if(connections.begin(), connections.end(),
                    [](const auto& one) { return one.treatable && one.treated; }));
  const std::string what = to_string(treatment.options().settings);
  const std::string length = format_duration(treatment.options().length);
  const std::string subject = subject_of(treatment);
  const std::string end = treatment.options().keep ? "and then kept (--keep)" : "and then restored";
  switch (treatment.design()) {
    case Design::kSlices:
      return fmt::format(
          "{} of {} would get {} in half of {} random slices of {}, {}: fewer than {} connections "
          "are no two halves.",
          count_of(treated, "connection"), subject, what, treatment.slice_count(), length, end,
          kHalvesMin);
    case Design::kAll:
      return fmt::format("All {} of {} would be watched for {}, then get {} for {}, {}.",
                         count_of(treated, "connection"), subject,
                         format_duration(treatment.baseline_length()), what, length, end);
    case Design::kHalves:
      break;
  }
  return fmt::format(
      "{} of {} connections of {}, drawn with seed {}, would get {} for {}, after {} of watching, "
      "{}.",
      format_count(treated), format_count(treatable), subject, treatment.options().seed, what,
      length, format_duration(treatment.baseline_length()), end);
}

// ---- the result ---------------------------------------------------------------------------------

std::vector<std::string> unlike_warnings(const Measurement& measured) {
  if (!measured.before || !measured.before->shown()) return {};
  const Effect& before = *measured.before;
  const double share = std::abs(to_ms(before.difference)) / std::max(to_ms(before.untreated), 1e-6);
  if (share < kUnlike) return {};
  return {fmt::format(
      "The halves were not alike before the change: {} against {} at the P50. The difference "
      "afterwards is in part that one. Another --seed draws other halves.",
      format_duration(before.treated), format_duration(before.untreated))};
}

std::vector<std::string> measure_warnings(const Treatment& treatment,
                                          const TreatmentResult& result) {
  std::vector<std::string> warnings = unlike_warnings(result.measured);
  const Measurement& measured = result.measured;
  const std::size_t fewest =
      std::min(measured.treated.clusters.size(), measured.untreated.clusters.size());
  if (measured.source == MeasuredFrom::kTcpInfo) {
    warnings.push_back(fmt::format(
        "No packets: {}. Instead, the kernel's account of each connection was taken (TCP_INFO): "
        "the time with data under way, per segment. It has no requests in it, and is less certain.",
        result.no_capture ? result.no_capture->message : "no capture"));
  }
  if (measured.source == MeasuredFrom::kPackets && result.no_capture) {
    warnings.push_back("The capture broke off: " + result.no_capture->message + ".");
  }
  if (result.design == Design::kAll) {
    warnings.push_back("Before against after, without a control: whatever else changed is in it.");
  }
  if (result.design == Design::kHalves && fewest > 0 && fewest < kManyClusters) {
    warnings.push_back(fmt::format(
        "{} in the smaller half: requests of one connection are alike, so that this is a small "
        "sample.",
        count_of(fewest, "connection")));
  }
  const auto applied = static_cast<std::size_t>(
      std::count_if(result.connections.begin(), result.connections.end(),
                    [](const MatchedConnection& one) { return one.applied; }));
  for (const Setting& one : treatment.options().settings) {
    if (!is_non_sticky(one.option)) continue;
    warnings.push_back(fmt::format(
        "{} does not last: it was set again about every {}, and an application that wants it must "
        "set it after each read.",
        info(one.option).name, format_duration(refresh_period(applied))));
  }
  if (measured.turns_dropped > 0) {
    warnings.push_back(fmt::format("{} requests were over the limit; the figures are of a sample.",
                                   format_count(measured.turns_dropped)));
  }
  if (measured.turns_unplaced > 0) {
    warnings.push_back(fmt::format(
        "{} requests were left out: there were more connections than are kept apart, and the ones "
        "with the most waiting were kept. The figures lean towards those.",
        format_count(measured.turns_unplaced)));
  }
  return warnings;
}

void add_rollback(report::Report& report, const Treatment& treatment,
                  const TreatmentResult& result) {
  const Rollback& rollback = result.rollback;
  const auto note = [&](report::NoteKind kind, std::string text) {
    report.add(report::Note{kind, std::move(text)});
  };
  if (rollback.failed > 0) {
    note(report::NoteKind::kWarning,
         fmt::format("NOT restored on {}: {}", count_of(rollback.failed, "connection"),
                     rollback.text()));
  }
  if (result.kept) {
    const std::string undo = undo_command(treatment.options(), result.connections);
    note(report::NoteKind::kWarning,
         fmt::format("The change was kept on {}, as --keep asked. {}",
                     count_of(rollback.kept, "connection"),
                     undo.empty() ? "No one command undoes it, as not all connections had the same "
                                    "values before; --json has them."
                                  : "To undo it: " + undo));
    return;
  }
  std::string text;
  const auto add = [&text](std::size_t count, std::string_view what) {
    if (count == 0) return;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count_of(count, "connection"), what);
  };
  add(rollback.restored, "restored and read again");
  add(rollback.closed, "closed by then, nothing to restore");
  add(rollback.own, "changed by the process itself meanwhile, left so");
  if (!text.empty()) note(report::NoteKind::kNote, "Rolled back: " + text + ".");
  if (text.empty() && rollback.failed == 0) {
    note(report::NoteKind::kNote, "Nothing was left to restore.");
  }
  if (result.guardian_lost) {
    note(report::NoteKind::kWarning,
         "The guardian process ended before its time; this process did its work.");
  }
}

report::Cell latency_cell(const LatencyGroup& group, double quantile) {
  const double value = to_ms(group.quantile(quantile));
  return report::number_cell(value, value < 1 ? 3 : value < 10 ? 2 : 1);
}

void add_row(report::Table& table, const std::string& name, const LatencyGroup& group,
             bool requests) {
  if (group.count == 0) return;
  std::vector<report::Cell> row{report::text_cell(name), report::count_cell(group.clusters.size())};
  if (requests) row.push_back(report::count_cell(group.count));
  for (const double quantile : {0.5, 0.9, 0.99}) {
    row.push_back(latency_cell(group, quantile));
  }
  row.push_back(latency_cell(group, 1));
  table.rows.push_back(std::move(row));
}

report::Table figures_table(const TreatmentResult& result) {
  const Measurement& measured = result.measured;
  const bool requests = measured.source == MeasuredFrom::kPackets;
  const bool slices = result.design == Design::kSlices;
  report::Table table;
  table.title = requests ? "Latency of requests" : "Time with data under way, per segment";
  table.columns = {{"", report::Align::kLeft}, {slices ? "slices" : "connections"}};
  if (requests) table.columns.push_back({"requests"});
  for (const char* name : {"P50", "P90", "P99", "max"}) {
    table.columns.push_back({name, report::Align::kRight, "ms"});
  }
  add_row(table, "treated", measured.treated, requests);
  add_row(table, result.design == Design::kAll ? "before" : "untreated", measured.untreated,
          requests);
  add_row(table, "treated, before", measured.treated_before, requests);
  if (result.design != Design::kAll) {
    add_row(table, "untreated, before", measured.untreated_before, requests);
  }
  return table;
}

Json latency_json(const LatencyGroup& group, bool requests) {
  Json json;
  json["clusters"] = group.clusters.size();
  json["requests"] = requests ? Json(group.count) : Json(nullptr);
  const bool any = requests && group.count > 0;
  constexpr std::pair<const char*, double> kNames[] = {
      {"p50", 0.5}, {"p90", 0.9}, {"p95", 0.95}, {"p99", 0.99}, {"p999", 0.999}, {"max", 1}};
  for (const auto& [name, quantile] : kNames) {
    json[fmt::format("{}_ms", name)] = any ? Json(to_ms(group.quantile(quantile))) : Json(nullptr);
  }
  const stats::DurationInterval p99 = group.quantile_interval(0.99);
  json["p99_low_ms"] = any ? Json(to_ms(p99.low)) : Json(nullptr);
  json["p99_high_ms"] = any && p99.bounded ? Json(to_ms(p99.high)) : Json(nullptr);
  if (!requests) {
    json["busy_per_segment_ms"] =
        group.count > 0 ? Json(to_ms(group.quantile(0.5))) : Json(nullptr);
  }
  return json;
}

Json effect_json(const std::optional<Effect>& effect, bool requests) {
  Json json;
  const auto number = [&](bool there, Duration value) {
    return effect && there ? Json(to_ms(value)) : Json(nullptr);
  };
  const Effect some = effect.value_or(Effect{});
  json["p50_ms"] = number(requests, some.difference);
  json["low_ms"] = number(requests && some.bounded, some.low);
  json["high_ms"] = number(requests && some.bounded, some.high);
  if (!requests) {
    json["busy_per_segment"] = {{"difference_ms", number(true, some.difference)},
                                {"low_ms", number(some.bounded, some.low)},
                                {"high_ms", number(some.bounded, some.high)}};
  }
  json["shown"] = effect && effect->shown();
  return json;
}

Json states_json(const std::array<State, kOptions>& states, const std::vector<Setting>& settings) {
  Json json = Json::object();
  for (std::size_t i = 0; i < settings.size(); ++i) {
    Json& one = json[std::string(info(settings[i].option).name)];
    if (is_buffer(settings[i].option)) {
      one = {{"bytes", states[i].value}, {"locked", states[i].locked}};
    } else {
      one = states[i].value;
    }
  }
  return json;
}

Json connections_json(const std::vector<MatchedConnection>& connections,
                      const std::vector<Setting>& settings) {
  Json json = Json::array();
  for (const MatchedConnection& one : connections) {
    Json entry{
        {"pid", one.pid},
        {"fd", one.target.fd},
        {"local", tcp::to_string(one.local)},
        {"remote", tcp::to_string(one.remote)},
        {"half", one.treatable ? Json(one.treated ? "treated" : "untreated") : Json(nullptr)},
        {"applied", one.applied},
        {"late", one.late}};
    if (one.noted) entry["before"] = states_json(one.before, settings);
    if (one.applied) entry["after"] = states_json(one.after, settings);
    const std::string remark = became(one);
    if (!remark.empty()) entry["remark"] = remark;
    json.push_back(std::move(entry));
  }
  return json;
}

}  // namespace

namespace {

// The command to undo a change goes to all connections, also to those that were not changed: they
// must have had that value by themselves.
bool leaves_the_others(const std::vector<MatchedConnection>& connections,
                       const std::vector<Setting>& back) {
  return std::all_of(connections.begin(), connections.end(), [&](const MatchedConnection& one) {
    if (one.applied) return true;
    if (!one.noted)
      return one.outcome == StepOutcome::kClosed || one.outcome == StepOutcome::kDenied;
    if (one.outcome == StepOutcome::kOwn) return false;
    for (std::size_t i = 0; i < back.size(); ++i) {
      if (!satisfies(one.before[i], back[i])) return false;
    }
    return true;
  });
}

}  // namespace

report::Report plan_report(const Treatment& treatment, const report::RunInfo& run) {
  report::Report report;
  report.title = fmt::format("Treatment of {}: what it would do", subject_of(treatment));
  report.summary = plan_sentence(treatment);
  report.run = run;
  report.add(connections_table(treatment.connections(), treatment.options().settings));
  for (const Setting& one : treatment.options().settings) {
    report.add(report::Note{report::NoteKind::kNote,
                            fmt::format("{}: {}. Put back: {}.", info(one.option).name,
                                        info(one.option).what, info(one.option).rollback)});
  }
  report.add(report::Note{report::NoteKind::kNote, "Nothing was changed. --yes does it."});
  return report;
}

Json plan_json(const Treatment& treatment, const report::RunInfo& run) {
  Json json = report::envelope(run);
  json["set"] = to_string(treatment.options().settings);
  json["design"] = to_string(treatment.design());
  json["sentence"] = plan_sentence(treatment);
  json["done"] = false;
  json["connections"] = connections_json(treatment.connections(), treatment.options().settings);
  return json;
}

std::string sentence_of(const Treatment& treatment, const TreatmentResult& result) {
  const std::string what = to_string(treatment.options().settings);
  const Measurement& measured = result.measured;
  if (!measured.effect) {
    return fmt::format("No effect of {} can be told: {}.", what,
                       measured.treated.count == 0 && measured.untreated.count == 0
                           ? "there were no requests on these connections meanwhile"
                           : "only one of the two groups had requests");
  }
  const Effect& effect = *measured.effect;
  const std::string of = measured.source == MeasuredFrom::kPackets ? "P50" : "time per segment";
  const auto [with, without] =
      result.design == Design::kHalves   ? std::pair("treated half", "untreated half")
      : result.design == Design::kSlices ? std::pair("slices with it", "slices without")
                                         : std::pair("afterwards", "before");
  const std::string figures =
      fmt::format("{} {} ({}), {} ({}): {}", of, format_duration(effect.treated), with,
                  format_duration(effect.untreated), without, signed_duration(effect.difference));
  if (!effect.bounded) {
    return fmt::format("{} with {}; too few connections to say whether that is chance.", figures,
                       what);
  }
  if (!effect.shown()) {
    return fmt::format("No effect of {} is shown: {}, interval {}.", what, figures,
                       interval_text(effect));
  }
  return fmt::format("{} makes it {}: {}, interval {}.", what,
                     effect.difference < Duration{0} ? "faster" : "slower", figures,
                     interval_text(effect));
}

std::string undo_command(const TreatmentOptions& options,
                         const std::vector<MatchedConnection>& connections) {
  std::vector<Setting> back;
  for (const MatchedConnection& one : connections) {
    if (!one.applied) continue;
    std::vector<Setting> own;
    for (std::size_t i = 0; i < options.settings.size(); ++i) {
      own.push_back(setting_for(options.settings[i].option, one.before[i]));
    }
    if (!back.empty() && own != back) return "";
    back = std::move(own);
  }
  if (back.empty() || !leaves_the_others(connections, back)) return "";
  return fmt::format("tailward treat {}{} --set {} --all --keep --yes --for 1s",
                     options.pid ? fmt::format("--pid {}", *options.pid)
                                 : fmt::format("--port {}", options.port.value_or(0)),
                     options.remote_text.empty() ? "" : " --remote " + options.remote_text,
                     to_string(back));
}

report::Report to_report(const Treatment& treatment, const TreatmentResult& result,
                         const report::RunInfo& run) {
  report::Report report;
  report.title = fmt::format("Treatment of {}", subject_of(treatment));
  report.summary = sentence_of(treatment, result);
  report.run = run;
  if (result.process_ended) {
    report.add(report::Note{report::NoteKind::kWarning, "The process ended meanwhile."});
  }
  report.add(figures_table(result));
  for (const std::string& warning : measure_warnings(treatment, result)) {
    report.add(report::Note{report::NoteKind::kWarning, warning});
  }
  if (result.packets_lost > 0) {
    report.add(report::Note{
        report::NoteKind::kLost,
        fmt::format("{} of {} packets were not seen", format_count(result.packets_lost),
                    format_count(result.packets + result.packets_lost))});
  }
  add_rollback(report, treatment, result);
  report.add(connections_table(result.connections, treatment.options().settings));
  return report;
}

Json to_json(const Treatment& treatment, const TreatmentResult& result,
             const report::RunInfo& run) {
  const bool requests = result.measured.source == MeasuredFrom::kPackets;
  Json json = report::envelope(run);
  json["set"] = to_string(treatment.options().settings);
  json["design"] = to_string(result.design);
  json["measured_by"] = to_string(result.measured.source);
  json["sentence"] = sentence_of(treatment, result);
  json["treated"] = latency_json(result.measured.treated, requests);
  json["untreated"] = latency_json(result.measured.untreated, requests);
  json["effect"] = effect_json(result.measured.effect, requests);
  json["effect"]["method"] = "difference of medians; bootstrap over connections or slices, 95 %";
  json["before"] = {{"treated", latency_json(result.measured.treated_before, requests)},
                    {"untreated", latency_json(result.measured.untreated_before, requests)},
                    {"effect", effect_json(result.measured.before, requests)}};
  json["baseline_ms"] = to_ms(result.baseline);
  json["treated_for_ms"] = to_ms(result.treated_for);
  json["rolled_back"] = result.rolled_back;
  json["kept"] = result.kept;
  const Rollback& rollback = result.rollback;
  json["rollback"] = {{"restored", rollback.restored}, {"unchanged", rollback.unchanged},
                      {"closed", rollback.closed},     {"own", rollback.own},
                      {"kept", rollback.kept},         {"failed", rollback.failed}};
  if (result.kept) json["undo"] = undo_command(treatment.options(), result.connections);
  json["process_ended"] = result.process_ended;
  json["packets"] = result.packets;
  json["packets_lost"] = result.packets_lost;
  json["warnings"] = measure_warnings(treatment, result);
  json["connections"] = connections_json(result.connections, treatment.options().settings);
  return json;
}

}  // namespace tailward::treat
