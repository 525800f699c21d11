#include "report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/units.h"

namespace tailward::report {
namespace {

constexpr std::string_view kNoValue = "–";

// "1,234.5", with the minus sign that is as wide as a plus.
std::string grouped(double value, int decimals) {
  std::string digits = fmt::format("{:.{}f}", std::abs(value), decimals);
  const std::size_t whole = std::min(digits.find('.'), digits.size());
  for (std::size_t at = whole; at > 3; at -= 3) digits.insert(at - 3, ",");
  const bool zero = digits.find_first_of("123456789") == std::string::npos;
  return value < 0 && !zero ? "−" + digits : digits;
}

double tail_x(double quantile) { return -std::log10(1 - quantile); }

// The value of a series at a quantile; NaN outside its range and, for dots, between them.
double value_at(const CurveSeries& series, double quantile) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  constexpr double kSame = 1e-9;
  const QuantilePoint* before = nullptr;
  for (const QuantilePoint& point : series.points) {
    if (std::abs(point.quantile - quantile) < kSame) return point.ms;
    if (point.quantile > quantile) {
      if (before == nullptr || point.quantile >= 1 || series.line == Line::kMarkers) return kNone;
      const double from = tail_x(before->quantile);
      const double share = (tail_x(quantile) - from) / (tail_x(point.quantile) - from);
      return before->ms + share * (point.ms - before->ms);
    }
    before = &point;
  }
  return kNone;
}

// So that latencies of a few microseconds still have digits.
int decimals_for(double smallest) { return smallest < 1 ? 3 : smallest < 10 ? 2 : 1; }

}  // namespace

Cell text_cell(std::string text, Emphasis emphasis) { return {std::move(text), {}, emphasis}; }

Cell number_cell(double value, int decimals, Emphasis emphasis) {
  if (!std::isfinite(value)) return {std::string(kNoValue), {}, Emphasis::kMuted};
  return {grouped(value, decimals), value, emphasis};
}

Cell count_cell(std::uint64_t count, Emphasis emphasis) {
  return {format_count(count), static_cast<double>(count), emphasis};
}

Cell share_cell(double share, Emphasis emphasis) {
  if (!std::isfinite(share)) return {std::string(kNoValue), {}, Emphasis::kMuted};
  return {format_share(share), share, emphasis};
}

Cell change_cell(double value, double base, Better better, double notable) {
  if (!(base > 0) || !std::isfinite(value)) {
    return {std::string(kNoValue), {}, Emphasis::kMuted};
  }
  constexpr double kSaidAsFactor = 10;
  const double ratio = value / base;
  const double change = ratio - 1;
  Emphasis emphasis = Emphasis::kNone;
  if (better != Better::kNeither && std::abs(change) >= notable) {
    emphasis = (change < 0) == (better == Better::kLower) ? Emphasis::kGood : Emphasis::kBad;
  }
  if (ratio >= kSaidAsFactor) return {"×" + grouped(ratio, 1), change, emphasis};
  const std::string percent = grouped(change * 100, std::abs(change) < 0.9995 ? 1 : 0);
  return {(change > 0 ? "+" : "") + percent + " %", change, emphasis};
}

Cell interval_cell(double value, double low, double high, int decimals, Emphasis emphasis) {
  Cell cell = number_cell(value, decimals, emphasis);
  if (cell.number && std::isfinite(low) && std::isfinite(high)) {
    cell.text += fmt::format(" ({}–{})", grouped(low, decimals), grouped(high, decimals));
  }
  return cell;
}

std::vector<QuantilePoint> tail_points(std::uint64_t samples,
                                       const std::function<double(double)>& quantile_ms) {
  constexpr int kPerDecade = 20;
  constexpr double kMostDecades = 5;
  constexpr double kFirst = 0.01;
  std::vector<QuantilePoint> points;
  if (samples == 0) return points;
  const double decades = std::min(std::log10(static_cast<double>(samples)), kMostDecades);
  points.push_back({kFirst, quantile_ms(kFirst)});
  for (int step = 1; step <= static_cast<int>(decades * kPerDecade + 1e-9); ++step) {
    const double quantile = 1 - std::pow(10, -static_cast<double>(step) / kPerDecade);
    points.push_back({quantile, quantile_ms(quantile)});
  }
  return points;
}

std::vector<std::string> facts_of(const RunInfo& run) {
  std::vector<std::string> facts;
  if (!run.command.empty()) facts.push_back(run.command);
  if (!run.version.empty()) facts.push_back("version " + run.version);
  facts.push_back(fmt::format("seed {}", run.seed));
  if (!run.started.empty()) facts.push_back("started " + run.started);
  if (run.duration) facts.push_back("took " + format_duration(*run.duration));
  if (run.machine.cores > 0) {
    facts.push_back(fmt::format("{} core{}", run.machine.cores, run.machine.cores == 1 ? "" : "s"));
  }
  if (!run.machine.kernel.empty()) facts.push_back(run.machine.kernel);
  return facts;
}

Table figures_of(const CurveChart& chart) {
  struct Named {
    const char* name;
    double quantile;
  };
  static constexpr std::array<Named, 6> kShown{{{"P50", 0.5},
                                                {"P90", 0.9},
                                                {"P95", 0.95},
                                                {"P99", 0.99},
                                                {"P99.9", 0.999},
                                                {"P99.99", 0.9999}}};
  Table table{chart.title, {{"latency", Align::kLeft}}, {}};
  for (const Named& shown : kShown) table.columns.push_back({shown.name, Align::kRight, "ms"});
  double smallest = std::numeric_limits<double>::infinity();
  for (const CurveSeries& series : chart.series) {
    const double median = value_at(series, 0.5);
    if (std::isfinite(median)) smallest = std::min(smallest, median);
  }
  for (const CurveSeries& series : chart.series) {
    std::vector<Cell> row{text_cell(series.name)};
    for (const Named& shown : kShown) {
      row.push_back(number_cell(value_at(series, shown.quantile), decimals_for(smallest)));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table figures_of(const TimelineChart& chart) {
  Table table{chart.title,
              {{"over time", Align::kLeft},
               {"least"},
               {"mean"},
               {"most"},
               {"last"},
               {"unit", Align::kLeft}},
              {}};
  for (const TimeSeries& series : chart.series) {
    constexpr double kInfinite = std::numeric_limits<double>::infinity();
    double least = kInfinite, most = -kInfinite, sum = 0, count = 0;
    double last = std::numeric_limits<double>::quiet_NaN();
    for (const TimePointValue& point : series.points) {
      if (!std::isfinite(point.value)) continue;
      least = std::min(least, point.value);
      most = std::max(most, point.value);
      sum += point.value;
      count += 1;
      last = point.value;
    }
    table.rows.push_back({text_cell(series.name), number_cell(least), number_cell(sum / count),
                          number_cell(most), number_cell(last), text_cell(series.unit)});
  }
  for (const EventMark& event : chart.events) {
    table.notes.push_back(fmt::format("{:.1f} s: {}", event.seconds, event.label));
  }
  return table;
}

}  // namespace tailward::report
