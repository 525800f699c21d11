#include "report/report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace tailward::report {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(CellTest, GroupsThousandsAndKeepsTheValue) {
  const Cell cell = number_cell(1234567.89, 1);
  EXPECT_EQ(cell.text, "1,234,567.9");
  EXPECT_EQ(cell.number, 1234567.89);
  EXPECT_EQ(number_cell(999.96, 1).text, "1,000.0");
  EXPECT_EQ(number_cell(-1234, 0).text, "−1,234");
  EXPECT_EQ(number_cell(-0.01, 1).text, "0.0");
  EXPECT_EQ(count_cell(3992).text, "3,992");
  EXPECT_EQ(share_cell(0.147).text, "14.7 %");
}

TEST(CellTest, ShowsADashWhereThereIsNoNumber) {
  EXPECT_EQ(number_cell(kNan).text, "–");
  EXPECT_FALSE(number_cell(std::numeric_limits<double>::infinity()).number);
  EXPECT_EQ(share_cell(kNan).text, "–");
  EXPECT_EQ(change_cell(5, 0, Better::kLower).text, "–");
  EXPECT_EQ(change_cell(kNan, 1, Better::kLower).text, "–");
  EXPECT_EQ(interval_cell(kNan, 1, 2).text, "–");
}

TEST(CellTest, SaysAChangeInPercentAndFromTenfoldOnAsAFactor) {
  EXPECT_EQ(change_cell(156.0, 55.2, Better::kLower).text, "+183 %");
  EXPECT_EQ(change_cell(387.2, 482.9, Better::kLower).text, "−19.8 %");
  EXPECT_EQ(change_cell(99.96, 50, Better::kLower).text, "+99.9 %");
  EXPECT_EQ(change_cell(100, 50, Better::kLower).text, "+100 %");
  EXPECT_EQ(change_cell(465.15, 37.29, Better::kLower).text, "×12.5");
  EXPECT_EQ(change_cell(7, 7, Better::kLower).text, "0.0 %");
}

TEST(CellTest, CallsAChangeGoodOrBadByItsDirectionAndSize) {
  EXPECT_EQ(change_cell(110, 100, Better::kLower).emphasis, Emphasis::kBad);
  EXPECT_EQ(change_cell(90, 100, Better::kLower).emphasis, Emphasis::kGood);
  EXPECT_EQ(change_cell(110, 100, Better::kHigher).emphasis, Emphasis::kGood);
  EXPECT_EQ(change_cell(90, 100, Better::kHigher).emphasis, Emphasis::kBad);
  EXPECT_EQ(change_cell(104, 100, Better::kLower).emphasis, Emphasis::kNone);
  EXPECT_EQ(change_cell(500, 100, Better::kNeither).emphasis, Emphasis::kNone);
}

TEST(CellTest, PutsTheIntervalAfterTheFigure) {
  EXPECT_EQ(interval_cell(387.21, 237.5, 1398.8).text, "387.2 (237.5–1,398.8)");
}

TEST(TailPointsTest, GoNoFurtherThanTheSamplesCanTell) {
  const auto identity = [](double q) { return q; };
  EXPECT_TRUE(tail_points(0, identity).empty());
  EXPECT_EQ(tail_points(1, identity).size(), 1u);
  EXPECT_NEAR(tail_points(1000, identity).back().quantile, 0.999, 1e-12);
  EXPECT_NEAR(tail_points(100'000'000, identity).back().quantile, 0.99999, 1e-12);
}

TEST(TailPointsTest, RiseAndIncludeTheTensOfTheTail) {
  const std::vector<QuantilePoint> points = tail_points(10'000, [](double q) { return 100 * q; });
  for (std::size_t at = 1; at < points.size(); ++at) {
    EXPECT_LT(points[at - 1].quantile, points[at].quantile);
  }
  for (const double tens : {0.9, 0.99, 0.999, 0.9999}) {
    EXPECT_TRUE(std::any_of(points.begin(), points.end(), [&](const QuantilePoint& point) {
      return std::abs(point.quantile - tens) < 1e-12;
    })) << tens;
  }
}

std::vector<std::string> texts_of(const std::vector<Cell>& row) {
  std::vector<std::string> texts;
  for (const Cell& cell : row) texts.push_back(cell.text);
  return texts;
}

TEST(FiguresTest, InterpolateCurvesOnTheTailScaleWithinTheirRange) {
  CurveChart chart;
  chart.series = {{"line", {{0, 10}, {0.9, 110}, {0.999, 310}}}};
  using Texts = std::vector<std::string>;
  EXPECT_EQ(texts_of(figures_of(chart).rows[0]),
            (Texts{"line", "40.1", "110.0", "140.1", "210.0", "310.0", "–"}));
}

TEST(FiguresTest, NeverReadBetweenPublishedDots) {
  CurveChart chart;
  chart.series = {{"published", {{0.5, 50}, {0.99, 480}}, Line::kMarkers}};
  using Texts = std::vector<std::string>;
  EXPECT_EQ(texts_of(figures_of(chart).rows[0]),
            (Texts{"published", "50.0", "–", "–", "480.0", "–", "–"}));
}

TEST(FiguresTest, KeepDigitsForMicroseconds) {
  CurveChart chart;
  chart.series = {{"nagle", {{0.5, 44}}}, {"nodelay", {{0.5, 0.018}}}};
  EXPECT_EQ(figures_of(chart).rows[1][1].text, "0.018");
}

TEST(FiguresTest, SumUpATimelineAndListItsEvents) {
  TimelineChart chart;
  chart.series = {{"rate", "%", {{0, 1}, {1, kNan}, {2, 5}, {3, 3}}}, {"empty", "ms", {}}};
  chart.events = {{1.5, "hedging on"}};
  const Table table = figures_of(chart);
  using Texts = std::vector<std::string>;
  EXPECT_EQ(texts_of(table.rows[0]), (Texts{"rate", "1.0", "3.0", "5.0", "3.0", "%"}));
  EXPECT_EQ(texts_of(table.rows[1]), (Texts{"empty", "–", "–", "–", "–", "ms"}));
  EXPECT_EQ(table.notes, Texts{"1.5 s: hedging on"});
}

TEST(FactsTest, LeaveOutWhatIsNotKnown) {
  using Texts = std::vector<std::string>;
  EXPECT_EQ(facts_of({}), Texts{"seed 0"});
  RunInfo run{"tailward lab x", "1.2",        7,    "2026-01-01T00:00:00Z",
              from_ms(1500),    {1, "Linux"}, false};
  EXPECT_EQ(facts_of(run),
            (Texts{"tailward lab x", "version 1.2", "seed 7", "started 2026-01-01T00:00:00Z",
                   "took 1.50 s", "1 core", "Linux"}));
}

}  // namespace
}  // namespace tailward::report
