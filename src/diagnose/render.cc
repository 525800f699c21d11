#include "diagnose/render.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <utility>

#include "base/units.h"

namespace tailward::diagnose {
namespace {

using report::Align;
using report::Cell;
using report::Emphasis;
using report::Json;

constexpr std::size_t kRequestsMin = 20;  // fewer have no P99 worth the name
constexpr std::size_t kPicturesMax = 3;   // of proving packets
// Of each: around the stall.
constexpr std::size_t kPacketsBefore = 6;
constexpr std::size_t kPacketsShown = 16;

double share_of(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// ---- advice on hedging ------------------------------------------------------------------------

// A cause that strikes one connection or packet and leaves the next attempt alone.
bool strikes_at_random(diag::Cause cause) {
  return cause == diag::Cause::kPacketLoss || cause == diag::Cause::kSynLoss;
}

// The share of requests that a hedge delay at the P95 of unstalled requests would hedge.
std::optional<double> predicted_trigger_rate(const Diagnosis& diagnosis) {
  std::vector<std::int64_t> healthy;
  for (const diag::Turn& turn : diagnosis.packets.turns) {
    std::int64_t stalled_us = 0;
    for (const std::uint32_t us : turn.stalled_us) stalled_us += us;
    healthy.push_back(std::max<std::int64_t>(0, turn.total.count() - stalled_us * 1000));
  }
  if (healthy.size() < kRequestsMin) return std::nullopt;
  const auto at = healthy.begin() + static_cast<std::ptrdiff_t>(healthy.size() * 95 / 100);
  std::nth_element(healthy.begin(), at, healthy.end());
  const Duration delay{*at};
  const auto over = std::count_if(diagnosis.packets.turns.begin(), diagnosis.packets.turns.end(),
                                  [delay](const diag::Turn& turn) { return turn.total > delay; });
  return share_of(static_cast<std::uint64_t>(over), healthy.size());
}

// ---- the report -------------------------------------------------------------------------------

std::string what_was_seen(const Diagnosis& diagnosis) {
  const diag::PacketAnalysis& packets = diagnosis.packets;
  if (packets.packets == 0) return "No TCP segment was seen.";
  return fmt::format("{} requests on {} connections, {} TCP segments in {}.",
                     format_count(packets.turns_seen), format_count(packets.connections_seen),
                     format_count(packets.packets), format_duration(diagnosis.window));
}

report::Table latency_table(const Diagnosis& diagnosis) {
  const stats::Histogram& latency = diagnosis.packets.latency;
  report::Table table;
  table.title = "Requests";
  table.columns = {{"", Align::kLeft}, {"latency", Align::kRight, "ms"}, {"95 % interval"}};
  constexpr std::array<double, 4> kQuantiles{0.5, 0.9, 0.99, 0.999};
  for (const double q : kQuantiles) {
    if (static_cast<double>(latency.count()) * (1 - q) < 1 && q > 0.5) break;
    const stats::DurationInterval interval = latency.quantile_interval(q);
    std::string name = format_percentile(q);
    name[0] = 'P';
    table.rows.push_back(
        {report::text_cell(name), report::number_cell(to_ms(latency.quantile(q)), 2),
         report::text_cell(interval.bounded ? fmt::format("{:.2f}–{:.2f}", to_ms(interval.low),
                                                          to_ms(interval.high))
                                            : fmt::format("{:.2f} or more", to_ms(interval.low)))});
  }
  table.rows.push_back(
      {report::text_cell("longest"), report::number_cell(to_ms(latency.max()), 2), Cell{}});
  table.notes = {
      "A request runs from its first byte to the acknowledgement of the answer's last, as the "
      "packets show it."};
  return table;
}

report::Table parts_table(const Diagnosis& diagnosis) {
  report::Table table;
  table.title = fmt::format("Where slow requests (from {} on) differ from normal ones",
                            format_duration(diagnosis.network.slow_from));
  table.columns = {{"part", Align::kLeft},
                   {"slow", Align::kRight, "ms"},
                   {"normal", Align::kRight, "ms"},
                   {"extra", Align::kRight, "ms"},
                   {"of slow ones"}};
  for (const auto& part : diagnosis.network.parts) {
    table.rows.push_back({report::text_cell(part.name), report::number_cell(to_ms(part.slow), 2),
                          report::number_cell(to_ms(part.normal), 2),
                          report::number_cell(to_ms(part.extra), 2),
                          report::share_cell(part.share_of_slow)});
  }
  table.notes = {"Means per request. The lower parts lie within the upper ones."};
  return table;
}

findings::Statement finding_block(const diag::Finding& finding, std::size_t number) {
  findings::Statement block = finding;
  block.sentence = fmt::format("{}. {} ({}): {}", number, to_string(finding.cause),
                               to_string(finding.certainty), finding.sentence);
  for (const std::string& missing : finding.missing) {
    block.evidence.push_back({"not known: " + missing});
  }
  block.evidence.push_back({"remedy: " + finding.remedy});
  block.evidence.push_back({"verify: " + finding.verify});
  if (finding.predicted_p99) {
    block.evidence.push_back({fmt::format("without it, the P99 of these requests would be {}",
                                          format_duration(*finding.predicted_p99))});
  }
  return block;
}

// ---- the pictures -----------------------------------------------------------------------------

std::string segment_label(const tcp::Segment& segment, std::uint32_t seq_base,
                          std::uint32_t ack_base) {
  std::string text;
  if (segment.syn) text += segment.ack_flag ? "SYN-ACK " : "SYN ";
  if (segment.fin) text += "FIN ";
  if (segment.rst) text += "RST ";
  if (segment.payload > 0) {
    text += fmt::format("{} B at {} ", segment.payload, segment.seq - seq_base);
  } else if (text.empty()) {
    text += "ACK ";
  }
  if (segment.ack_flag && !segment.syn) text += fmt::format("ack {} ", segment.ack - ack_base);
  // Windows are scaled, and mostly by a factor that is not in the packet; none is none.
  if (segment.window == 0 && segment.ack_flag && !segment.rst) text += "window 0";
  return text;
}

// The packets before and after the stall.
std::span<const tcp::Segment> around(const diag::ProofPackets& proof) {
  const auto& all = proof.segments;
  const auto at = std::find_if(all.begin(), all.end(), [&](const tcp::Segment& segment) {
    return segment.at >= proof.stall.from;
  });
  const auto before = static_cast<std::size_t>(at - all.begin());
  const std::size_t first = before - std::min(before, kPacketsBefore);
  return std::span(all).subspan(first, std::min(kPacketsShown, all.size() - first));
}

// Of what was found: those of the costliest kind first.
std::vector<const diag::ProofPackets*> proofs_to_show(const Diagnosis& diagnosis) {
  const diag::PacketAnalysis& packets = diagnosis.packets;
  std::vector<const diag::ProofPackets*> shown;
  if (diagnosis.network.findings.empty()) return shown;
  for (const diag::ProofPackets& proof : packets.proofs) {
    const bool whole = !proof.segments.empty() && proof.connection < packets.connections.size();
    if (whole) shown.push_back(&proof);
  }
  std::map<std::pair<diag::StallKind, bool>, Duration> costs;
  for (const diag::StallPattern& pattern : packets.patterns) {
    Duration& cost = costs[{pattern.kind, pattern.sender_is_client}];
    cost = std::max(cost, pattern.total);
  }
  const auto cost = [&costs](const diag::ProofPackets* proof) {
    return costs[{proof->stall.kind, proof->stall.sender_is_client}];
  };
  std::stable_sort(
      shown.begin(), shown.end(),
      [&](const diag::ProofPackets* a, const diag::ProofPackets* b) { return cost(a) > cost(b); });
  shown.resize(std::min(shown.size(), kPicturesMax));
  return shown;
}

report::SequenceChart picture_of(const Diagnosis& diagnosis, const diag::ProofPackets& proof) {
  const diag::ConnectionSummary& connection = diagnosis.packets.connections[proof.connection];
  report::SequenceChart chart;
  chart.title = fmt::format("{}: the packets that show it", diag::to_string(proof.stall.kind));
  chart.left = "client " + to_string(connection.client);
  chart.right = "server " + to_string(connection.server);
  const auto from_client = [&](const tcp::Segment& segment) {
    return segment.from == connection.client;
  };
  // Numbers that people can compare: from the first byte of the picture on.
  std::array<std::optional<std::uint32_t>, 2> base;
  const std::span<const tcp::Segment> shown = around(proof);
  for (const tcp::Segment& segment : shown) {
    auto& own = base[from_client(segment) ? 0 : 1];
    auto& other = base[from_client(segment) ? 1 : 0];
    if (!own) own = segment.seq;
    if (!other && segment.ack_flag) other = segment.ack;
  }
  if (shown.empty()) return chart;
  const Duration origin = shown.front().at;
  for (const tcp::Segment& segment : shown) {
    const bool left = from_client(segment);
    const bool proves = std::find(proof.stall.packets.begin(), proof.stall.packets.end(),
                                  segment.number) != proof.stall.packets.end();
    chart.arrows.push_back({.seconds = to_seconds(segment.at - origin),
                            .from_left = left,
                            .label = segment_label(segment, base[left ? 0 : 1].value_or(0),
                                                   base[left ? 1 : 0].value_or(0)),
                            .emphasis = proves ? Emphasis::kBad : Emphasis::kNone,
                            .packet = segment.number});
  }
  chart.gaps.push_back({.from_s = to_seconds(proof.stall.from - origin),
                        .until_s = to_seconds(proof.stall.until - origin),
                        .label = std::string(diag::to_string(proof.stall.kind))});
  return chart;
}

report::Table sources_table(const Diagnosis& diagnosis) {
  report::Table table;
  table.title = "What this rests on";
  table.columns = {{"source", Align::kLeft}, {"", Align::kLeft}, {"", Align::kLeft}};
  for (const Source& source : diagnosis.sources) {
    table.rows.push_back(
        {report::text_cell(source.name),
         report::text_cell(source.state,
                           source.state == "used" ? Emphasis::kGood : Emphasis::kMuted),
         report::text_cell(source.note)});
  }
  return table;
}

void add_losses(const Diagnosis& diagnosis, report::Report& report) {
  using report::NoteKind;
  const diag::PacketAnalysis& packets = diagnosis.packets;
  if (diagnosis.capture.lost > 0) {
    report.add(report::Note{NoteKind::kLost,
                            fmt::format("{} packets were dropped by the capture: some stalls may "
                                        "be missing or seem longer",
                                        format_count(diagnosis.capture.lost))});
  }
  if (packets.connections_let_go > 0) {
    report.add(report::Note{NoteKind::kLost,
                            fmt::format("{} connections were let go: too many were open at once",
                                        format_count(packets.connections_let_go))});
  }
  for (const std::string& warning : diagnosis.warnings) {
    report.add(report::Note{NoteKind::kWarning, warning});
  }
}

}  // namespace

HedgingAdvice hedging_advice(const Diagnosis& diagnosis) {
  const std::optional<double> rate = predicted_trigger_rate(diagnosis);
  const auto& findings = diagnosis.network.findings;
  if (findings.empty() && diagnosis.packets.turns_seen == 0) {
    return {"unknown", rate, "no request was seen"};
  }
  if (findings.empty()) {
    return {"unknown", rate,
            "the network holds nothing back; whether a second attempt would be quicker is decided "
            "above it"};
  }
  const diag::Finding& first = findings.front();
  if (strikes_at_random(first.cause)) {
    return {"maybe", rate,
            fmt::format("{} strikes single packets: a second attempt on another connection would "
                        "mostly be spared. It hides the loss, it does not mend it",
                        to_string(first.cause))};
  }
  return {"no", rate,
          fmt::format("{} would strike the second attempt as well: mend it first",
                      to_string(first.cause))};
}

Json to_json(const diag::Finding& finding) {
  Json json{{"cause", to_string(finding.cause)},
            {"layer", to_string(finding.layer)},
            {"certainty", to_string(finding.certainty)},
            {"sentence", finding.sentence},
            {"evidence", Json::array()},
            {"missing", finding.missing},
            {"remedy", finding.remedy},
            {"verify", finding.verify},
            {"predicted_p99_ms", report::ms_or_null(finding.predicted_p99)},
            {"cost_ms", to_ms(finding.cost)},
            {"share_of_slow", finding.share_of_slow}};
  for (const findings::Evidence& evidence : finding.evidence) {
    json["evidence"].push_back({{"text", evidence.text}, {"packets", evidence.packets}});
  }
  return json;
}

Json to_json(const Diagnosis& diagnosis, const report::RunInfo& run) {
  const diag::PacketAnalysis& packets = diagnosis.packets;
  Json json = report::envelope(run);
  json["requests"] = packets.turns_seen;
  json["connections"] = packets.connections_seen;
  json["window_ms"] = to_ms(diagnosis.window);
  Json latency = Json::object();
  constexpr std::array<std::pair<const char*, double>, 5> kQuantiles{
      {{"p50_ms", 0.5}, {"p90_ms", 0.9}, {"p95_ms", 0.95}, {"p99_ms", 0.99}, {"p999_ms", 0.999}}};
  for (const auto& [name, quantile] : kQuantiles) {
    latency[name] =
        packets.latency.count() == 0 ? Json() : Json(to_ms(packets.latency.quantile(quantile)));
  }
  json["latency"] = latency;
  json["slow_from_ms"] = to_ms(diagnosis.network.slow_from);
  json["parts"] = Json::array();
  for (const auto& part : diagnosis.network.parts) {
    json["parts"].push_back({{"name", part.name},
                             {"slow_ms", to_ms(part.slow)},
                             {"normal_ms", to_ms(part.normal)},
                             {"extra_ms", to_ms(part.extra)},
                             {"share_of_slow", part.share_of_slow}});
  }
  json["unexplained_ms"] = to_ms(diagnosis.network.unexplained);
  json["verdict"] = diagnosis.network.sentence;
  json["findings"] = Json::array();
  for (const diag::Finding& finding : diagnosis.network.findings) {
    json["findings"].push_back(to_json(finding));
  }
  const HedgingAdvice advice = hedging_advice(diagnosis);
  json["hedging"] = {{"advice", advice.advice},
                     {"trigger_rate", advice.trigger_rate ? Json(*advice.trigger_rate) : Json()},
                     {"reason", advice.reason}};
  json["sources"] = Json::object();
  json["notes"] = diagnosis.warnings;
  for (const Source& source : diagnosis.sources) {
    json["sources"][source.name] = source.state;
    if (!source.note.empty()) json["source_notes"][source.name] = source.note;
  }
  json["lost_events"] = diagnosis.capture.lost + packets.connections_let_go;
  json["packets"] = {{"captured", diagnosis.capture.packets},
                     {"tcp", packets.packets},
                     {"retransmissions", packets.retransmissions},
                     {"duplicates", packets.duplicates},
                     {"reordered", packets.reordered},
                     {"one_sided_connections", packets.one_sided},
                     {"malformed", diagnosis.capture.malformed},
                     {"cut", diagnosis.capture.cut}};
  json["overhead"] = {{"cpu_ms", report::ms_or_null(diagnosis.cpu)}};
  return json;
}

report::Report to_report(const Diagnosis& diagnosis, const report::RunInfo& run) {
  report::Report report;
  report.title = "Diagnosis";
  report.run = run;
  report.summary = fmt::format("{} {}", what_was_seen(diagnosis), diagnosis.network.sentence);
  add_losses(diagnosis, report);
  std::size_t number = 0;
  for (const diag::Finding& finding : diagnosis.network.findings) {
    report.add(finding_block(finding, ++number));
  }
  std::size_t pictures = 0;
  for (const diag::ProofPackets* proof : proofs_to_show(diagnosis)) {
    report::SequenceChart picture = picture_of(diagnosis, *proof);
    picture.in_terminal = pictures++ == 0;
    report.add(std::move(picture));
  }
  if (diagnosis.packets.latency.count() > 0) report.add(latency_table(diagnosis));
  if (!diagnosis.network.parts.empty()) report.add(parts_table(diagnosis));
  if (!diagnosis.network.findings.empty()) {
    const HedgingAdvice advice = hedging_advice(diagnosis);
    report.add(report::Note{report::NoteKind::kNote, fmt::format("Would hedging help? {}: {}.",
                                                                 advice.advice, advice.reason)});
  }
  report.add(sources_table(diagnosis));
  return report;
}

}  // namespace tailward::diagnose
