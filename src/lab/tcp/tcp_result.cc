#include "lab/tcp/tcp_result.h"

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/units.h"

namespace tailward::lab {
namespace {

using report::Cell;
using report::Json;

Cell article_cell(const std::optional<double>& value, int decimals) {
  return value ? report::number_cell(*value, decimals, report::Emphasis::kMuted)
               : report::text_cell("–", report::Emphasis::kMuted);
}

Cell rtt_cell(const TcpArm& arm) { return report::text_cell(fmt::format("{:g}", to_ms(arm.rtt))); }

bool counted(const TcpArm& arm) { return arm.counts.source != CountSource::kNone; }

// A figure of the counted run; a dash where there was none.
Cell count_of(const TcpArm& arm, std::uint64_t count, CountSource least = CountSource::kTcpInfo) {
  const bool known =
      arm.counts.source == CountSource::kPackets || (counted(arm) && least == arm.counts.source);
  return known ? report::count_cell(count) : report::text_cell("–", report::Emphasis::kMuted);
}

// Round trips and batches.
report::Table time_table(const std::vector<TcpArm>& arms) {
  report::Table table;
  table.title = "Time";
  table.columns = {{"arm", report::Align::kLeft, ""},
                   {"bytes", report::Align::kRight, "", 3},
                   {"RTT", report::Align::kRight, "ms", 3},
                   {"samples", report::Align::kRight, "", 2},
                   {"P50", report::Align::kRight, "ms"},
                   {"article", report::Align::kRight, "ms", 1},
                   {"P99 (95 % interval)", report::Align::kRight, "ms"}};
  for (const TcpArm& arm : arms) {
    const stats::DurationInterval p99 = arm.latency.quantile_interval(0.99);
    table.rows.push_back({report::text_cell(arm.name), report::count_cell(arm.size), rtt_cell(arm),
                          report::count_cell(arm.latency.count()),
                          report::number_cell(arm.median_ms(), 3),
                          article_cell(arm.article.median_ms, 3),
                          report::interval_cell(arm.p99_ms(), to_ms(p99.low), to_ms(p99.high), 3)});
  }
  return table;
}

report::Table throughput_table(const std::vector<TcpArm>& arms) {
  report::Table table;
  table.title = "Throughput";
  table.columns = {{"arm", report::Align::kLeft, ""},
                   {"RTT", report::Align::kRight, "ms", 3},
                   {"SO_SNDBUF", report::Align::kRight, "KiB", 2},
                   {"SO_RCVBUF", report::Align::kRight, "KiB", 2},
                   {"throughput", report::Align::kRight, "MB/s"},
                   {"beside default", report::Align::kRight, ""},
                   {"article", report::Align::kRight, "MB/s", 1},
                   {"steady", report::Align::kRight, "MB/s", 1},
                   {"in flight", report::Align::kRight, "KiB"},
                   {"RTT then", report::Align::kRight, "ms", 1},
                   {"in flight ÷ RTT", report::Align::kRight, "MB/s"}};
  for (const TcpArm& arm : arms) {
    const TcpArm* free = find_arm(arms, "default", arm.size, arm.rtt);
    const bool is_free = free == &arm || free == nullptr;
    const double limit = arm.window_limit();
    table.rows.push_back(
        {report::text_cell(arm.name), rtt_cell(arm),
         report::number_cell(arm.send_buffer / 1024.0, 0),
         report::number_cell(arm.receive_buffer / 1024.0, 0),
         report::number_cell(arm.throughput(), arm.throughput() < 10 ? 2 : 0),
         is_free
             ? report::text_cell("–", report::Emphasis::kMuted)
             : report::change_cell(arm.throughput(), free->throughput(), report::Better::kHigher),
         article_cell(arm.article.mb_per_s, 0),
         report::number_cell(arm.steady_throughput(), arm.steady_throughput() < 10 ? 2 : 0),
         counted(arm) ? report::number_cell(arm.counts.in_flight_max / 1024.0, 1)
                      : report::text_cell("–", report::Emphasis::kMuted),
         report::number_cell(to_ms(arm.smoothed_rtt), 2),
         limit > 0 ? report::number_cell(limit, limit < 10 ? 2 : 0)
                   : report::text_cell("–", report::Emphasis::kMuted)});
  }
  table.notes = {
      "SO_SNDBUF and SO_RCVBUF as the kernel counts: twice what was asked for. Default: "
      "where its autotuning begins",
      "in flight: the most that was not yet acknowledged"};
  return table;
}

report::Table counts_table(const std::vector<TcpArm>& arms) {
  report::Table table;
  table.title = "On the wire, in a run of its own";
  table.columns = {{"arm", report::Align::kLeft, ""},
                   {"writes", report::Align::kRight, ""},
                   {"calls", report::Align::kRight, "", 2},
                   {"segments", report::Align::kRight, ""},
                   {"per write", report::Align::kRight, ""},
                   {"delayed ACKs", report::Align::kRight, ""},
                   {"window closed", report::Align::kRight, ""},
                   {"timer waits", report::Align::kRight, ""},
                   {"retransmitted", report::Align::kRight, "", 1},
                   {"counted by", report::Align::kLeft, "", 3}};
  std::uint64_t lost = 0;
  for (const TcpArm& arm : arms) {
    const TcpCounts& counts = arm.counts;
    lost += counts.lost;
    table.rows.push_back({report::text_cell(arm.name), report::count_cell(counts.messages),
                          report::count_cell(counts.write_calls + counts.read_calls),
                          count_of(arm, counts.segments),
                          report::number_cell(counts.segments_per_message(), 2),
                          count_of(arm, counts.delayed_acks, CountSource::kPackets),
                          count_of(arm, counts.zero_windows, CountSource::kPackets),
                          count_of(arm, counts.timer_waits, CountSource::kPackets),
                          count_of(arm, counts.retransmissions),
                          report::text_cell(std::string(to_string(counts.source)))});
  }
  table.notes = {
      "calls: the client's writes and the server's reads; segments: with data, from the "
      "client; timer waits: silences that the client's kernel ended, 200 ms mostly"};
  if (lost > 0) table.notes.push_back(fmt::format("the capture lost {} packets", lost));
  return table;
}

report::CurveChart curves(const std::vector<TcpArm>& arms) {
  report::CurveChart chart;
  chart.title = "Latency by percentile";
  chart.log_y = true;
  for (const TcpArm& arm : arms) {
    chart.series.push_back(
        {arm.name, report::tail_points(arm.latency.count(), [&arm](double quantile) {
           return to_ms(arm.latency.quantile(quantile));
         })});
  }
  return chart;
}

Json arm_json(const TcpArm& arm) {
  const TcpCounts& counts = arm.counts;
  const stats::DurationInterval p99 = arm.latency.quantile_interval(0.99);
  Json json{{"name", arm.name},
            {"option", arm.option},
            {"size", arm.size},
            {"rtt_ms", to_ms(arm.rtt)},
            {"samples", arm.latency.count()},
            {"median_ms", arm.median_ms()},
            {"p99_ms", arm.p99_ms()},
            {"p99_low_ms", to_ms(p99.low)},
            {"p99_high_ms", to_ms(p99.high)},
            {"mb_per_s", arm.throughput()},
            {"steady_mb_per_s", arm.steady_throughput()},
            {"messages", arm.messages},
            {"bytes", arm.bytes},
            {"seconds", arm.seconds}};
  Json wire{{"source", to_string(counts.source)},
            {"messages", counts.messages},
            {"bytes", counts.bytes},
            {"lost", counts.lost}};
  const auto put = [&](const char* name, const auto& value, bool known) {
    json[name] = known ? Json(value) : Json();
  };
  const bool packets = counts.source == CountSource::kPackets;
  put("segments", counts.segments, counted(arm));
  put("segments_per_message", counts.segments_per_message(), counted(arm));
  put("syscalls", counts.write_calls + counts.read_calls, counted(arm));
  put("write_calls", counts.write_calls, counted(arm));
  put("read_calls", counts.read_calls, counted(arm));
  put("retransmissions", counts.retransmissions, counted(arm));
  put("delayed_acks", counts.delayed_acks, packets);
  put("zero_windows", counts.zero_windows, packets);
  put("timer_waits", counts.timer_waits, packets);
  put("in_flight_max", counts.in_flight_max, counted(arm));
  put("window_max", counts.window_max, counted(arm));
  json["counted"] = std::move(wire);
  if (arm.smoothed_rtt > Duration{0}) json["smoothed_rtt_ms"] = to_ms(arm.smoothed_rtt);
  if (arm.send_buffer > 0) json["sndbuf"] = arm.send_buffer;
  if (arm.receive_buffer > 0) json["rcvbuf"] = arm.receive_buffer;
  Json article = Json::object();
  if (arm.article.median_ms) article["median_ms"] = *arm.article.median_ms;
  if (arm.article.mb_per_s) article["mb_per_s"] = *arm.article.mb_per_s;
  json["article"] = std::move(article);
  return json;
}

}  // namespace

void TcpResult::add_to(report::Report& report) const {
  if (arms.empty()) return;
  report.add(verdict);
  report.add(shows_throughput ? throughput_table(arms) : time_table(arms));
  report.add(counts_table(arms));
  add_checks(report);
  if (shows_curves) report.add(curves(arms));
  add_notes(report);
}

report::Json TcpResult::arms_json() const {
  Json json = Json::array();
  for (const TcpArm& arm : arms) json.push_back(arm_json(arm));
  return json;
}

}  // namespace tailward::lab
