// How a table is fitted into a number of display columns. Internal to report.
//
// Pure functions. Texts must be printable (text.h).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "report/report.h"

namespace tailward::report {

inline constexpr int kColumnGap = 2;

struct TableLayout {
  std::vector<std::size_t> shown;    // indices of the columns that are shown, in order
  std::vector<int> widths;           // of those
  std::vector<std::size_t> dropped;  // indices of those left out
  bool stacked = false;              // not even the undroppable fit: one "header: cell" per line
};

// First wraps headers, then left-aligned cells, then drops columns by priority.
TableLayout fit_table(const Table& table, int width);

// "P50 ms"
std::string header_text(const Column& column);

}  // namespace tailward::report
