#include "report/table_layout.h"

#include <algorithm>
#include <numeric>

#include "report/text.h"

namespace tailward::report {
namespace {

// The widths that one column can take.
struct Wish {
  int least = 0;     // headers and texts wrapped
  int one_line = 0;  // only the header wrapped
  int natural = 0;   // nothing wrapped
};

// Texts below this width are a column of single words.
constexpr int kReadable = 16;  // texts are not squeezed below this for the sake of other columns

Wish wish_of(const Table& table, std::size_t column) {
  const std::string header = header_text(table.columns[column]);
  int cells = 0;
  int words = 0;
  for (const std::vector<Cell>& row : table.rows) {
    if (column >= row.size()) continue;
    cells = std::max(cells, display_width(row[column].text));
    words = std::max(words, longest_word(row[column].text));
  }
  // Numbers never wrap: half a number reads as another number.
  const bool wraps = table.columns[column].align == Align::kLeft;
  const int least = wraps ? std::min(cells, std::max(words, kReadable)) : cells;
  return {std::max(least, longest_word(header)), std::max(cells, longest_word(header)),
          std::max(cells, display_width(header))};
}

using Member = int Wish::*;

int total(const std::vector<Wish>& wishes, const std::vector<std::size_t>& shown, Member member) {
  int sum = kColumnGap * std::max(0, static_cast<int>(shown.size()) - 1);
  for (const std::size_t column : shown) sum += wishes[column].*member;
  return sum;
}

// Starts from widths that fit and hands out what is left, one display column at a time, up to
// `most`.
void widen(TableLayout& layout, const std::vector<Wish>& wishes, Member most, int slack) {
  for (bool grown = true; grown && slack > 0;) {
    grown = false;
    for (std::size_t at = 0; at < layout.shown.size() && slack > 0; ++at) {
      if (layout.widths[at] >= wishes[layout.shown[at]].*most) continue;
      ++layout.widths[at];
      --slack;
      grown = true;
    }
  }
}

// The column to leave out next: highest priority, rightmost of equals; -1 when all must stay.
int next_to_drop(const Table& table, const std::vector<std::size_t>& shown) {
  int found = -1;
  int highest = 1;
  for (const std::size_t column : shown) {
    // Not below 1: a column of priority 0 is the row's name and always stays.
    if (table.columns[column].priority < highest) continue;
    highest = table.columns[column].priority;
    found = static_cast<int>(column);
  }
  return found;
}

}  // namespace

std::string header_text(const Column& column) {
  const std::string unit = printable(column.unit);
  return printable(column.header) + (unit.empty() ? "" : " " + unit);
}

TableLayout fit_table(const Table& table, int width) {
  TableLayout layout;
  layout.shown.resize(table.columns.size());
  std::iota(layout.shown.begin(), layout.shown.end(), std::size_t{0});
  std::vector<Wish> wishes;
  for (const std::size_t column : layout.shown) wishes.push_back(wish_of(table, column));

  while (total(wishes, layout.shown, &Wish::least) > width) {
    const int drop = next_to_drop(table, layout.shown);
    if (drop < 0) {
      // Not even the columns that must stay fit: each row becomes a block of lines.
      layout.stacked = true;
      return layout;
    }
    layout.dropped.push_back(static_cast<std::size_t>(drop));
    std::erase(layout.shown, static_cast<std::size_t>(drop));
  }
  std::sort(layout.dropped.begin(), layout.dropped.end());

  const bool cells_fit = total(wishes, layout.shown, &Wish::one_line) <= width;
  const Member start = cells_fit ? &Wish::one_line : &Wish::least;
  for (const std::size_t column : layout.shown) layout.widths.push_back(wishes[column].*start);
  widen(layout, wishes, cells_fit ? &Wish::natural : &Wish::one_line,
        width - total(wishes, layout.shown, start));
  return layout;
}

}  // namespace tailward::report
