#include "report/terminal.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "base/units.h"
#include "report/sequence_terminal.h"
#include "report/table_layout.h"
#include "report/text.h"

namespace tailward::report {
namespace {

enum class Ink { kPlain, kBold, kMuted, kGood, kBad, kWarn };

// The 16 colours of every terminal, in the hues that its user has chosen.
std::string_view escape_of(Ink ink) {
  switch (ink) {
    case Ink::kBold:
      return "\x1b[1m";
    case Ink::kMuted:
      return "\x1b[2m";
    case Ink::kGood:
      return "\x1b[32m";
    case Ink::kBad:
      return "\x1b[31m";
    case Ink::kWarn:
      return "\x1b[33m";
    case Ink::kPlain:
      break;
  }
  return "";
}

Ink ink_of(Emphasis emphasis) {
  switch (emphasis) {
    case Emphasis::kGood:
      return Ink::kGood;
    case Emphasis::kBad:
      return Ink::kBad;
    case Emphasis::kMuted:
      return Ink::kMuted;
    case Emphasis::kNone:
      break;
  }
  return Ink::kPlain;
}

Ink ink_of(findings::Layer layer) {
  using findings::Layer;
  switch (layer) {
    case Layer::kHealthy:
      return Ink::kGood;
    case Layer::kWatch:
    case Layer::kSymptom:
      return Ink::kWarn;
    case Layer::kAmplification:
    case Layer::kCause:
      return Ink::kBad;
    case Layer::kUnknown:
      break;
  }
  return Ink::kMuted;
}

// ASCII is enough: the words of the layers are ours.
std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return out;
}

// One line at a time, made of pieces padded to a width. Blanks are held back until something
// follows them, so that no line ends in blanks.
class Canvas {
 public:
  explicit Canvas(const TerminalStyle& style) : style_(style) {}

  void put(std::string_view text, Ink ink = Ink::kPlain) {
    if (text.empty()) return;
    out_.append(static_cast<std::size_t>(std::exchange(blanks_, 0)), ' ');
    const bool inked = style_.color && ink != Ink::kPlain;
    if (inked) out_ += escape_of(ink);
    out_ += text;
    if (inked) out_ += "\x1b[0m";
  }
  void blanks(int count) { blanks_ += std::max(count, 0); }
  void put_in(int width, Align align, std::string_view text, Ink ink = Ink::kPlain) {
    const int room = width - display_width(text);
    // A text that is wider than its column makes no negative room: blanks() takes that as none.
    if (align == Align::kRight) blanks(room);
    put(text, ink);
    if (align == Align::kLeft) blanks(room);
  }
  void end_line() {
    blanks_ = 0;
    out_ += '\n';
  }

  void rule(int width) {
    std::string line;
    for (int at = 0; at < width; ++at) line += "─";
    put(line, Ink::kMuted);
    end_line();
  }
  // A paragraph: `first` before its first line, as many blanks before the others.
  void paragraph(std::string_view first, std::string_view text, Ink ink = Ink::kPlain,
                 Ink first_ink = Ink::kPlain) {
    const int indent = display_width(first);
    bool at_start = true;
    for (const std::string& line : wrap(printable(text), std::max(style_.width - indent, 1))) {
      if (at_start) put(first, first_ink);
      if (!at_start) blanks(indent);
      at_start = false;
      put(line, ink);
      end_line();
    }
  }
  // Items after each other, " · " between them; a line breaks between items where it can.
  void items(const std::vector<std::string>& texts, Ink ink) {
    constexpr std::string_view kBetween = " · ";
    std::string line;
    for (const std::string& text : texts) {
      const std::string next = printable(text);
      if (!line.empty() &&
          display_width(line) + display_width(kBetween) + display_width(next) > style_.width) {
        paragraph("", line, ink);
        line.clear();
      }
      line += (line.empty() ? "" : std::string(kBetween)) + next;
    }
    if (!line.empty()) paragraph("", line, ink);
  }
  void title(std::string_view text) {
    if (!text.empty()) paragraph("", text, Ink::kBold);
  }

  [[nodiscard]] int width() const { return style_.width; }
  [[nodiscard]] std::string take() { return std::move(out_); }

