#include "report/sequence_rows.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/units.h"

namespace tailward::report {
namespace {

// Two stamps that are nearer than this are the same: what a double of seconds cannot tell.
constexpr double kSame = 1e-9;

// A wait between two arrows is a long one if it is this share of the whole, and this many times
// longer than what is usual between them.
constexpr double kLongShare = 1.0 / 16;
constexpr double kLongFactor = 4;

// The indices of `all` whose times are numbers, by time.
template <class T, class Time>
std::vector<std::size_t> sorted(const std::vector<T>& all, Time time) {
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::erase_if(order, [&](std::size_t at) { return !std::isfinite(time(all[at])); });
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return time(all[a]) < time(all[b]); });
  return order;
}

double long_wait(const SequenceChart& chart, const std::vector<std::size_t>& order) {
  std::vector<double> waits;
  for (std::size_t at = 1; at < order.size(); ++at) {
    waits.push_back(chart.arrows[order[at]].seconds - chart.arrows[order[at - 1]].seconds);
  }
  if (waits.empty()) return 0;
  const double whole = std::accumulate(waits.begin(), waits.end(), 0.0);
  const auto quartile = waits.begin() + static_cast<std::ptrdiff_t>(waits.size() / 4);
  std::nth_element(waits.begin(), quartile, waits.end());
  return std::max(whole * kLongShare, *quartile * kLongFactor);
}

// Whether a gap says already what most of this wait is.
bool in_a_gap(const SequenceChart& chart, double from, double until) {
  return std::any_of(chart.gaps.begin(), chart.gaps.end(), [&](const SequenceGap& gap) {
    return std::min(gap.until_s, until) - std::max(gap.from_s, from) > (until - from) / 2;
  });
}

}  // namespace

std::vector<SequenceRow> rows_of(const SequenceChart& chart) {
  using Kind = SequenceRow::Kind;
  const auto arrows =
      sorted(chart.arrows, [](const SequenceArrow& arrow) { return arrow.seconds; });
  // Not a number if either end is not.
  auto gaps = sorted(chart.gaps, [](const SequenceGap& gap) {
    return std::isfinite(gap.until_s) ? gap.from_s : gap.until_s;
  });
  const double limit = long_wait(chart, arrows);
  std::vector<SequenceRow> rows;
  auto gap = gaps.begin();
  const auto add_gap = [&] {
    const SequenceGap& one = chart.gaps[*gap];
    rows.push_back({Kind::kGap, *gap++, std::max(0.0, one.until_s - one.from_s)});
  };
  for (std::size_t at = 0; at < arrows.size(); ++at) {
    const double now = chart.arrows[arrows[at]].seconds;
    while (gap != gaps.end() && chart.gaps[*gap].from_s < now - kSame) add_gap();
    const double before = at > 0 ? chart.arrows[arrows[at - 1]].seconds : now;
    if (now - before > limit && !in_a_gap(chart, before, now)) {
      rows.push_back({Kind::kWait, 0, now - before});
    }
    rows.push_back({Kind::kArrow, arrows[at], now - chart.arrows[arrows[0]].seconds});
  }
  while (gap != gaps.end()) add_gap();

  for (std::size_t at = 0; at < rows.size(); ++at) {
    if (rows[at].kind != Kind::kGap) continue;
    const double until = chart.gaps[rows[at].index].until_s - kSame;
    const auto end = std::find_if(
        rows.begin() + static_cast<std::ptrdiff_t>(at) + 1, rows.end(), [&](const auto& row) {
          return row.kind == Kind::kArrow && chart.arrows[row.index].seconds >= until;
        });
    rows[at].end = static_cast<std::size_t>(end - rows.begin());
  }
  return rows;
}

SequenceTimes::SequenceTimes(const std::vector<SequenceRow>& rows) : unit("ms") {
  constexpr double kLong = 100;
  for (const SequenceRow& row : rows) {
    if (row.kind == SequenceRow::Kind::kArrow && row.seconds >= kLong) unit = "s";
  }
}

std::string SequenceTimes::format(double seconds) const {
  return number_cell(unit == "s" ? seconds : seconds * 1e3, 3).text;
}

std::string wait_text(const SequenceChart& chart, const SequenceRow& row) {
  constexpr double kMost = 9e9;  // seconds in a Duration
  const auto ns = static_cast<std::int64_t>(std::min(row.seconds, kMost) * 1e9 + 0.5);
  std::string text = format_duration(Duration{ns});
  const bool labelled = row.kind == SequenceRow::Kind::kGap && !chart.gaps[row.index].label.empty();
  return labelled ? text + ": " + chart.gaps[row.index].label : text;
}

}  // namespace tailward::report
