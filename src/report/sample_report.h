// A report as `lab three-layer` would make it, for tests and for looking at. Made-up figures in the
// neighbourhood of the published ones.
#pragma once

#include <cmath>

#include "report/report.h"

namespace tailward::report {

inline Table sample_table() {
  Table table;
  table.title = "Arms";
  table.columns = {{"arm", Align::kLeft},
                   {"P50", Align::kRight, "ms"},
                   {"change", Align::kRight, "", 2},
                   {"P95", Align::kRight, "ms", 1},
                   {"P99 (95 % interval)", Align::kRight, "ms"},
                   {"requests at the server", Align::kRight},
                   {"trigger rate"},
                   {"lock wait", Align::kRight, "s"},
                   {"what it does", Align::kLeft, "", 3}};
  table.rows = {
      {text_cell("none"), number_cell(55.21), text_cell(""), number_cell(364.9),
       interval_cell(482.9, 471.2, 489.0), count_cell(2000), share_cell(0), number_cell(37.29),
       text_cell("one lock, no hedging")},
      {text_cell("  published", Emphasis::kMuted), number_cell(55.2, 1, Emphasis::kMuted),
       text_cell(""), number_cell(364.9, 1, Emphasis::kMuted),
       number_cell(482.9, 1, Emphasis::kMuted), count_cell(2000, Emphasis::kMuted)},
      {text_cell("fixed"), number_cell(156.04), change_cell(156.04, 55.21, Better::kLower),
       number_cell(206.3), interval_cell(387.2, 237.5, 398.8), count_cell(3992), share_cell(0.9965),
       number_cell(465.15, 1, Emphasis::kBad), text_cell("one lock, a second copy after 50 ms")},
      {text_cell("sharded-fixed"), number_cell(34.4), change_cell(34.4, 55.21, Better::kLower),
       number_cell(82.3), interval_cell(103.6, 98.1, 263.2), count_cell(2265),
       share_cell(0.147, Emphasis::kGood), number_cell(2.31, 1, Emphasis::kGood),
       text_cell("16 locks, the same hedging")}};
  table.notes = {
      "2,000 requests per arm, closed loop, 50 in flight; P99 from 20 samples beyond it."};
  return table;
}

inline CurveChart sample_curves() {
  // Lognormal-like quantiles: enough to see shapes by.
  const auto curve = [](double median, double decade, double tail) {
    return tail_points(2000, [=](double q) {
      const double x = -std::log10(1 - q);
      return median * std::pow(x / 0.30103, decade) + tail * std::max(0.0, x - 1);
    });
  };
  CurveChart chart;
  chart.title = "Latency by percentile";
  chart.series = {{"none", curve(55.2, 0.9, 150)},
                  {"fixed", curve(156, 0.15, 35)},
                  {"sharded-fixed", curve(34.4, 0.5, 25)},
                  {"none, published", {{0.5, 55.2}, {0.95, 364.9}, {0.99, 482.9}}, Line::kMarkers}};
  return chart;
}

inline TimelineChart sample_timeline() {
  TimelineChart chart;
  chart.title = "What hedging does to the server";
  TimeSeries trigger{"trigger rate", "%", {}, Side::kLeft};
  TimeSeries lock{"lock wait", "ms/s", {}, Side::kRight};
  for (int at = 0; at <= 120; ++at) {
    const double t = at * 0.5;
    const double ripple = 1 + 0.08 * std::sin(at * 1.7);
    const double on = t < 15 ? 0 : t < 40 ? 1 - std::exp(-(t - 15) / 4) : std::exp(-(t - 40) / 2);
    trigger.points.push_back({t, std::min(100.0, (4 + 92 * on) * ripple)});
    const double queue = t < 15   ? 0
                         : t < 40 ? 1 - std::exp(-(t - 15) / 9)
                                  : std::exp(-(t - 40) / 4);
    lock.points.push_back({t, (640 + 7600 * queue) * (2 - ripple)});
  }
  chart.series = {trigger, lock};
  chart.events = {{15, "fixed hedging on"}, {40, "lock sharded"}, {43, "breaker closed"}};
  chart.levels = {{15, "healthy below 15 %", Side::kLeft}, {50, "cause above 50 %", Side::kLeft}};
  return chart;
}

inline SequenceChart sample_sequence() {
  SequenceChart chart;
  chart.title =
      "One of the stalls: the second small write waits for the acknowledgement of the first";
  chart.left = "client 10.0.0.1:40718";
  chart.right = "server 10.0.0.2:8080";
  chart.arrows = {
      {0.1, true, "32 bytes, PSH", Emphasis::kNone, 104},
      {0.100021, false, "120 bytes of the answer before", Emphasis::kMuted, 105},
      {0.1400412, false, "ACK, delayed", Emphasis::kBad, 106},
      {0.1400603, true, "32 bytes, PSH: held until now", Emphasis::kNone, 107},
      {0.1400711, false, "ACK", Emphasis::kNone, 108},
      {0.1402, false, "240 bytes, PSH: the answer", Emphasis::kGood, 109},
      {0.3612, true, "FIN", Emphasis::kNone, 110},
      {0.3612104, false, "FIN", Emphasis::kNone, 111},
  };
  chart.gaps = {{0.100022, 0.1400603, "held by Nagle's algorithm (no TCP_NODELAY)"}};
  return chart;
}

inline Report sample_report() {
  Report report;
  report.title = "Three layers: one lock, hedging, sharded locks";
  report.summary =
      "Hedging a lock that is short of capacity makes the client's P99 look better and the service "
      "worse: the median triples and the server does twice the work. Sharding the lock first lets "
      "the "
      "same hedging do its job.";
  report.run = {"tailward lab three-layer --seed 42",
                "0.1.0",
                42,
                "2026-11-30T14:26:03Z",
                std::chrono::milliseconds(48200),
                {2, "Linux 6.1.0"},
                false};
  report.add(findings::Statement{
      findings::Layer::kCause,
      "Hedging feeds the fault: the trigger rate is 99.6 %, and the lock waits 12.5 "
      "times as long while it is on.",
      {{"proven: lock wait 37.3 s without hedging, 465.2 s with it"},
       {"consistent: the P50 of first attempts rose from 55 to 156 ms"},
       {"fix the lock first, then hedge just below P99 (≈ 200 ms)"}}});
  report.add(sample_table());
  report.add(sample_curves());
  report.add(sample_timeline());
  report.add(sample_sequence());
  report.add(Checks{"What the experiment claims",
                    {{"hedging alone worsens P50", true, "×2.8", "> 1.5", 2.8},
                     {"sharding brings the trigger rate down", true, "14.7 %", "≤ 20 %", 0.147},
                     {"sharding and hedging together cut P99 to less than a quarter", false,
                      "103.6 ms", "≤ 100 ms", 103.6}}});
  report.add(Note{NoteKind::kLost, "3 of 7,257 lock events; the lock wait is a lower bound."});
  report.add(Note{NoteKind::kNote, "The published run used Go 1.26 on another machine."});
  return report;
}

}  // namespace tailward::report
