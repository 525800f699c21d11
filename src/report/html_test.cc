#include "report/html.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>

#include "base/file.h"
#include "report/assets.h"
#include "report/json.h"
#include "report/sample_report.h"

namespace tailward::report {
namespace {

constexpr const char* kHostile = "</script></style><img src=x onerror='alert(1)'>\"&\xff\x1b[0m";

// Every text of the model that comes from outside.
Report hostile_report() {
  const std::string bad = kHostile;
  Report report;
  report.title = bad;
  report.summary = bad;
  report.run = {bad, bad, 1, bad, {}, {2, bad}, true};
  report.add(Table{bad, {{bad, Align::kLeft, bad}}, {{text_cell(bad)}, {}}, {bad}});
  report.add(findings::Statement{findings::Layer::kWatch, bad, {{bad}}});
  report.add(Checks{bad, {{bad, false, bad, bad}}});
  report.add(CurveChart{bad, {{bad, {{0.5, 1}}}}});
  report.add(TimelineChart{bad, {{bad, bad, {{0, 1}}}}, {{0, bad}}, {{0, bad}}});
  report.add(Note{NoteKind::kLost, bad});
  return report;
}

std::size_t occurrences(std::string_view text, std::string_view what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string_view::npos;
       at = text.find(what, at + 1)) {
    ++count;
  }
  return count;
}

// The page without the parts that come from web/, which hold markup-like text of their own.
std::string own_part(std::string html) {
  for (const std::string_view asset :
       {report_css(), report_js(), uplot_css(), uplot_js(), uplot_license()}) {
    const std::size_t at = html.find(asset);
    if (at != std::string::npos) html.erase(at, asset.size());
  }
  return html;
}

Json charts_in(const std::string& html) {
  const std::string open = "<script type=\"application/json\" id=\"charts\">";
  const std::size_t from = html.find(open) + open.size();
  return Json::parse(html.substr(from, html.find("</script>", from) - from));
}

TEST(HtmlTest, EscapesHostileTextsEverywhere) {
  const std::string html = own_part(to_html(hostile_report()));
  EXPECT_EQ(html.find("<img"), std::string::npos);
  EXPECT_EQ(html.find('\xff'), std::string::npos);
  EXPECT_EQ(html.find('\x1b'), std::string::npos);
  EXPECT_EQ(occurrences(html, "<script"), 3u);  // the data, uPlot, ours
  EXPECT_EQ(occurrences(html, "</script>"), 3u);
  EXPECT_EQ(occurrences(html, "</style>"), 1u);
}

TEST(HtmlTest, KeepsHostileTextsReadable) {
  const std::string html = own_part(to_html(hostile_report()));
  const std::string escaped =
      "&lt;/script&gt;&lt;/style&gt;&lt;img src=x onerror=&#39;alert(1)&#39;&gt;&quot;&amp;";
  // Title twice, summary, four facts and the generator; the table's title, header, unit, cell,
  // note; the verdict's two; the checks' four; each chart's title, its series, the unit, the event;
  // the note.
  EXPECT_EQ(occurrences(html, escaped), 8u + 5u + 2u + 4u + 2u + 4u + 1u);
  EXPECT_EQ(charts_in(html)[0]["series"][0]["name"],
            "</script></style><img src=x onerror='alert(1)'>\"&\uFFFD\uFFFD[0m");
}

TEST(HtmlTest, OurOwnAssetsDoNotEndTheirElement) {
  EXPECT_EQ(report_css().find("</"), std::string_view::npos);
  EXPECT_EQ(uplot_css().find("</"), std::string_view::npos);
  EXPECT_EQ(report_js().find("</script"), std::string_view::npos);
  EXPECT_EQ(uplot_js().find("</script"), std::string_view::npos);
  EXPECT_EQ(uplot_license().find("*/"), std::string_view::npos);
  EXPECT_NE(uplot_js().find("uPlot"), std::string_view::npos);
}

TEST(HtmlTest, FetchesNothing) {
  const std::string html = to_html(sample_report());
  EXPECT_NE(html.find("default-src 'none'"), std::string::npos);
  const std::string own = own_part(html);
  EXPECT_EQ(own.find("src=\""), std::string::npos);
  EXPECT_EQ(occurrences(own, "href=\""), 1u);
  EXPECT_EQ(occurrences(own, "<link rel=\"icon\" href=\"data:,\">"), 1u);
  EXPECT_EQ(report_css().find("url("), std::string_view::npos);
  EXPECT_EQ(report_css().find("@import"), std::string_view::npos);
}

TEST(HtmlTest, CarriesTheLicenceOfTheLibraryItContains) {
  EXPECT_NE(to_html(sample_report()).find("Copyright (c) 2022 Leon Sorokin"), std::string::npos);
}

TEST(HtmlTest, HasNoScriptWhereThereIsNoChart) {
  Report report;
  report.add(Note{NoteKind::kNote, "nothing to draw"});
  const std::string html = to_html(report);
  EXPECT_EQ(html.find("<script"), std::string::npos);
  EXPECT_LT(html.size(), 20'000u);
}

TEST(HtmlTest, ShowsTablesVerdictsAndChecksWithoutScripts) {
  const std::string html = to_html(sample_report());
  EXPECT_NE(html.find("<th scope=\"col\">P50 <span class=\"unit\">ms</span></th>"),
            std::string::npos);
  EXPECT_NE(html.find("<td class=\"bad\">465.1</td>"), std::string::npos);
  EXPECT_NE(html.find("<td class=\"left muted\">  published</td>"), std::string::npos);
  EXPECT_NE(html.find("<section class=\"verdict is-cause\">"), std::string::npos);
  EXPECT_NE(html.find("✗</td><td class=\"left\">sharding and hedging"), std::string::npos);
  EXPECT_NE(html.find("2 of 3 hold"), std::string::npos);
  EXPECT_NE(html.find("<b>Lost:</b> 3 of 7,257 lock events"), std::string::npos);
}

TEST(HtmlTest, SaysThatAReportIsPartial) {
  Report report = sample_report();
  EXPECT_EQ(to_html(report).find(kPartialText), std::string::npos);
  report.run.partial = true;
  EXPECT_NE(to_html(report).find(kPartialText), std::string::npos);
}

TEST(HtmlTest, GivesTheChartsTheirDataAndGapsForMissingValues) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  Report report;
  report.add(CurveChart{"curve", {{"a", {{0.5, 1}, {0.9, kNan}, {1, 9}}}}, true});
  report.add(TimelineChart{"time",
                           {{"b", "%", {{0, 1}, {1, kNan}}, Side::kRight, Line::kDashed}},
                           {{0.5, "on"}},
                           {{15, "healthy", Side::kRight}}});
  const Json charts = charts_in(to_html(report));
  EXPECT_EQ(charts[0].dump(), R"({"kind":"curve","log_y":true,"series":[)"
                              R"({"name":"a","line":"solid","q":[0.5,0.9],"ms":[1.0,null]}]})");
  EXPECT_EQ(charts[1].dump(),
            R"({"kind":"timeline","series":[{"name":"b","unit":"%","side":"right",)"
            R"("line":"dashed","s":[0.0,1.0],"v":[1.0,null]}],"events":[[0.5,"on"]],)"
            R"("levels":[{"value":15.0,"label":"healthy","side":"right"}]})");
}

// To look at it: TAILWARD_SAMPLE_REPORT=/tmp/report.html report_test --gtest_filter='*Sample*'
TEST(HtmlTest, WritesASampleWhereOneIsAskedFor) {
  const char* path = std::getenv("TAILWARD_SAMPLE_REPORT");
  const std::string html = to_html(sample_report());
  EXPECT_GT(html.size(), 60'000u);
  if (path != nullptr) {
    EXPECT_TRUE(write_file_atomically(path, html).has_value());
  }
}

}  // namespace
}  // namespace tailward::report
