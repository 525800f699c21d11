#include "report/sequence_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "report/sequence_rows.h"
#include "report/text.h"

namespace tailward::report {
namespace {

// Units of the picture: pixels, which report.css makes a little larger or smaller by the page.
constexpr int kWidth = 540;
constexpr int kTimeRight = 78;  // where the times end
constexpr int kLeft = 88;       // the two lifelines
constexpr int kRight = 446;
constexpr int kMiddle = (kLeft + kRight) / 2;
constexpr int kNumberLeft = 455;  // where the packets' numbers begin
constexpr int kLine = 17;         // height of a line of text
constexpr int kBaseline = 13;     // of its letters
constexpr int kHead = 9;          // length of an arrow's head
constexpr int kUnderLabel = 6;    // between a label and its arrow
constexpr int kUnderArrow = 11;
constexpr int kAroundWait = 9;
// Columns of text that fit between the lifelines, and into one half of that.
constexpr int kLabelColumns = 44;
constexpr int kNameColumns = 21;

class Drawing {
 public:
  explicit Drawing(const SequenceChart& chart)
      : chart_(chart), rows_(rows_of(chart)), times_(rows_) {}

  std::string draw() {
    lay_out();
    for (std::size_t at = 0; at < rows_.size(); ++at) put_shade(at);
    put_lifeline(kLeft);
    put_lifeline(kRight);
    put_names();
    for (std::size_t at = 0; at < rows_.size(); ++at) {
      if (rows_[at].kind == SequenceRow::Kind::kArrow) {
        put_arrow(at);
      } else {
        put_wait(at);
      }
    }
    return fmt::format(
        "<svg viewBox=\"0 0 {} {}\" xmlns=\"http://www.w3.org/2000/svg\">\n{}</svg>\n", kWidth,
        tops_.back(), out_);
  }

 private:
  void lay_out() {
    const std::string left = printable(chart_.left), right = printable(chart_.right);
    const bool fit = display_width(left) + display_width(right) <= 2 * kNameColumns;
    left_ = wrap(left, fit ? 2 * kNameColumns : kNameColumns);
    right_ = wrap(right, fit ? 2 * kNameColumns : kNameColumns);
    int y = static_cast<int>(std::max(left_.size(), right_.size())) * kLine + kAroundWait;
    for (const SequenceRow& row : rows_) {
      const bool arrow = row.kind == SequenceRow::Kind::kArrow;
      const std::string text = arrow ? chart_.arrows[row.index].label : wait_text(chart_, row);
      labels_.push_back(wrap(printable(text), kLabelColumns));
      tops_.push_back(y);
      y += static_cast<int>(labels_.back().size()) * kLine +
           (arrow ? kUnderLabel + kUnderArrow : 2 * kAroundWait);
    }
    tops_.push_back(y + kAroundWait);
  }

  void put_text(int x, int y, std::string_view anchor, std::string_view css,
                std::string_view text) {
    fmt::format_to(std::back_inserter(out_), "<text x=\"{}\" y=\"{}\"", x, y);
    if (!anchor.empty()) fmt::format_to(std::back_inserter(out_), " text-anchor=\"{}\"", anchor);
    if (!css.empty()) fmt::format_to(std::back_inserter(out_), " class=\"{}\"", css);
    out_ += ">" + html_escaped(text) + "</text>\n";
  }

  void put_lines(int x, int top, std::string_view anchor, const std::vector<std::string>& lines) {
    for (const std::string& line : lines) {
      put_text(x, top + kBaseline, anchor, "", line);
      top += kLine;
    }
  }

  void put_names() {
    out_ += "<g class=\"ends\">\n";
    put_lines(kLeft, 0, "", left_);
    put_lines(kRight, 0, "end", right_);
    out_ += "</g>\n";
    put_text(kTimeRight, kBaseline, "end", "muted", times_.unit);
  }

  // Broken where time is not to be measured by the eye.
  void put_lifeline(int x) {
    std::string path = fmt::format("M{} {}", x, tops_.front() - kAroundWait / 2);
    for (std::size_t at = 0; at < rows_.size(); ++at) {
      if (rows_[at].kind == SequenceRow::Kind::kArrow) continue;
      const int middle = (tops_[at] + tops_[at + 1]) / 2;
      path += fmt::format("V{}l5 3l-10 5l5 3", middle - 5);
    }
    fmt::format_to(std::back_inserter(out_), "<path class=\"lifeline\" d=\"{}V{}\"/>\n", path,
                   tops_.back());
  }

  void put_shade(std::size_t at) {
    const SequenceRow& row = rows_[at];
    if (row.kind != SequenceRow::Kind::kGap) return;
    const int bottom = row.end < rows_.size() ? tops_[row.end] : tops_.back() - kAroundWait;
    fmt::format_to(std::back_inserter(out_),
                   "<rect class=\"gap\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n", kLeft,
                   tops_[at], kRight - kLeft, bottom - tops_[at]);
  }

  void put_wait(std::size_t at) {
    const bool gap = rows_[at].kind == SequenceRow::Kind::kGap;
    fmt::format_to(std::back_inserter(out_), "<g class=\"{}\">\n", gap ? "gap-label" : "muted");
    put_lines(kMiddle, tops_[at] + kAroundWait, "middle", labels_[at]);
    out_ += "</g>\n";
  }

  void put_arrow(std::size_t at) {
    const SequenceArrow& arrow = chart_.arrows[rows_[at].index];
    const int y = tops_[at + 1] - kUnderArrow - (at + 1 == rows_.size() ? kAroundWait : 0);
    const std::string_view emphasis = class_of(arrow.emphasis);
    put_text(kTimeRight, y + 4, "end", "", times_.format(rows_[at].seconds));
    fmt::format_to(std::back_inserter(out_), "<g class=\"arrow{}{}\">\n",
                   emphasis.empty() ? "" : " ", emphasis);
    put_lines(kMiddle, tops_[at], "middle", labels_[at]);
    const int tip = arrow.from_left ? kRight - 1 : kLeft + 1;
    const int back = arrow.from_left ? -kHead : kHead;
    fmt::format_to(std::back_inserter(out_), "<path d=\"M{} {}H{}\"/><path class=\"head\" ",
                   arrow.from_left ? kLeft : kRight, y, tip + back);
    fmt::format_to(std::back_inserter(out_), "d=\"M{} {}l{} -4v8z\"/>\n</g>\n", tip, y, back);
    if (arrow.packet != 0) {
      put_text(kNumberLeft, y + 4, "", "muted", fmt::format("#{}", arrow.packet));
    }
  }

  const SequenceChart& chart_;
  std::vector<SequenceRow> rows_;
  SequenceTimes times_;
  std::vector<std::string> left_, right_;         // the names
  std::vector<std::vector<std::string>> labels_;  // of each row
  std::vector<int> tops_;                         // of each row, and the whole height
  std::string out_;
};

}  // namespace

std::string_view class_of(Emphasis emphasis) {
  switch (emphasis) {
    case Emphasis::kGood:
      return "good";
    case Emphasis::kBad:
      return "bad";
    case Emphasis::kMuted:
      return "muted";
    case Emphasis::kNone:
      break;
  }
  return "";
}

std::string sequence_svg(const SequenceChart& chart) { return Drawing(chart).draw(); }

}  // namespace tailward::report
