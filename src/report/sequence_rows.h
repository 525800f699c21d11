// The rows of a sequence chart, in the order of time: what the SVG and the terminal have in common.
// Internal to report.
//
// Pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "report/report.h"

namespace tailward::report {

struct SequenceRow {
  enum class Kind {
    kArrow,
    kGap,   // one of the chart's gaps begins
    kWait,  // a long wait between two arrows that is no gap
  };
  Kind kind = Kind::kArrow;
  std::size_t index = 0;  // of the arrow or gap; not used by kWait
  double seconds = 0;     // an arrow: since the first of them; otherwise how long it lasts
  std::size_t end = 0;  // of a gap: the row of the first arrow that it does not cover, or the size
};

// Arrows and gaps whose times are not finite numbers are left out.
std::vector<SequenceRow> rows_of(const SequenceChart& chart);

// One unit for all times of a chart: "ms" with three decimals, or "s" for long ones.
struct SequenceTimes {
  explicit SequenceTimes(const std::vector<SequenceRow>& rows);
  [[nodiscard]] std::string format(double seconds) const;

  std::string unit;
};

// "40.0 ms", and the label of a gap behind it: "40.0 ms: held".
std::string wait_text(const SequenceChart& chart, const SequenceRow& row);

}  // namespace tailward::report
