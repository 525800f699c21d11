#include "lab/hedging/drift.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lab/hedging/drift_result.h"
#include "report/terminal.h"

namespace tailward::lab {
namespace {

using namespace std::chrono_literals;

// A hedge every `every`, after `from` and up to `to`.
std::vector<HedgeSample> hedges(Duration from, Duration to, Duration every) {
  std::vector<HedgeSample> samples;
  for (Duration at = from + every; at <= to; at += every) samples.push_back({at, 1});
  return samples;
}

std::vector<HedgeSample> operator+(std::vector<HedgeSample> a, const std::vector<HedgeSample>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST(DriftTest, HedgesAreCountedAfterTheBeginningAndUpToTheEnd) {
  const std::vector<HedgeSample> samples{{10ms, 1}, {20ms, 2}, {30ms, 4}, {40ms, 8}};
  EXPECT_EQ(hedges_between(samples, 10ms, 30ms), 6u);
  EXPECT_EQ(hedges_between(samples, 0ms, 1s), 15u);
  EXPECT_EQ(hedges_between(samples, 40ms, 1s), 0u);
}

TEST(DriftTest, HedgingStopsWithTheLastHedgeBeforeASilentSecond) {
  const auto samples = hedges(0s, 10s + 150ms, 30ms);
  EXPECT_EQ(stops_after(samples, 10s, 20s), Duration{140ms});
  // The first silence counts, whatever comes later.
  EXPECT_EQ(stops_after(samples + hedges(15s, 20s, 30ms), 10s, 20s), Duration{140ms});
}

TEST(DriftTest, AGapOfLessThanASecondIsNoStop) {
  const auto samples = hedges(0s, 11s, 100ms) + hedges(11s + 899ms, 13s, 100ms);
  EXPECT_EQ(stops_after(samples, 10s, 20s), Duration{2999ms});
  EXPECT_EQ(stops_after(hedges(0s, 20s, 30ms), 10s, 20s), std::nullopt);
  // No silent second is left before the end.
  EXPECT_EQ(stops_after(hedges(0s, 19s + 100ms, 50ms), 10s, 20s), std::nullopt);
  EXPECT_EQ(stops_after(hedges(0s, 19s, 50ms), 10s, 20s), Duration{9s});
}

TEST(DriftTest, WithoutAnyHedgeItStoppedAtOnce) {
  EXPECT_EQ(stops_after(hedges(0s, 10s, 10ms), 10s, 20s), Duration{0});
  EXPECT_EQ(stops_after({}, 10s, 20s), Duration{0});
  EXPECT_EQ(stops_after({}, 10s, 10s + 999ms), std::nullopt) << "nobody can tell yet";
}

TEST(DriftTest, HedgingIsBackWithTheFirstHedgeOfABusySecond) {
  // Healthy are 20 a second: 5 are enough.
  const auto back = hedges(13s, 20s, 100ms);
  EXPECT_EQ(back_after(back, 10s, 20s, 20), Duration{3100ms});
  // A single probe before it is no return.
  EXPECT_EQ(back_after(std::vector<HedgeSample>{{11s, 1}} + back, 10s, 20s, 20), Duration{3100ms});
  // Four a second are too few, one sample of five is enough.
  EXPECT_EQ(back_after(hedges(10s, 20s, 251ms), 10s, 20s, 20), std::nullopt);
  EXPECT_EQ(back_after(std::vector<HedgeSample>{{12s, 5}}, 10s, 20s, 20), Duration{2s});
}

TEST(DriftTest, HedgesBeforeTheRecoveryAndTooShortARestProveNoReturn) {
  EXPECT_EQ(back_after(hedges(0s, 10s, 10ms), 10s, 20s, 20), std::nullopt);
  EXPECT_EQ(back_after(hedges(19s + 500ms, 20s, 10ms), 10s, 20s, 20), std::nullopt);
  EXPECT_EQ(back_after(hedges(10s, 20s, 10ms), 10s, 20s, 0), std::nullopt)
      << "who never hedged cannot come back";
}

TEST(DriftTest, ProbationIsTimedFromTheFault) {
  const std::vector<ProbationChange> changes{{12s, true}, {25s, false}};
  EXPECT_EQ(turns_after(changes, 10s, 20s, true), Duration{2s});
  EXPECT_EQ(turns_after(changes, 20s, 30s, false), Duration{5s});
  EXPECT_EQ(turns_after(changes, 20s, 24s, false), std::nullopt) << "too late";
  EXPECT_EQ(turns_after(changes, 10s, 11s, true), std::nullopt);
  EXPECT_EQ(turns_after({}, 10s, 20s, true), std::nullopt);
  EXPECT_EQ(turns_after(changes, 13s, 20s, true), Duration{0}) << "it is so already";
  EXPECT_EQ(turns_after(changes, 30s, 40s, false), Duration{0});
}

TEST(DriftTest, ProbationIsSharedByTheTimeItLasted) {
  const std::vector<ProbationChange> changes{{12s, true}, {14s, false}, {16s, true}};
  EXPECT_NEAR(share_on(changes, 12s, 20s), 6.0 / 8, 1e-9);
  EXPECT_NEAR(share_on(changes, 13s, 15s), 0.5, 1e-9);
  EXPECT_NEAR(share_on(changes, 17s, 20s), 1, 1e-9);
  EXPECT_NEAR(share_on(changes, 0s, 12s), 0, 1e-9);
  EXPECT_NEAR(share_on({}, 0s, 1s), 0, 1e-9);
}

TEST(DriftTest, QuickDiffersInTheBrownOutOnly) {
  const auto full = drift_plan(false);
  const auto quick = drift_plan(true);
  ASSERT_EQ(full.size(), quick.size());
  std::set<std::string> names;
  for (std::size_t i = 0; i < full.size(); ++i) {
    EXPECT_TRUE(names.insert(full[i].name).second) << full[i].name;
    EXPECT_EQ(full[i].name, quick[i].name);
    EXPECT_EQ(full[i].length == quick[i].length, full[i].name != "brown-out");
  }
  EXPECT_EQ(full[2].length, 60s);
}

DriftPhase phase(std::string name, Duration from, Duration to, std::uint64_t hedged) {
  DriftPhase phase;
  phase.name = std::move(name);
  phase.from = from;
  phase.to = to;
  phase.requests = phase.eligible = 1000;
  phase.attempts = 1000 + hedged;
  phase.hedges = phase.hedged = hedged;
  phase.latency.record(10ms, 1000);
  phase.settled.record(10ms, 700);
  return phase;
}

// A run in which everything goes as it should.
Drift good() {
  Drift drift;
  drift.budget_share = 0.05;
  drift.budget_burst = 10;
  drift.phases = {phase("healthy", 0s, 10s, 50),    phase("brown-out", 10s, 20s, 1),
                  phase("recovered", 20s, 30s, 40), phase("one-slow", 30s, 40s, 50),
                  phase("healed", 40s, 50s, 50),    phase("low-traffic", 50s, 60s, 30),
                  phase("all-fail", 60s, 70s, 40)};
  drift.timeline = {{.seconds = 0.5, .trigger_rate = 0.05, .extra_load = 0.05, .p99_ms = 10},
                    {.seconds = 1.0, .trigger_rate = 0.05, .extra_load = 0.05}};
  drift.probation = {{30s + 500ms, true}, {43s, false}};
  evaluate(drift, hedges(0s, 10s + 100ms, 20ms) + hedges(22s, 50s, 20ms));
  return drift;
}

std::size_t failing(const Drift& drift) {
  std::size_t count = 0;
  for (const report::Check& check : drift_checks(drift)) count += check.ok ? 0 : 1;
  return count;
}

TEST(DriftTest, AGoodRunMeetsEveryBar) {
  const Drift drift = good();
  EXPECT_EQ(drift.brownout_stop, Duration{100ms});
  EXPECT_EQ(drift.brownout_late_load, 0.0);
  EXPECT_EQ(drift.back_after, Duration{2020ms});
  EXPECT_NEAR(*drift.one_slow_ratio(), 1, 1e-9);
  EXPECT_EQ(drift.probation_after, Duration{500ms});
  EXPECT_NEAR(*drift.probation_share, 1, 1e-9);
  EXPECT_EQ(drift.probation_over_after, Duration{3s});
  EXPECT_NEAR(*drift.all_fail_spent(), 40.0 / 60, 1e-9);
  EXPECT_EQ(failing(drift), 0u);
}

TEST(DriftTest, WhoLeftProbationWhileStillSlowDidNotComeBackByHealing) {
  Drift drift = good();
  drift.probation[1].at = 39s;
  drift.probation_over_after = std::nullopt;
  evaluate(drift, hedges(0s, 10s, 20ms));
  EXPECT_NEAR(*drift.probation_share, 8.5 / 9.5, 1e-9);
  EXPECT_EQ(drift.probation_over_after, std::nullopt);
}

TEST(DriftTest, ABrownOutSeenElsewhereIsAFalseAlarm) {
  Drift drift = good();
  drift.phases[1].brownouts = 1;
  EXPECT_EQ(drift.false_alarms(), 0u);
  drift.phases[3].brownouts = 2;
  drift.phases[0].brownouts = 1;
  EXPECT_EQ(drift.false_alarms(), 3u);
}

TEST(DriftTest, EachBarCanFail) {
  std::vector<Drift> bad(9, good());
  bad[0].brownout_stop = 201ms;
  bad[1].brownout_late_load = 0.006;  // an eighth of the healthy
  bad[2].back_after = std::nullopt;
  bad[3].phases[3].settled.record(16ms, 8);
  bad[4].probation_after = 3001ms;
  bad[5].probation_share = 0.89;
  bad[6].probation_over_after = std::nullopt;
  bad[7].phases[5].hedges = 12;
  bad[8].phases[6].hedges = 61;
  for (std::size_t i = 0; i < bad.size(); ++i) {
    const auto checks = drift_checks(bad[i]);
    EXPECT_FALSE(checks[i].ok) << checks[i].name;
    EXPECT_EQ(failing(bad[i]), 1u) << i;
  }
}

TEST(DriftTest, WhoNeverHedgedMeetsNoBarOfHedging) {
  Drift drift = good();
  for (DriftPhase& one : drift.phases) one.hedges = one.hedged = 0;
  drift.brownout_stop = drift.back_after = std::nullopt;
  drift.brownout_late_load = std::nullopt;
  evaluate(drift, {});
  EXPECT_EQ(drift.brownout_stop, std::nullopt) << "there was nothing to stop";
  const auto checks = drift_checks(drift);
  for (const std::size_t i : {0, 1, 2, 7}) EXPECT_FALSE(checks[i].ok) << checks[i].name;
}

TEST(DriftTest, OfSeveralRunsTheWorstCounts) {
  Drift first = good();
  Drift second = good();
  second.brownout_stop = 150ms;
  second.back_after = 1s;
  second.probation_after = std::nullopt;
  merge(first, second);
  EXPECT_EQ(first.brownout_stop, Duration{150ms});
  EXPECT_EQ(first.back_after, Duration{2020ms});
  EXPECT_EQ(first.probation_after, std::nullopt);
  EXPECT_EQ(first.find("healthy")->requests, 2000u);
  EXPECT_EQ(first.find("healthy")->latency.count(), 2000u);
  EXPECT_NEAR(*first.all_fail_spent(), 80.0 / 120, 1e-9) << "each run has a burst of its own";
}

DriftResult result_of(const Drift& drift) {
  DriftResult result;
  DriftRun& run = result.arms.emplace_back();
  run.arm.name = "adaptive";
  run.drift = drift;
  result.checks = drift_checks(drift);
  return result;
}

TEST(DriftTest, ARunThatEndedEarlyIsShownAsFarAsItCame) {
  for (std::size_t phases = 0; phases <= 7; ++phases) {
    Drift drift;
    drift.budget_share = 0.05;
    const Drift whole = good();
    drift.phases.assign(whole.phases.begin(),
                        whole.phases.begin() + static_cast<std::ptrdiff_t>(phases));
    evaluate(drift, hedges(0s, 10s, 20ms));
    DriftResult result = result_of(drift);
    result.partial = true;
    const Experiment experiment = lab::drift();
    EXPECT_FALSE(report::to_terminal(to_report(experiment, result, {})).empty());
    EXPECT_EQ(to_json(experiment, result, {})["arms"][0]["phases"].size(), phases);
    EXPECT_EQ(drift_checks(drift).size(), 9u);
  }
}

TEST(DriftTest, OnlyAPhaseThatHasEndedCanSayNever) {
  Drift drift = good();
  drift.back_after = std::nullopt;
  const auto answer = [&drift] {
    const std::string text = report::to_terminal(to_report(lab::drift(), result_of(drift), {}));
    const std::size_t line = text.find("recovered: hedging is back");
    return text.substr(line, text.find('\n', line) - line);
  };
  EXPECT_TRUE(answer().ends_with("never")) << answer();
  drift.phases.resize(3);  // up to "recovered", which is under way
  EXPECT_TRUE(answer().ends_with("–")) << answer();
}

// The contract that scripts rely on.
TEST(DriftTest, JsonHasThePhasesAndWhatTheBarsAreAbout) {
  Drift drift = good();
  drift.back_after = std::nullopt;
  const report::Json json = to_json(lab::drift(), result_of(drift), {});
  const report::Json& arm = json["arms"][0];
  EXPECT_EQ(arm["name"], "adaptive");
  for (const char* field : {"requests", "p50_ms", "p99_ms", "hedges", "extra_load"}) {
    EXPECT_TRUE(arm.contains(field)) << field;
  }
  for (const char* field : {"name", "from_s", "to_s", "requests", "failed", "p50_ms", "p99_ms",
                            "extra_load", "hedges", "trigger_rate"}) {
    EXPECT_TRUE(arm["phases"][0].contains(field)) << field;
  }
  EXPECT_EQ(arm["phases"][1]["name"], "brown-out");
  EXPECT_EQ(arm["phases"][1]["from_s"], 10.0);
  EXPECT_EQ(arm["brownout_stop_ms"], 100.0);
  EXPECT_TRUE(arm["back_after_ms"].is_null()) << "it never came back";
  EXPECT_EQ(arm["probation_after_ms"], 500.0);
  EXPECT_EQ(arm["timeline"][0]["p99_ms"], 10.0);
  EXPECT_TRUE(arm["timeline"][1]["p99_ms"].is_null());
  EXPECT_EQ(json["checks"].size(), 9u);
}

TEST(DriftTest, TheReportFitsEightyColumnsAndSaysNever) {
  Drift drift = good();
  drift.back_after = std::nullopt;
  const std::string text = report::to_terminal(to_report(lab::drift(), result_of(drift), {}));
  EXPECT_NE(text.find("never"), std::string::npos);
  EXPECT_NE(text.find("brown-out"), std::string::npos);
  EXPECT_NE(text.find("What it shows"), std::string::npos);
  EXPECT_EQ(text.find("Not shown"), std::string::npos) << "no column is dropped";
}

}  // namespace
}  // namespace tailward::lab
