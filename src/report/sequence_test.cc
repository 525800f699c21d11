// The rows of a sequence chart, and the chart in both media.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <sstream>

#include "report/html.h"
#include "report/sample_report.h"
#include "report/sequence_rows.h"
#include "report/sequence_svg.h"
#include "report/terminal.h"
#include "report/text.h"

namespace tailward::report {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// "arrow 0", "gap 0 until 3", "wait": the rows as words.
std::string words(const SequenceChart& chart) {
  std::ostringstream out;
  for (const SequenceRow& row : rows_of(chart)) {
    if (row.kind == SequenceRow::Kind::kArrow) out << "arrow " << row.index << "; ";
    if (row.kind == SequenceRow::Kind::kGap)
      out << "gap " << row.index << " to " << row.end << "; ";
    if (row.kind == SequenceRow::Kind::kWait) out << "wait; ";
  }
  return out.str();
}

SequenceChart of_times(const std::vector<double>& times) {
  SequenceChart chart{"", "a", "b", {}};
  for (const double time : times) chart.arrows.push_back({time, true, "x"});
  return chart;
}

TEST(SequenceRowsTest, SortsArrowsByTimeAndKeepsTheOrderOfEqualOnes) {
  EXPECT_EQ(words(of_times({4, 2, 2, 3, 1})), "arrow 4; arrow 1; arrow 2; arrow 3; arrow 0; ");
}

TEST(SequenceRowsTest, PutsAGapBehindTheArrowThatItBeginsWith) {
  SequenceChart chart = of_times({0, 0.001, 0.041, 0.042});
  chart.gaps = {{0.001, 0.041, "held"}};
  EXPECT_EQ(words(chart), "arrow 0; arrow 1; gap 0 to 3; arrow 2; arrow 3; ");
}

TEST(SequenceRowsTest, AGapReachesOverTheArrowsWithinIt) {
  SequenceChart chart = of_times({0, 0.02, 0.03, 0.041});
  chart.gaps = {{0, 0.041, "held"}};
  EXPECT_EQ(words(chart), "arrow 0; gap 0 to 4; arrow 1; arrow 2; arrow 3; ");
}

TEST(SequenceRowsTest, GapsBeyondTheArrowsStayAtTheEnds) {
  SequenceChart chart = of_times({1, 2});
  chart.gaps = {{5, 9, "after"}, {0, 1, "before"}};
  EXPECT_EQ(words(chart), "gap 1 to 1; arrow 0; arrow 1; gap 0 to 4; ");
}

TEST(SequenceRowsTest, MarksALongWaitThatNoGapExplains) {
  EXPECT_EQ(words(of_times({0, 0.00002, 0.04, 0.04002})),
            "arrow 0; arrow 1; wait; arrow 2; arrow 3; ");
  SequenceChart explained = of_times({0, 0.00002, 0.04, 0.04002});
  explained.gaps = {{0.00002, 0.04, "held"}};
  EXPECT_EQ(words(explained), "arrow 0; arrow 1; gap 0 to 3; arrow 2; arrow 3; ");
}

TEST(SequenceRowsTest, AGapThatEndsEarlyDoesNotHideTheRestOfALongWait) {
  SequenceChart chart = of_times({0, 0.00002, 0.04, 0.04002});
  chart.gaps = {{0, 0.002, "held"}};
  EXPECT_EQ(words(chart), "arrow 0; gap 0 to 4; arrow 1; wait; arrow 2; arrow 3; ");
}

TEST(SequenceRowsTest, EvenTimesHaveNoLongWait) {
  EXPECT_EQ(words(of_times({0, 1, 2, 3})), "arrow 0; arrow 1; arrow 2; arrow 3; ");
  EXPECT_EQ(words(of_times({0, 0, 0})), "arrow 0; arrow 1; arrow 2; ");
}

TEST(SequenceRowsTest, LeavesOutWhatHasNoTime) {
  SequenceChart chart = of_times({0, kNan, INFINITY, 1});
  chart.gaps = {{kNan, 1, ""}, {0, kNan, ""}};
  EXPECT_EQ(words(chart), "arrow 0; arrow 3; ");
  EXPECT_EQ(words(SequenceChart{}), "");
}

TEST(SequenceRowsTest, TimesCountFromTheFirstArrowInOneUnit) {
  const auto rows = rows_of(of_times({1000.5, 1000.52}));
  EXPECT_EQ(SequenceTimes(rows).unit, "ms");
  EXPECT_EQ(SequenceTimes(rows).format(rows[1].seconds), "20.000");
  const auto long_rows = rows_of(of_times({0, 200}));
  EXPECT_EQ(SequenceTimes(long_rows).unit, "s");
  EXPECT_EQ(SequenceTimes(long_rows).format(200), "200.000");
}

// ---- terminal
// ------------------------------------------------------------------------------------

TEST(SequenceTerminalTest, DrawsALadder) {
  SequenceChart chart{"t",
                      "client",
                      "server",
                      {{0.5, true, "32 bytes", Emphasis::kNone, 9},
                       {0.54, false, "ACK", Emphasis::kBad},
                       {0.54002, true, ""}}};
  chart.gaps = {{0.5, 0.54, "held"}};
  EXPECT_EQ(to_terminal(Block{chart}, {60}), R"(t
    ms  client     server
 0.000  ├──────────────►│  #9 32 bytes
        ┆░░░░░░░░░░░░░░░┆  40.0 ms: held
40.000  │◄──────────────┤  ACK
40.020  ├──────────────►│
)");
}

TEST(SequenceTerminalTest, LongNamesTakeALineEach) {
  const SequenceChart chart{"", "client 10.0.0.1:40000", "server 10.0.0.2:80", {{0, true, "x"}}};
  EXPECT_EQ(to_terminal(Block{chart}, {60}), R"(   ms  client 10.0.0.1:40000
       │               server 10.0.0.2:80
0.000  ├──────────────►│  x
)");
}

TEST(SequenceTerminalTest, WrapsLabelsBesideTheLifelines) {
  const SequenceChart chart{"", "a", "b", {{0, true, "a label that is too long for its line"}}};
  EXPECT_EQ(to_terminal(Block{chart}, {40}), R"(   ms  a          b
0.000  ├─────────►│  a label that is too
       │          │  long for its line
)");
}

TEST(SequenceTerminalTest, IsNotShownWhereItIsNotAskedFor) {
  SequenceChart chart = sample_sequence();
  chart.in_terminal = false;
  EXPECT_EQ(to_terminal(Block{chart}), "");
}

// ---- SVG
// -----------------------------------------------------------------------------------------

struct Text {
  double x = 0, y = 0;
  std::string anchor, text;
};

std::vector<Text> texts_in(const std::string& svg) {
  std::vector<Text> texts;
  for (std::size_t at = svg.find("<text "); at != std::string::npos; at = svg.find("<text ", at)) {
    const std::size_t close = svg.find('>', at);
    const std::string tag = svg.substr(at, close - at);
    const auto attribute = [&](const std::string& name) {
      const std::size_t from = tag.find(" " + name + "=\"");
      if (from == std::string::npos) return std::string();
      const std::size_t begin = from + name.size() + 3;
      return tag.substr(begin, tag.find('"', begin) - begin);
    };
    texts.push_back({std::stod(attribute("x")), std::stod(attribute("y")), attribute("text-anchor"),
                     svg.substr(close + 1, svg.find('<', close) - close - 1)});
    at = close;
  }
  return texts;
}

TEST(SequenceSvgTest, NoTextOverlapsAnother) {
  SequenceChart chart = sample_sequence();
  const std::string long_text(300, 'w');
  chart.left = "client [2001:db8:1111:2222:3333:4444:5555:6666]:40718";
  chart.right = "server [2001:db8:1111:2222:3333:4444:5555:7777]:8080";
  chart.arrows[1].label =
      "a long label of many words that goes on and on, until it takes three "
      "lines, because somebody wanted to say everything at once, and more";
  chart.arrows[2].label = long_text;
  chart.arrows[2].packet = 123'456'789;
  chart.gaps[0].label = long_text;
  const auto texts = texts_in(sequence_svg(chart));
  ASSERT_GT(texts.size(), 20u);
  // Per column of text: as wide as the letters of a usual sans-serif are at this size.
  constexpr double kLetter = 8, kHeight = 16;
  struct Box {
    double left, right, bottom;
  };
  std::vector<Box> boxes;
  for (const Text& text : texts) {
    const double width = kLetter * display_width(text.text);
    const double left = text.anchor == "end"      ? text.x - width
                        : text.anchor == "middle" ? text.x - width / 2
                                                  : text.x;
    boxes.push_back({left, left + width, text.y});
    EXPECT_GE(left, 0) << text.text;
    EXPECT_LE(left + width, 540) << text.text;
    EXPECT_GE(text.y, 13) << text.text;
  }
  for (std::size_t a = 0; a < boxes.size(); ++a) {
    for (std::size_t b = a + 1; b < boxes.size(); ++b) {
      const bool beside = boxes[a].right <= boxes[b].left || boxes[b].right <= boxes[a].left;
      EXPECT_TRUE(beside || std::abs(boxes[a].bottom - boxes[b].bottom) >= kHeight)
          << texts[a].text << " / " << texts[b].text;
    }
  }
}

TEST(SequenceSvgTest, SaysTimesDurationsAndPacketNumbers) {
  const std::string svg = sequence_svg(sample_sequence());
  for (const char* part : {">0.000<", ">0.021<", ">40.060<", ">261.200<", ">ms<", ">#104<",
                           ">#111<", "40.0 ms: held by Nagle&#39;s algorithm", ">221 ms<"}) {
    EXPECT_NE(svg.find(part), std::string::npos) << part;
  }
}

TEST(SequenceSvgTest, ColoursAnArrowByItsEmphasis) {
  const std::string svg = sequence_svg(sample_sequence());
  EXPECT_NE(svg.find("<g class=\"arrow bad\">"), std::string::npos);
  EXPECT_NE(svg.find("<g class=\"arrow good\">"), std::string::npos);
  EXPECT_NE(svg.find("<g class=\"arrow\">"), std::string::npos);
}

TEST(SequenceSvgTest, EscapesHostileTexts) {
  const std::string bad = "</svg><script>alert(1)</script>\x1b";
  SequenceChart chart{bad, bad, bad, {{0, true, bad}, {1, false, bad}}, {{0, 1, bad}}};
  Report report;
  report.add(chart);
  const std::string html = to_html(report);
  EXPECT_EQ(html.find("<script"), std::string::npos);
  EXPECT_EQ(html.find('\x1b'), std::string::npos);
  EXPECT_EQ(html.find("</svg>"), html.rfind("</svg>"));
}

TEST(SequenceSvgTest, NeedsNoScript) {
  Report report;
  report.add(sample_sequence());
  const std::string html = to_html(report);
  EXPECT_EQ(html.find("<script"), std::string::npos);
  EXPECT_NE(html.find("<svg viewBox"), std::string::npos);
}

TEST(SequenceSvgTest, DrawsNothingOfNothing) {
  EXPECT_NE(sequence_svg(SequenceChart{}).find("</svg>"), std::string::npos);
}

}  // namespace
}  // namespace tailward::report
