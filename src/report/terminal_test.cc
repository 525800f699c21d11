#include "report/terminal.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "report/sample_report.h"
#include "report/text.h"

namespace tailward::report {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

// The recorded output; TAILWARD_RECORD=1 in the environment records it anew, to be read in the
// diff.
std::string recorded(const std::string& name, const std::string& now) {
  const auto path = std::filesystem::path(__FILE__).parent_path() / "testdata" / name;
  if (std::getenv("TAILWARD_RECORD") != nullptr) std::ofstream(path) << now;
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(TerminalTest, FitsInto80Columns) {
  const std::string text = to_terminal(sample_report(), {80});
  EXPECT_EQ(text, recorded("terminal_80.txt", text));
}

TEST(TerminalTest, UsesTheRoomOf120Columns) {
  const std::string text = to_terminal(sample_report(), {120});
  EXPECT_EQ(text, recorded("terminal_120.txt", text));
}

TEST(TerminalTest, IsNeverWiderThanAskedAndEndsNoLineInBlanks) {
  for (int width = kMinWidth; width <= kMaxWidth; ++width) {
    for (const std::string& line : lines_of(to_terminal(sample_report(), {width}))) {
      EXPECT_LE(display_width(line), width) << line;
      EXPECT_TRUE(line.empty() || line.back() != ' ') << line;
    }
  }
}

std::string without_escapes(std::string text) {
  for (std::size_t at = text.find('\x1b'); at != std::string::npos; at = text.find('\x1b')) {
    text.erase(at, text.find('m', at) - at + 1);
  }
  return text;
}

TEST(TerminalTest, ColoursTheSameTextOnlyWhenAsked) {
  const std::string plain = to_terminal(sample_report(), {80, false});
  const std::string coloured = to_terminal(sample_report(), {80, true});
  EXPECT_EQ(plain.find('\x1b'), std::string::npos);
  EXPECT_NE(coloured.find("\x1b[31mCAUSE\x1b[0m"), std::string::npos);
  EXPECT_NE(coloured.find("\x1b[32m✓ \x1b[0m"), std::string::npos);
  EXPECT_EQ(without_escapes(coloured), plain);
}

TEST(TerminalTest, LetsNoEscapeSequenceThrough) {
  const std::string bad = "\x1b]0;owned\x07\x9b\u202e";
  Report report;
  report.title = bad;
  report.summary = bad;
  report.run = {bad, bad, 1, bad, {}, {2, bad}, true};
  report.add(Table{bad, {{bad, Align::kLeft, bad}}, {{text_cell(bad)}}, {bad}});
  report.add(findings::Statement{findings::Layer::kWatch, bad, {{bad}}});
  report.add(Checks{bad, {{bad, false, bad, bad}}});
  report.add(CurveChart{bad, {{bad, {{0.5, 1}}}}, false, true});
  report.add(TimelineChart{bad, {{bad, bad, {{0, 1}}}}, {{0, bad}}, {{0, bad}}});
  report.add(SequenceChart{bad, bad, bad, {{0, true, bad}, {1, false, bad}}, {{0, 1, bad}}});
  report.add(Note{NoteKind::kLost, bad});
  const std::string text = to_terminal(report);
  for (const char* harmful : {"\x1b", "\x07", "\x9b]", "\u202e"}) {
    EXPECT_EQ(text.find(harmful), std::string::npos);
  }
  EXPECT_NE(text.find("\uFFFD]0;owned\uFFFD"), std::string::npos);
  EXPECT_EQ(format_progress({bad, 1}).find('\x1b'), std::string::npos);
}

TEST(TerminalTest, SaysOnTopThatAReportIsPartial) {
  Report report;
  report.title = "x";
  report.run.partial = true;
  EXPECT_EQ(to_terminal(report).find("x\n\nPartial: The measurement was ended early"), 0u);
}

TEST(TerminalTest, NamesWhatWasLost) {
  EXPECT_EQ(to_terminal(Block{Note{NoteKind::kLost, "3 of 9 events"}}), "Lost: 3 of 9 events\n");
  EXPECT_EQ(to_terminal(Block{Note{NoteKind::kWarning, "a"}}), "Warning: a\n");
  EXPECT_EQ(to_terminal(Block{Note{NoteKind::kNote, "a"}}), "a\n");
}

TEST(TerminalTableTest, DropsTheLeastImportantColumnsFirstAndSaysSo) {
  Table table{"",
              {{"aaaaaaaaaa"},
               {"bbbbbbbbbb", Align::kRight, "", 1},
               {"cccccccccc"},
               {"dddddddddd", Align::kRight, "", 2}},
              {{number_cell(1), number_cell(2), number_cell(3), number_cell(4)}}};
  EXPECT_EQ(to_terminal(Block{table}, {40}), R"(──────────────────────────────────
aaaaaaaaaa  bbbbbbbbbb  cccccccccc
──────────────────────────────────
       1.0         2.0         3.0
──────────────────────────────────
Not shown in 40 columns: dddddddddd.
)");
}

TEST(TerminalTableTest, StacksARowWhereNothingMayBeDropped) {
  Table table{"", {{"name", Align::kLeft}}, {{text_cell("x")}}};
  for (const char* header : {"aaaaaaaaaaaa", "bbbbbbbbbbbb", "cccccccccccc"}) {
    table.columns.push_back({header, Align::kRight, "ms"});
    table.rows[0].push_back(number_cell(1));
  }
  EXPECT_EQ(to_terminal(Block{table}, {40}),
            "name: x\n  aaaaaaaaaaaa ms: 1.0\n  bbbbbbbbbbbb ms: 1.0\n  cccccccccccc ms: 1.0\n");
}

TEST(TerminalTableTest, WrapsTextsAndAlignsByDisplayWidth) {
  const Table table{
      "",
      {{"text", Align::kLeft}, {"time", Align::kRight, "µs"}},
      {{text_cell("a rather long explanation that has to be wrapped"), number_cell(1.5)},
       {text_cell("漢字"), number_cell(10)}}};
  EXPECT_EQ(to_terminal(Block{table}, {40}), R"(────────────────────────────────────────
                                    time
text                                  µs
────────────────────────────────────────
a rather long explanation that has   1.5
to be wrapped
漢字                                10.0
────────────────────────────────────────
)");
}

TEST(TerminalTableTest, TakesShortRowsAndEmptyTables) {
  EXPECT_EQ(to_terminal(Block{Table{"", {{"a"}, {"b"}}, {{number_cell(1)}, {}}}}),
            "──────\n  a  b\n──────\n1.0\n\n──────\n");
  EXPECT_EQ(to_terminal(Block{Table{}}), "\n\n\n\n");
}

TEST(TerminalChartTest, DrawsASparklineWithGapsWhereThereIsNoValue) {
  TimelineChart chart;
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  chart.series = {{"s", "%", {{0, 0}, {1, kNan}, {2, 50}, {3, 100}}}};
  EXPECT_EQ(to_terminal(Block{chart}, {26}), "s  ▁ ▅█  0.0–100.0 %\n0.0–3.0 s\n");
  EXPECT_EQ(to_terminal(Block{TimelineChart{"", {{"s", "%", {}}}}}), "s  no values\n");
}

TEST(TerminalChartTest, ShowsCurvesOnlyWhereAsked) {
  CurveChart chart{"c", {{"a", {{0.5, 1}, {0.9, 2}}}}};
  EXPECT_EQ(to_terminal(Block{chart}), "");
  chart.in_terminal = true;
  EXPECT_NE(to_terminal(Block{chart}).find("P99.99"), std::string::npos);
}

TEST(TerminalStyleTest, ColoursOnlyACapableTerminalThatDidNotRefuse) {
  EXPECT_TRUE(terminal_style({true, false, false, 100}).color);
  EXPECT_FALSE(terminal_style({false, false, false, 100}).color);
  EXPECT_FALSE(terminal_style({true, true, false, 100}).color);
  EXPECT_FALSE(terminal_style({true, false, true, 100}).color);
}

TEST(TerminalStyleTest, TakesTheWindowsWidthWithinReason) {
  EXPECT_EQ(terminal_style({true, false, false, 100}).width, 100);
  EXPECT_EQ(terminal_style({true, false, false, 0}).width, 80);
  EXPECT_EQ(terminal_style({true, false, false, 10}).width, kMinWidth);
  EXPECT_EQ(terminal_style({true, false, false, 500}).width, kMaxWidth);
  EXPECT_EQ(terminal_style({false, false, false, 500}).width, 80);
}

TEST(ProgressTest, SaysHowFarAndHowLong) {
  EXPECT_EQ(format_progress({"arm fixed", 1240, 2000, milliseconds(6526)}),
            "arm fixed  1,240/2,000  62 %  about 4 s left");
}

TEST(ProgressTest, DoesNotGuessFromTooLittle) {
  EXPECT_EQ(format_progress({"a", 10, 2000, seconds(5)}), "a  10/2,000  0 %");
  EXPECT_EQ(format_progress({"a", 1000, 2000, milliseconds(999)}), "a  1,000/2,000  50 %");
  EXPECT_EQ(format_progress({"a", 1000, 2000, milliseconds(1000)}),
            "a  1,000/2,000  50 %  about 1 s left");
}

TEST(ProgressTest, Says100PercentOnlyAtTheEnd) {
  EXPECT_EQ(format_progress({"a", 1999, 2000, milliseconds(1)}), "a  1,999/2,000  99 %");
  EXPECT_EQ(format_progress({"a", 2000, 2000, seconds(9)}), "a  2,000/2,000  100 %");
  EXPECT_EQ(format_progress({"a", 2001, 2000, seconds(9)}), "a  2,001/2,000  100 %");
}

TEST(ProgressTest, TakesTheCallersEstimateAndOpenEnds) {
  EXPECT_EQ(format_progress({"load", 5, 0, seconds(9)}), "load  5");
  EXPECT_EQ(format_progress({"load", 5, 0, seconds(9), seconds(20)}), "load  5  about 20 s left");
  EXPECT_EQ(format_progress({"load", 5, 0, seconds(9), seconds(150)}), "load  5  about 3 min left");
  EXPECT_EQ(format_progress({"load", 5, 0, seconds(9), hours(3)}), "load  5  about 3 h 0 min left");
}

}  // namespace
}  // namespace tailward::report