 private:
  TerminalStyle style_;
  std::string out_;
  int blanks_ = 0;
};

// ---- tables -----------------------------------------------------------------------------------

Table printable_cells(Table table) {
  for (std::vector<Cell>& row : table.rows) {
    row.resize(table.columns.size());
    for (Cell& cell : row) cell.text = printable(cell.text);
  }
  return table;
}

// One row of texts, each wrapped within its column; headers sit at the bottom, cells at the top.
void put_row(Canvas& canvas, const TableLayout& layout, const Table& table,
             const std::vector<Cell>& cells, bool header) {
  std::vector<std::vector<std::string>> lines;
  std::size_t height = 1;
  for (std::size_t at = 0; at < layout.shown.size(); ++at) {
    lines.push_back(wrap(cells[layout.shown[at]].text, layout.widths[at]));
    height = std::max(height, lines.back().size());
  }
  for (std::size_t line = 0; line < height; ++line) {
    for (std::size_t at = 0; at < layout.shown.size(); ++at) {
      const std::size_t skipped = header ? height - lines[at].size() : 0;
      const bool here = line >= skipped && line - skipped < lines[at].size();
      const std::size_t column = layout.shown[at];
      if (at > 0) canvas.blanks(kColumnGap);
      canvas.put_in(layout.widths[at], table.columns[column].align,
                    here ? lines[at][line - skipped] : std::string(),
                    header ? Ink::kBold : ink_of(cells[column].emphasis));
    }
    canvas.end_line();
  }
}

void put_stacked(Canvas& canvas, const Table& table) {
  for (const std::vector<Cell>& row : table.rows) {
    for (std::size_t column = 0; column < table.columns.size(); ++column) {
      if (row[column].text.empty()) continue;
      const std::string indent = column == 0 ? "" : "  ";
      canvas.paragraph(indent + header_text(table.columns[column]) + ": ", row[column].text,
                       ink_of(row[column].emphasis));
    }
  }
}

void put_block(Canvas& canvas, const Table& raw) {
  const Table table = printable_cells(raw);
  canvas.title(table.title);
  const TableLayout layout = fit_table(table, canvas.width());
  if (layout.stacked) {
    put_stacked(canvas, table);
  } else {
    int width = kColumnGap * std::max(0, static_cast<int>(layout.shown.size()) - 1);
    for (const int column : layout.widths) width += column;
    std::vector<Cell> headers;
    for (const Column& column : table.columns) headers.push_back({header_text(column), {}, {}});
    canvas.rule(width);
    put_row(canvas, layout, table, headers, true);
    canvas.rule(width);
    for (const std::vector<Cell>& row : table.rows) put_row(canvas, layout, table, row, false);
    canvas.rule(width);
  }
  for (const std::string& note : table.notes) canvas.paragraph("", note, Ink::kMuted);
  // What is left out is said, or a reader would think that there is no more.
  if (layout.stacked || layout.dropped.empty()) return;
  std::string left_out;
  for (const std::size_t column : layout.dropped) {
    left_out += (left_out.empty() ? "" : ", ") + table.columns[column].header;
  }
  canvas.paragraph("", fmt::format("Not shown in {} columns: {}.", canvas.width(), left_out),
                   Ink::kMuted);
}

// ---- statements -------------------------------------------------------------------------------

void put_block(Canvas& canvas, const findings::Statement& statement) {
  const Ink ink = ink_of(statement.layer);
  // The bar carries the colour of the statement down its whole text, and marks it without colour,
  // too.
  constexpr std::string_view kBar = "▌ ";
  const int width = std::max(canvas.width() - display_width(kBar), 1);
  const auto say = [&](std::string_view first, std::string_view text, Ink text_ink) {
    const int indent = display_width(first);
    bool at_start = true;
    for (const std::string& line : wrap(printable(text), std::max(width - indent, 1))) {
      canvas.put(kBar, ink);
      if (at_start) canvas.put(first);
      if (!at_start) canvas.blanks(indent);
      at_start = false;
      canvas.put(line, text_ink);
      canvas.end_line();
    }
  };
  say("", upper(to_string(statement.layer)), ink);
  if (!statement.sentence.empty()) say("", statement.sentence, Ink::kBold);
  for (const findings::Evidence& evidence : statement.evidence) {
    say("• ", to_line(evidence), Ink::kPlain);
  }
}

void put_block(Canvas& canvas, const Checks& checks) {
  canvas.title(checks.title);
  int name = 0, value = 0, bound = 0;
  for (const Check& check : checks.checks) {
    name = std::max(name, display_width(printable(check.name)));
    value = std::max(value, display_width(printable(check.value)));
    bound = std::max(bound, display_width(printable(check.bound)));
  }
  constexpr int kMark = 2;  // the tick and a blank
  constexpr int kLeastName = 20;
  const int beside = kMark + 2 * kColumnGap + value + bound;
  // Names need some room. Where figures leave too little, they go below.
  const bool fits = canvas.width() - beside >= kLeastName;
  name = fits ? std::min(name, canvas.width() - beside) : canvas.width() - kMark;
  std::size_t held = 0;
  for (const Check& check : checks.checks) {
    held += check.ok ? 1 : 0;
    bool at_start = true;
    for (const std::string& line : wrap(printable(check.name), name)) {
      if (at_start) canvas.put(check.ok ? "✓ " : "✗ ", check.ok ? Ink::kGood : Ink::kBad);
      if (!at_start) canvas.blanks(kMark);
      canvas.put_in(name, Align::kLeft, line);
      if (at_start && fits) {
        canvas.blanks(kColumnGap);
        canvas.put_in(value, Align::kRight, printable(check.value),
                      check.ok ? Ink::kPlain : Ink::kBad);
        canvas.blanks(kColumnGap);
        canvas.put(printable(check.bound), Ink::kMuted);
      }
      at_start = false;
      canvas.end_line();
    }
    if (!fits) canvas.paragraph("  ", check.value + "  " + check.bound, Ink::kMuted);
  }
  canvas.put(fmt::format("{} of {} hold", held, checks.checks.size()), Ink::kMuted);
  canvas.end_line();
}

void put_block(Canvas& canvas, const Note& note) {
  switch (note.kind) {
    case NoteKind::kNote:
      return canvas.paragraph("", note.text);
    case NoteKind::kWarning:
      return canvas.paragraph("Warning: ", note.text, Ink::kPlain, Ink::kWarn);
    case NoteKind::kLost:
      return canvas.paragraph("Lost: ", note.text, Ink::kPlain, Ink::kWarn);
    case NoteKind::kPartial:
      return canvas.paragraph("Partial: ", note.text, Ink::kPlain, Ink::kWarn);
  }
}

// ---- charts -----------------------------------------------------------------------------------

void put_block(Canvas& canvas, const CurveChart& chart) {
  if (chart.in_terminal) put_block(canvas, figures_of(chart));
}

struct Span {
  double from = std::numeric_limits<double>::infinity();
  double to = -std::numeric_limits<double>::infinity();

