#include "report/sequence_terminal.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/sequence_rows.h"
#include "report/text.h"

namespace tailward::report {
namespace {

constexpr int kGap = 2;  // between times, picture and labels

std::string repeated(std::string_view what, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += what;
  return text;
}

std::string padded(std::string_view text, int width) {
  return std::string(static_cast<std::size_t>(std::max(0, width - display_width(text))), ' ') +
         std::string(text);
}

class Ladder {
 public:
  Ladder(const SequenceChart& chart, int width)
      : chart_(chart), rows_(rows_of(chart)), times_(rows_), inner_(std::clamp(width / 4, 10, 20)) {
    time_width_ = display_width(times_.unit);
    for (const SequenceRow& row : rows_) {
      if (row.kind != SequenceRow::Kind::kArrow) continue;
      time_width_ = std::max(time_width_, display_width(times_.format(row.seconds)));
    }
    label_width_ = std::max(1, width - time_width_ - inner_ - 2 - 2 * kGap);
  }

  std::vector<LadderLine> lines() {
    put_names();
    for (const SequenceRow& row : rows_) {
      if (row.kind == SequenceRow::Kind::kArrow) {
        put_arrow(row);
      } else {
        put_wait(row);
      }
    }
    return std::move(lines_);
  }

 private:
  [[nodiscard]] std::string time_piece(std::string_view text) const {
    return padded(text, time_width_) + std::string(kGap, ' ');
  }

  // The left one over its lifeline; the right one ends over its own, or goes on from there.
  void put_names() {
    const std::string left = printable(chart_.left), right = printable(chart_.right);
    const int picture = inner_ + 2;
    const std::string unit = time_piece(times_.unit);
    if (display_width(left) + 1 + display_width(right) <= picture) {
      lines_.push_back({unit, left + padded(right, picture - display_width(left))});
      return;
    }
    for (const std::string& line : wrap(left, picture + kGap + label_width_)) {
      lines_.push_back({lines_.empty() ? unit : time_piece(""), line});
    }
    for (const std::string& line : wrap(right, kGap + label_width_)) {
      lines_.push_back(
          {time_piece(""), "│" + std::string(static_cast<std::size_t>(inner_), ' '), line});
    }
  }

  void put(std::string_view time, const std::string& first, const std::string& others,
           const std::string& text, Emphasis emphasis, bool is_gap) {
    const auto labels = wrap(printable(text), label_width_);
    for (std::size_t at = 0; at < labels.size(); ++at) {
      LadderLine line{time_piece(at == 0 ? time : ""), at == 0 ? first : others, labels[at],
                      emphasis, is_gap};
      if (!line.label.empty()) line.picture += std::string(kGap, ' ');
      lines_.push_back(std::move(line));
    }
  }

  void put_arrow(const SequenceRow& row) {
    const SequenceArrow& arrow = chart_.arrows[row.index];
    const std::string shaft = repeated("─", inner_ - 1);
    const std::string label =
        arrow.packet != 0 ? fmt::format("#{} {}", arrow.packet, arrow.label) : arrow.label;
    put(times_.format(row.seconds), arrow.from_left ? "├" + shaft + "►│" : "│◄" + shaft + "┤",
        "│" + std::string(static_cast<std::size_t>(inner_), ' ') + "│", label, arrow.emphasis,
        false);
  }

  void put_wait(const SequenceRow& row) {
    const bool gap = row.kind == SequenceRow::Kind::kGap;
    const std::string inside =
        gap ? repeated("░", inner_) : std::string(static_cast<std::size_t>(inner_), ' ');
    put("", "┆" + inside + "┆", "┆" + inside + "┆", wait_text(chart_, row),
        gap ? Emphasis::kNone : Emphasis::kMuted, gap);
  }

  const SequenceChart& chart_;
  std::vector<SequenceRow> rows_;
  SequenceTimes times_;
  int inner_;  // columns between the lifelines
  int time_width_ = 0;
  int label_width_ = 0;
  std::vector<LadderLine> lines_;
};

}  // namespace

std::vector<LadderLine> ladder_lines(const SequenceChart& chart, int width) {
  return Ladder(chart, width).lines();
}

}  // namespace tailward::report
