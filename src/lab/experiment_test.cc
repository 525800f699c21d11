#include "lab/experiments.h"

#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <string>
#include <utility>

#include "lab/checks.h"
#include "lab/hedging/hedging_result.h"
#include "report/terminal.h"

namespace tailward::lab {
namespace {

using namespace std::chrono_literals;

ArmResult arm(std::string name, Duration latency, std::uint64_t requests = 1000) {
  ArmResult result;
  result.name = std::move(name);
  result.requests = requests;
  result.latency.record(latency, requests);
  result.counters.requests = requests;
  result.counters.eligible = requests;
  result.counters.attempts = requests;
  result.server.requests = requests;
  result.timeline.push_back(
      {.seconds = 0.25, .trigger_rate = 0.5, .lock_wait_ms_per_s = 10, .requests_per_s = 100});
  return result;
}

ArmResult hedged_arm(std::string name, Duration latency, double rate) {
  ArmResult result = arm(std::move(name), latency);
  result.hedging = true;
  result.counters.hedges = static_cast<std::uint64_t>(rate * 1000);
  result.counters.hedged_requests = result.counters.hedges;
  result.counters.due_requests = result.counters.hedges;
  result.counters.attempts += result.counters.hedges;
  return result;
}

const Experiment& three_layer() { return **find_experiment("three-layer"); }

HedgingResult sample() {
  HedgingResult result;
  result.arms = {arm("none", 50ms), hedged_arm("fixed", 150ms, 0.99)};
  result.arms[1].verdict = judge_arm(result.arms[1], &result.arms[0]);
  result.verdict = result.arms[1].verdict;
  result.checks = {check_above("worse", 3, 1.5), check_below("better", 3, 1)};
  return result;
}

TEST(ExperimentTest, EveryNameIsKnownOnce) {
  std::set<std::string> names;
  for (const Experiment& experiment : experiments()) {
    EXPECT_TRUE(names.insert(experiment.name).second) << experiment.name;
    EXPECT_FALSE(experiment.arms.empty());
    EXPECT_TRUE(find_experiment(experiment.name).has_value());
  }
  EXPECT_EQ(names, (std::set<std::string>{"falsification", "three-layer", "cost", "fanout",
                                          "production", "reference", "drift", "nodelay-batch",
                                          "nodelay-reqresp", "interlock", "buffers"}));
}

TEST(ExperimentTest, AnUnknownNameIsRefusedWithTheKnownOnes) {
  const auto unknown = find_experiment("three-layers");
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().kind, ErrorKind::kInvalid);
  EXPECT_NE(unknown.error().hint.find("three-layer"), std::string::npos);
}

TEST(ExperimentTest, ChecksHoldOnTheRightSideOfTheirBoundOnly) {
  EXPECT_TRUE(check_above("", 1.51, 1.5).ok);
  EXPECT_FALSE(check_above("", 1.5, 1.5).ok);
  EXPECT_TRUE(check_below("", 0.99, 1).ok);
  EXPECT_FALSE(check_below("", 1, 1).ok);
  EXPECT_TRUE(check_between("", 0.1, 0.1, 0.2).ok);
  EXPECT_FALSE(check_between("", 0.21, 0.1, 0.2).ok);
  EXPECT_FALSE(check_between("", 0.09, 0.1, 0.2).ok);
}

TEST(ExperimentTest, AResultIsOkWhenAllClaimsHoldAndNothingIsMissing) {
  HedgingResult result;
  result.checks = {check_above("", 2, 1)};
  EXPECT_TRUE(result.ok());
  result.partial = true;
  EXPECT_FALSE(result.ok());
  result.partial = false;
  result.checks.push_back(check_above("", 0, 1));
  EXPECT_FALSE(result.ok());
}

TEST(ExperimentTest, TheVerdictNamesTheServersLockWhenItGotWorse) {
  ArmResult none = arm("none", 50ms);
  none.server.lock_wait = 1s;
  ArmResult fixed = hedged_arm("fixed", 150ms, 0.30);
  fixed.server.lock_wait = 12s;
  const hedge::Verdict alone = judge_arm(fixed, nullptr);
  EXPECT_EQ(alone.layer, findings::Layer::kWatch);
  const hedge::Verdict compared = judge_arm(fixed, &none);
  EXPECT_EQ(compared.layer, findings::Layer::kCause);
  bool named = false;
  for (const findings::Evidence& finding : compared.evidence) {
    named = named || finding.text.find("lock wait per request is 12.0×") != std::string::npos;
  }
  EXPECT_TRUE(named);
}

// The contract that scripts rely on.
TEST(ExperimentTest, JsonHasTheFieldsOfTheContract) {
  report::RunInfo run;
  run.command = "tailward lab three-layer";
  run.version = "1";
  run.seed = 5;
  run.started = "2026-01-01T00:00:00Z";
  const report::Json json = to_json(three_layer(), sample(), run);
  for (const char* field : {"tailward", "command", "seed", "started", "partial", "experiment",
                            "arms", "verdict", "checks"}) {
    EXPECT_TRUE(json.contains(field)) << field;
  }
  EXPECT_EQ(json["experiment"], "three-layer");
  EXPECT_EQ(json["partial"], false);
  const report::Json& first = json["arms"][0];
  for (const char* field :
       {"name", "requests", "p50_ms", "p95_ms", "p99_ms", "p99_low_ms", "p99_high_ms", "p999_ms",
        "server_requests", "hedges", "trigger_rate", "extra_load", "lock_wait_ms", "article"}) {
    EXPECT_TRUE(first.contains(field)) << field;
  }
  EXPECT_NEAR(first["p50_ms"].get<double>(), 50, 0.5);
  EXPECT_FALSE(first.contains("verdict")) << "an arm that does not hedge has no verdict";
  EXPECT_EQ(json["arms"][1]["verdict"]["layer"], "cause");
  EXPECT_FALSE(json["arms"][1]["verdict"]["sentence"].get<std::string>().empty());
  EXPECT_NEAR(json["arms"][1]["trigger_rate"].get<double>(), 0.99, 1e-9);
  EXPECT_EQ(json["checks"][0]["ok"], true);
  EXPECT_EQ(json["checks"][1]["ok"], false);
}

TEST(ExperimentTest, FanOutArmsCarryTheirShareAndTheTheory) {
  HedgingResult result = sample();
  result.arms[0].fanout =
      Fanout{.n = 10, .slow = 19, .share = 0.095, .low = 0.06, .high = 0.14, .theory = 0.0956};
  const report::Json json = to_json(**find_experiment("fanout"), result, {});
  for (const char* field :
       {"slow_share", "slow_share_low", "slow_share_high", "theory", "n", "live"}) {
    EXPECT_TRUE(json["arms"][0].contains(field)) << field;
  }
}

TEST(ExperimentTest, APartialResultMakesNoClaims) {
  HedgingResult result = sample();
  result.partial = true;
  report::RunInfo run;
  run.partial = true;
  const report::Json json = to_json(three_layer(), result, run);
  EXPECT_EQ(json["partial"], true);
  EXPECT_TRUE(json["checks"].empty());
  const std::string text = report::to_terminal(to_report(three_layer(), result, run));
  EXPECT_EQ(text.find("What it shows"), std::string::npos);
}

TEST(ExperimentTest, TheReportFitsEightyColumnsAndSaysWhatFailed) {
  HedgingResult result = sample();
  result.arms[1].failed = 3;
  const std::string text = report::to_terminal(to_report(three_layer(), result, {}));
  EXPECT_NE(text.find("fixed"), std::string::npos);
  EXPECT_NE(text.find("3 requests failed"), std::string::npos);
  EXPECT_NE(text.find("CAUSE"), std::string::npos);
}

}  // namespace
}  // namespace tailward::lab