  void include(double value) {
    if (!std::isfinite(value)) return;
    from = std::min(from, value);
    to = std::max(to, value);
  }
  [[nodiscard]] bool empty() const { return from > to; }
};

// The mean of each slice of time as one of eight bar heights; a blank where there is no value.
std::string sparkline(const TimeSeries& series, Span time, Span value, int width) {
  static constexpr std::array<std::string_view, 8> kBars{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  std::vector<std::pair<double, int>> slices(static_cast<std::size_t>(width));
  for (const TimePointValue& point : series.points) {
    if (!std::isfinite(point.value) || !std::isfinite(point.seconds)) continue;
    const double share =
        time.to > time.from ? (point.seconds - time.from) / (time.to - time.from) : 0;
    auto& [sum, count] = slices[static_cast<std::size_t>(std::min(share * width, width - 1.0))];
    sum += point.value;
    ++count;
  }
  // From 0 on, so that the height of a bar is its value, as far as the eye is concerned.
  const double lowest = std::min(value.from, 0.0);
  const double height = std::max(value.to, 0.0) - lowest;
  std::string line;
  for (const auto& [sum, count] : slices) {
    if (count == 0) {
      line += ' ';
      continue;
    }
    const double share = height > 0 ? (sum / count - lowest) / height : 0;
    line += kBars[static_cast<std::size_t>(std::clamp(share * 8, 0.0, 7.0))];
  }
  return line;
}

void put_block(Canvas& canvas, const TimelineChart& chart) {
  if (!chart.in_terminal) return;
  canvas.title(chart.title);
  Span time;
  std::vector<Span> values;
  std::vector<std::string> ranges;
  int names = 0;
  int range_width = 0;
  for (const TimeSeries& series : chart.series) {
    Span span;
    for (const TimePointValue& point : series.points) {
      time.include(point.seconds);
      span.include(point.value);
    }
    values.push_back(span);
    ranges.push_back(span.empty() ? "no values"
                                  : fmt::format("{}–{} {}", number_cell(span.from).text,
                                                number_cell(span.to).text, printable(series.unit)));
    range_width = std::max(range_width, display_width(ranges.back()));
    names = std::max(names, display_width(printable(series.name)));
  }
  constexpr int kLeast = 8, kMost = 48;
  const int room = canvas.width() - names - range_width - 2 * kColumnGap;
  for (std::size_t at = 0; at < chart.series.size(); ++at) {
    canvas.put_in(names, Align::kLeft, printable(chart.series[at].name));
    canvas.blanks(kColumnGap);
    if (room >= kLeast && !values[at].empty()) {
      // Not more slices than points: a blank is to mean that there was no value.
      const std::size_t points = chart.series[at].points.size();
      const int slices = static_cast<int>(std::min<std::size_t>(points, kMost));
      canvas.put(sparkline(chart.series[at], time, values[at], std::min(room, slices)));
      canvas.blanks(kColumnGap);
    }
    canvas.put(ranges[at]);
    canvas.end_line();
  }
  std::vector<std::string> below;
  if (!time.empty()) below.push_back(fmt::format("{:.1f}–{:.1f} s", time.from, time.to));
  for (const EventMark& event : chart.events) {
    below.push_back(fmt::format("{:.1f} s {}", event.seconds, event.label));
  }
  canvas.items(below, Ink::kMuted);
}

void put_block(Canvas& canvas, const SequenceChart& chart) {
  if (!chart.in_terminal) return;
  canvas.title(chart.title);
  for (const LadderLine& line : ladder_lines(chart, canvas.width())) {
    const Ink ink = line.is_gap ? Ink::kWarn : ink_of(line.emphasis);
    canvas.put(line.time, Ink::kMuted);
    canvas.put(line.picture, ink);
    canvas.put(line.label, ink);
    canvas.end_line();
  }
}

bool is_shown(const Block& block) {
  if (const auto* curves = std::get_if<CurveChart>(&block)) return curves->in_terminal;
  if (const auto* timeline = std::get_if<TimelineChart>(&block)) return timeline->in_terminal;
  if (const auto* sequence = std::get_if<SequenceChart>(&block)) return sequence->in_terminal;
  return true;
}

}  // namespace

TerminalStyle terminal_style(const TerminalFlags& flags) {
  TerminalStyle style;
  if (!flags.is_terminal) return style;
  if (flags.columns > 0) style.width = std::clamp(flags.columns, kMinWidth, kMaxWidth);
  style.color = !flags.no_color && !flags.dumb;
  return style;
}

std::string to_terminal(const Block& block, const TerminalStyle& style) {
  Canvas canvas(style);
  std::visit([&](const auto& value) { put_block(canvas, value); }, block);
  return canvas.take();
}

std::string to_terminal(const Report& report, const TerminalStyle& style) {
  Canvas canvas(style);
  if (!report.title.empty()) {
    canvas.title(report.title);
    canvas.end_line();
  }
  if (report.run.partial) {
    canvas.paragraph("Partial: ", kPartialText, Ink::kPlain, Ink::kWarn);
    canvas.end_line();
  }
  if (!report.summary.empty()) {
    canvas.paragraph("", report.summary);
    canvas.end_line();
  }
  for (const Block& block : report.blocks) {
    if (!is_shown(block)) continue;
    std::visit([&](const auto& value) { put_block(canvas, value); }, block);
    canvas.end_line();
  }
  canvas.items(facts_of(report.run), Ink::kMuted);
  return canvas.take();
}

std::string format_progress(const Progress& progress) {
  std::string line = printable(progress.label) + "  " + format_count(progress.done);
  double share = 0;
  if (progress.total > 0) {
    share = static_cast<double>(progress.done) / static_cast<double>(progress.total);
    share = std::min(share, 1.0);
    // Rounded down: 100 % is said only when it is done.
    line += fmt::format("/{}  {} %", format_count(progress.total), static_cast<int>(share * 100));
  }
  constexpr double kLeastShare = 0.01;
  double left = -1;
  if (progress.left) {
    left = to_seconds(*progress.left);
  } else if (progress.elapsed >= std::chrono::seconds(1) && share >= kLeastShare && share < 1) {
    left = to_seconds(progress.elapsed) * (1 - share) / share;
  }
  if (left < 0) return line;
  const auto seconds = static_cast<std::int64_t>(std::ceil(left));
  if (seconds < 100) return line + fmt::format("  about {} s left", seconds);
  const std::int64_t minutes = (seconds + 30) / 60;
  if (minutes < 100) return line + fmt::format("  about {} min left", minutes);
  return line + fmt::format("  about {} h {} min left", minutes / 60, minutes % 60);
}

}  // namespace tailward::report
