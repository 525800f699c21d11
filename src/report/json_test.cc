#include "report/json.h"

#include <gtest/gtest.h>

#include <limits>

namespace tailward::report {
namespace {

RunInfo sample_run() {
  return {"tailward lab x", "1.2.3", UINT64_MAX, "2026-01-01T00:00:00Z", {}, {}, true};
}

TEST(EnvelopeTest, HoldsWhatEveryFileMustHaveInTheOrderOfTheContract) {
  EXPECT_EQ(to_text(envelope(sample_run())), R"({
  "tailward": "1.2.3",
  "command": "tailward lab x",
  "seed": 18446744073709551615,
  "started": "2026-01-01T00:00:00Z",
  "partial": true
}
)");
}

TEST(EnvelopeTest, AddsTheDurationAndTheMachineWhereKnown) {
  RunInfo run = sample_run();
  run.duration = from_ms(1500);
  run.machine = {2, "Linux 6.1"};
  const Json json = envelope(run);
  EXPECT_EQ(json["duration_ms"], 1500.0);
  EXPECT_EQ(json["machine"], (Json{{"cores", 2}, {"kernel", "Linux 6.1"}}));
}

TEST(JsonTest, SurvivesARoundTripWithHostileStrings) {
  Json json = envelope(sample_run());
  json["text"] = "\" \\ </script> \x01 \n µ 漢 \u2028";
  json["numbers"] = {0.1, 1e-9, 123456789.125, -0.0};
  EXPECT_EQ(Json::parse(to_text(json)), json);
  EXPECT_EQ(Json::parse(to_script_text(json)), json);
}

TEST(JsonTest, ReplacesBytesThatAreNotUtf8AndNumbersThatAreNotFinite) {
  const Json json{{"text", "a\xff"}, {"number", std::numeric_limits<double>::quiet_NaN()}};
  const Json back = Json::parse(to_text(json));
  EXPECT_EQ(back["text"], "a\uFFFD");
  EXPECT_TRUE(back["number"].is_null());
}

TEST(JsonTest, ForAScriptHoldsNothingThatCouldEndOne) {
  const std::string text = to_script_text({{"<!--<script>", "</script>]]>&\u2028\u2029"}});
  EXPECT_EQ(text.find_first_of("<>&\n"), std::string::npos);
  EXPECT_EQ(text.find("\u2028"), std::string::npos);
  EXPECT_NE(text.find("\\u003c/script\\u003e"), std::string::npos);
}

TEST(JsonTest, WritesVerdictsAndChecksInTheWordsOfTheContract) {
  const findings::Statement verdict{
      findings::Layer::kCause, "It is the lock.", {{"lock wait 37 s"}}};
  EXPECT_EQ(to_json(verdict), (Json{{"layer", "cause"},
                                    {"sentence", "It is the lock."},
                                    {"findings", Json::array({"lock wait 37 s"})}}));
  EXPECT_EQ(to_json(findings::Statement{})["findings"], Json::array());
  const Checks checks{
      "claims", {{"P50 is worse", true, "×3.1", "> 1.5", 3.1}, {"it ends", false, "no", "yes"}}};
  const Json expected =
      Json::array({{{"name", "P50 is worse"}, {"ok", true}, {"value", 3.1}, {"bound", "> 1.5"}},
                   {{"name", "it ends"}, {"ok", false}, {"value", "no"}, {"bound", "yes"}}});
  EXPECT_EQ(to_json(checks), expected);
  EXPECT_EQ(to_json(Checks{}), Json::array());
}

}  // namespace
}  // namespace tailward::report
