#include "plan/render.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "plan/testing.h"
#include "report/html.h"
#include "report/terminal.h"

namespace tailward::plan {
namespace {

using report::Json;
using ::testing::HasSubstr;
using ::testing::Not;

Reading reading_of(int count, double wait_ms = 0) {
  Rng rng(1);
  std::string text;
  for (int i = 0; i < count; ++i) {
    const double extra = rng.chance(0.01) ? wait_ms : 0;
    text += std::to_string(rng.lognormal(5, 2) * (rng.chance(0.05) ? 6 : 1) + extra) + "\n";
  }
  return *testing::read(text);
}

report::RunInfo run() {
  report::RunInfo run;
  run.command = "tailward plan --latencies FILE";
  run.version = "1.2.3";
  return run;
}

TEST(RenderPlanTest, WritesTheContractsJson) {
  const Reading reading = reading_of(20'000, 200);
  const Analysis analysis(reading, {.fanout = 7});
  const Json json = to_json(reading, analysis, run());
  for (const char* key : {"tailward", "command", "seed", "started", "partial"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  EXPECT_EQ(json["read"]["format"], "list");
  EXPECT_EQ(json["read"]["lines"], 20'000);
  EXPECT_EQ(json["read"]["latencies"], 20'000);
  EXPECT_EQ(json["read"]["skipped"], 0);
  ASSERT_EQ(json["policies"].size(), 4u);
  for (const Json& policy : json["policies"]) {
    for (const char* key : {"p50_ms", "p95_ms", "p99_ms", "p999_ms", "extra_load"}) {
      EXPECT_TRUE(policy[key].is_number()) << key;
    }
  }
  const Json& stage = json["policies"][1]["stages"][0];
  EXPECT_GT(stage["delay_ms"].get<double>(), 5);
  EXPECT_EQ(stage["probability"], 1);
  EXPECT_EQ(json["policies"][0]["stages"].size(), 0u);
  EXPECT_EQ(json["fanout"][1]["n"], 7);
  EXPECT_NEAR(json["fanout"][4]["slow_share"].get<double>(), 0.634, 0.0005);
  ASSERT_EQ(json["signatures"].size(), 1u);
  EXPECT_EQ(json["signatures"][0]["name"], "tcp-retransmission");
  EXPECT_EQ(json["signatures"][0]["at_ms"], 200);
  EXPECT_NEAR(json["signatures"][0]["share"].get<double>(), 0.01, 0.003);
  for (const char* key : {"meaning", "prove"}) {
    EXPECT_FALSE(json["signatures"][0][key].get<std::string>().empty());
  }
}

TEST(RenderPlanTest, HasNullWhereTheLogIsTooShort) {
  const Reading reading = reading_of(500);
  const Analysis analysis(reading, {});
  const Json json = to_json(reading, analysis, run());
  EXPECT_TRUE(json["policies"][0]["p999_ms"].is_null());
  EXPECT_TRUE(json["latency"]["p999_high_ms"].is_null());
  EXPECT_GT(json["latency"]["p999_low_ms"].get<double>(), 0);
  EXPECT_TRUE(json["latency"]["p50_ms"].is_number());
  const std::string text = report::to_terminal(to_report(reading, analysis, run()));
  EXPECT_THAT(text, HasSubstr("unknown"));
  EXPECT_THAT(text, HasSubstr("or more"));
}

TEST(RenderPlanTest, SaysWhatItAssumesAndWhatItRead) {
  const Reading reading = reading_of(20'000);
  const std::string text = report::to_terminal(to_report(reading, Analysis(reading, {}), run()));
  EXPECT_THAT(text, HasSubstr("Read as one latency per line in ms: 20,000 lines, 20,000"));
  EXPECT_THAT(text, HasSubstr("A log cannot tell whether that is so"));
  EXPECT_THAT(text, HasSubstr("if second"));
  EXPECT_THAT(text, HasSubstr("No heap of latencies"));
  EXPECT_THAT(text, Not(HasSubstr("Partial")));
}

TEST(RenderPlanTest, PutsTheCauseFirst) {
  const Reading reading = reading_of(20'000, 200);
  const std::string text = report::to_terminal(to_report(reading, Analysis(reading, {}), run()));
  const std::size_t signature = text.find("tcp-retransmission");
  ASSERT_NE(signature, std::string::npos);
  EXPECT_LT(signature, text.find("What policies would do"));
  EXPECT_THAT(text, HasSubstr("points to a cause that can be fixed"));
  EXPECT_THAT(text, HasSubstr("nstat"));
}

TEST(RenderPlanTest, FitsEightyColumnsWhateverIsKnown) {
  for (const int count : {1, 5, 500, 20'000}) {
    const Reading reading = reading_of(count, 1000);
    const std::string text =
        report::to_terminal(to_report(reading, Analysis(reading, {.fanout = 1'000'000}), run()));
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = text.find('\n', at);
      const std::string_view line = std::string_view(text).substr(at, end - at);
      const auto columns = std::count_if(line.begin(), line.end(), [](char c) {
        return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
      });
      EXPECT_LE(columns, 80) << line;
      at = end + 1;
    }
  }
}

TEST(RenderPlanTest, DrawsOneCurveForEachPolicyThatHedges) {
  const Reading reading = reading_of(20'000);
  const std::string page = report::to_html(to_report(reading, Analysis(reading, {}), run()));
  for (const char* name : {"off (as logged)", "static", "quantile", "adaptive"}) {
    EXPECT_THAT(page, HasSubstr(std::string("\"name\":\"") + name + "\""));
  }
}

TEST(RenderPlanTest, WarnsOfACoarseLogAndOfAStrangeUnit) {
  std::string coarse, strange;
  for (int i = 0; i < 100; ++i) {
    coarse += std::to_string(i % 4) + "\n";
    strange += std::to_string(4'000'000 + i) + "\n";
  }
  const auto text_of = [](const std::string& log) {
    const Reading reading = *testing::read(log);
    return report::to_terminal(to_report(reading, Analysis(reading, {}), run()));
  };
  EXPECT_THAT(text_of(coarse), HasSubstr("tells times apart by 1.00 ms only"));
  EXPECT_THAT(text_of(strange), HasSubstr("100 latencies are about an hour or longer"));
}

}  // namespace
}  // namespace tailward::plan
