// What the adaptive policy makes of single requests: the control group, slices without hedging,
// the dry run, probation, and why each request was hedged or not.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <iostream>
#include <memory>
#include <set>

#include "hedge/engine/adaptive_testing.h"

namespace tailward::hedge {
namespace {

using AdaptiveRaceTest = AdaptiveFixture;

TEST_F(AdaptiveRaceTest, BeforeEnoughIsKnownNothingIsHedged) {
  make(plain());
  run(199);
  route_->tick(now_);
  EXPECT_EQ(plan().stages, 0);
  EXPECT_EQ(hedges_when_slow(), 0u);
  EXPECT_EQ(last().delay, kForever);
  EXPECT_EQ(last().group, Group::kHedged);
}

TEST_F(AdaptiveRaceTest, ASlowRequestIsHedgedAtThePlansDelay) {
  make(plain());
  learn();
  const Stage stage = plan().stage[0];
  EXPECT_GT(stage.delay, 5ms);
  EXPECT_LT(stage.delay, 30ms);
  std::size_t hedged = 0;
  double expected = 0;
  for (int i = 0; i < 40; ++i) {
    run(24);  // otherwise everything were slow
    expected += plan().stage[0].probability;
    hedged += hedges_when_slow();
  }
  EXPECT_NEAR(static_cast<double>(hedged), expected, 8);
  EXPECT_EQ(route_->counters().hedged_requests, hedged);
}

TEST_F(AdaptiveRaceTest, TheControlGroupIsNeverHedgedForSlowness) {
  RouteConfig config = plain();
  config.proof.control_share = 0.1;
  make(config);
  learn();
  int control = 0;
  for (int i = 0; i < 500; ++i) {
    ASSERT_GE(plan().stages, 1);
    const std::uint64_t eligible = route_->counters().eligible;
    Race race(*route_);
    const Started started = start(race);
    (void)race.on_outcome(0, kGood, now_ + usual());
    step();
    const bool hedged = last().group == Group::kHedged;
    EXPECT_EQ(route_->counters().eligible - eligible, hedged ? 1u : 0u);
    EXPECT_EQ(started.armed < kForever, hedged);
    EXPECT_EQ(last().delay < kForever, hedged);
    if (hedged) continue;
    ASSERT_EQ(last().group, Group::kControl);
    ++control;
  }
  EXPECT_NEAR(control, 50, 25);
}

TEST_F(AdaptiveRaceTest, AFailureInTheControlGroupStillGoesOn) {
  RouteConfig config = plain();
  config.proof.control_share = 1;
  make(config);
  run(1500);
  Race race(*route_);
  const Started primary = start(race);
  const Actions actions = race.on_outcome(0, kAnswered503, now_ + 3ms);
  ASSERT_EQ(actions.size(), 1u);
  EXPECT_EQ(actions.begin()->kind, Action::Kind::kStart);
  EXPECT_NE(actions.begin()->host, primary.host);
  EXPECT_EQ(route_->counters().hedges_after_failure, 1u);
}

TEST_F(AdaptiveRaceTest, TheControlGroupIsTheShareThatWasAskedFor) {
  RouteConfig config = plain();
  config.proof.control_share = 0.1;
  make(config);
  run(1500);
  const std::uint64_t eligible = route_->counters().eligible;
  run(2000);
  EXPECT_NEAR(static_cast<double>(route_->counters().eligible - eligible), 1800, 54);
  const auto compared = static_cast<double>(route_->proof(now_).control_requests);
  EXPECT_NEAR(compared, 330, 60) << "of those that began with a plan";
}

// Requests for which nothing was planned cannot show what hedging does.
TEST_F(AdaptiveRaceTest, RequestsBeforeThePlanAreNotCompared) {
  RouteConfig config = plain();
  config.proof.control_share = 0.5;
  make(config);
  run(100);
  EXPECT_EQ(route_->proof(now_).control_requests, 0u);
}

TEST_F(AdaptiveRaceTest, InASliceWithoutHedgingNobodyIsHedgedAndEverybodyCounts) {
  RouteConfig config = plain();
  config.proof.switchback.enabled = true;
  config.proof.switchback.trial_pairs_min = 1000;
  config.proof.control_share = 0.1;
  make(config);
  learn();
  std::set<Group> groups_on;
  int off = 0;
  int in_slices = 0;
  for (int i = 0; i < 3000; ++i) {
    const bool hedging = route_->switchback().hedging();
    Race race(*route_);
    const Started started = start(race);
    (void)race.on_outcome(0, kGood, now_ + 5ms);
    if (hedging) {
      groups_on.insert(last().group);
    } else {
      ++off;
      ASSERT_EQ(last().group, Group::kSliceOff);
      ASSERT_EQ(started.armed, kForever);
    }
    in_slices += route_->switchback().slice(now_) != 0 ? 1 : 0;
    step();
  }
  EXPECT_NEAR(off, 1500, 450);
  EXPECT_NEAR(in_slices, 1500, 150);
  EXPECT_EQ(groups_on, (std::set<Group>{Group::kHedged, Group::kControl}));
  EXPECT_GT(route_->switchback().measured(), 5u);
}

TEST_F(AdaptiveRaceTest, TheSliceOfARequestIsTheOneInWhichItBegan) {
  RouteConfig config = plain();
  config.proof.switchback.enabled = true;
  config.proof.switchback.trial_pairs_min = 1000;
  make(config);
  learn();
  for (int i = 0; i < 1000 && route_->switchback().hedging(); ++i) run(1);
  // It begins unhedged and stays so, though hedging is on again before it ends.
  Race race(*route_);
  EXPECT_EQ(start(race).armed, kForever);
  const TimePoint began = now_;
  for (int i = 0; i < 1000 && !route_->switchback().hedging(); ++i) run(1);
  EXPECT_EQ(race.on_timer(now_).size(), 0u);
  (void)race.on_outcome(0, kGood, now_);
  EXPECT_EQ(last().group, Group::kSliceOff);
  EXPECT_EQ(last().latency, now_ - began);
}

TEST_F(AdaptiveRaceTest, ADryRunDecidesAndSendsNothing) {
  RouteConfig config = plain();
  config.dry_run = true;
  make(config);
  learn();
  int rounds = 0;
  for (; rounds < 100 && denied(Denied::kDryRun) == 0; ++rounds) {
    EXPECT_EQ(hedges_when_slow(), 0u);
  }
  ASSERT_EQ(denied(Denied::kDryRun), 1u);
  const Counters& counters = route_->counters();
  EXPECT_EQ(counters.hedges, 0u);
  EXPECT_EQ(counters.attempts, counters.requests);
  EXPECT_EQ(counters.due_requests, 1u);
  EXPECT_EQ(counters.hedged_requests, 0u);
  EXPECT_TRUE(last().due);
  EXPECT_EQ(last().hedges, 0);
  EXPECT_TRUE(last().was_denied);
  EXPECT_EQ(last().denied, Denied::kDryRun);
}

// So that what it counts is what would have been sent.
TEST_F(AdaptiveRaceTest, ADryRunSpendsItsBudget) {
  RouteConfig config = plain();
  config.dry_run = true;
  config.budget = {.share = 0.0, .burst = 2, .floor = 2};
  config.policy = {.kind = Policy::Kind::kFixed, .delay = 10ms, .copies = 1};
  make(config);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(hedges_when_slow(), 0u);
  EXPECT_EQ(denied(Denied::kDryRun), 2u);
  EXPECT_EQ(denied(Denied::kBudget), 3u);
  EXPECT_EQ(route_->budget().hedges_in_flight(), 0);
}

TEST_F(AdaptiveRaceTest, AfterAFailureADryRunHandsTheFailureOver) {
  RouteConfig config = plain();
  config.dry_run = true;
  make(config);
  Race race(*route_);
  (void)start(race);
  const Actions actions = race.on_outcome(0, kAnswered503, now_ + 3ms);
  ASSERT_EQ(actions.size(), 1u);
  EXPECT_EQ(actions.begin()->kind, Action::Kind::kFinish);
  EXPECT_EQ(actions.begin()->attempt, 0);
  EXPECT_EQ(denied(Denied::kDryRun), 1u);
}

TEST_F(AdaptiveRaceTest, OneSlowHostGoesOnProbationAndGetsOneRequestInTwoHundred) {
  make(plain());
  learn();
  run(60, 0);
  ASSERT_TRUE(route_->hosts().on_probation(0));
  EXPECT_EQ(route_->overload().state(), Overload::State::kClear);
  const std::uint64_t before = route_->hosts().at(0).attempts;
  run(1000, 0);
  EXPECT_EQ(route_->hosts().at(0).attempts - before, 5u);
  EXPECT_TRUE(route_->hosts().on_probation(0));
}

TEST_F(AdaptiveRaceTest, AProbeIsHedgedAtThePlansDelayWhereThatIsBeforeTheLimit) {
  make(plain());
  learn();
  run(60, 0);
  ASSERT_TRUE(route_->hosts().on_probation(0));
  for (int i = 0; i < 200; ++i) {
    Race race(*route_);
    const Plan planned = plan();
    const Started started = start(race);
    (void)race.on_outcome(0, kGood, now_ + (started.host == 0 ? 60ms : usual()));
    step();
    if (started.host != 0) continue;
    ASSERT_GE(planned.stages, 1);
    EXPECT_EQ(started.armed, std::min(planned.stage[0].delay, route_->overload().limit()));
    return;
  }
  FAIL() << "no probe in 200 requests";
}

// Without a tail there is no plan: the limit is what a probe is hedged at, and for certain.
TEST_F(AdaptiveRaceTest, AProbeIsHedgedAtTheLimitWhereThereIsNoPlan) {
  make(plain());
  const auto even = [&](int count, HostIndex slow) {
    for (int i = 0; i < count; ++i) {
      Race race(*route_);
      const Started started = start(race);
      (void)race.on_outcome(0, kGood, now_ + (started.host == slow ? 60ms : 5ms));
      step();
    }
  };
  even(1500, kNoHost);
  ASSERT_EQ(plan().stages, 0);
  even(60, 0);
  ASSERT_TRUE(route_->hosts().on_probation(0));
  int probes = 0;
  for (int i = 0; i < 1000; ++i) {
    Race race(*route_);
    const Started started = start(race);
    if (started.host != 0) {
      EXPECT_EQ(started.armed, kForever);
    } else {
      ++probes;
      EXPECT_EQ(started.armed, route_->overload().limit());
      EXPECT_EQ(starts(race.on_timer(now_ + started.armed)), 1u);
    }
    (void)race.on_outcome(0, kGood, now_ + (started.host == 0 ? 60ms : 5ms));
    step();
  }
  EXPECT_EQ(probes, 5);
}

TEST_F(AdaptiveRaceTest, AProbeIsSeldomARequestThatNoHedgeCanSave) {
  make(plain());
  learn();
  run(60, 0);
  ASSERT_TRUE(route_->hosts().on_probation(0));
  for (const RequestInfo& request :
       {RequestInfo{.idempotent = false}, RequestInfo{.replayable = false},
        RequestInfo{.is_hedge = true}}) {
    int probes = 0;
    for (int i = 0; i < 800; ++i) {
      Race race(*route_);
      const bool probe = start(race, request).host == 0;
      probes += probe ? 1 : 0;
      (void)race.on_outcome(0, kGood, now_ + (probe ? 60ms : 5ms));
      step();
    }
    EXPECT_NEAR(probes, 1, 1) << "or the host would never come back";
  }
}

TEST_F(AdaptiveRaceTest, AHostThatIsWellAgainComesBack) {
  make(plain());
  learn();
  run(60, 0);
  ASSERT_TRUE(route_->hosts().on_probation(0));
  run(6000);  // sixty probes
  EXPECT_FALSE(route_->hosts().on_probation(0));
  const std::uint64_t before = route_->hosts().at(0).attempts;
  run(300);
  EXPECT_NEAR(static_cast<double>(route_->hosts().at(0).attempts - before), 100, 30);
}

TEST_F(AdaptiveRaceTest, AnOverloadDeniesEveryHedge) {
  make(plain());
  learn();
  for (int i = 0; i < 60; ++i) {  // all hosts at once
    Race race(*route_);
    (void)start(race);
    (void)race.on_outcome(0, kGood, now_ + 60ms);
    step();
  }
  ASSERT_EQ(route_->overload().state(), Overload::State::kOverloaded);
  const std::uint64_t hedges = route_->counters().hedges;
  for (int i = 0; i < 50; ++i) EXPECT_EQ(hedges_when_slow(), 0u);
  EXPECT_EQ(route_->counters().hedges, hedges);
  EXPECT_GT(denied(Denied::kOverload), 20u);
  EXPECT_EQ(last().denied, Denied::kOverload);
  Race failing(*route_);
  (void)start(failing);
  EXPECT_EQ(starts(failing.on_outcome(0, kAnswered503, now_ + 3ms)), 0u) << "nor after failures";
}

TEST_F(AdaptiveRaceTest, ARequestLongerThanTheLimitIsKnownToBeSoWhenItsDelayHasPassed) {
  make(plain());
  learn();
  // They hang: none of them ever ends.
  std::vector<std::unique_ptr<Race>> hanging;
  for (int i = 0; i < 60; ++i) {
    auto race = std::make_unique<Race>(*route_);
    const Started started = start(*race);
    const Duration late = std::max(started.armed, route_->overload().limit());
    (void)race->on_timer(now_ + late);
    hanging.push_back(std::move(race));
  }
  EXPECT_GE(route_->hosts().shifted(), 2u);
  EXPECT_EQ(route_->overload().state(), Overload::State::kOverloaded);
}

TEST_F(AdaptiveRaceTest, RequestsThatCannotBeHedgedAreToldApart) {
  make(plain());
  learn();
  std::uint64_t nobody = 0;
  for (int i = 0; i < 50; ++i) nobody += hedges_when_slow({.idempotent = false});
  EXPECT_EQ(nobody, 0u);
  EXPECT_EQ(last().group, Group::kOff);
  EXPECT_TRUE(last().was_denied);
  EXPECT_THAT(last().denied, testing::AnyOf(Denied::kNotIdempotent, Denied::kProbability));
}

TEST_F(AdaptiveRaceTest, EveryRequestLeavesItsDecision) {
  RouteConfig config;
  config.policy = {.kind = Policy::Kind::kFixed, .delay = 20ms, .copies = 1};
  config.budget.unlimited = true;
  make(config);
  Race race(*route_);
  const Started started = start(race);
  (void)race.on_timer(now_ + 20ms);
  (void)race.on_outcome(1, kGood, now_ + 26ms);
  ASSERT_EQ(route_->decisions().size(), 1u);
  const Decision& decision = last();
  EXPECT_EQ(decision.request, 1u);
  EXPECT_EQ(decision.at, now_ + 26ms);
  EXPECT_EQ(decision.latency, 26ms);
  EXPECT_EQ(decision.delay, 20ms);
  EXPECT_EQ(decision.host, started.host);
  EXPECT_EQ(decision.group, Group::kHedged);
  EXPECT_TRUE(decision.due);
  EXPECT_EQ(decision.hedges, 1);
  EXPECT_EQ(decision.winner, 1);
  EXPECT_FALSE(decision.was_denied);
}

TEST_F(AdaptiveRaceTest, TheLast256DecisionsAreKeptInTheOrderOfTheirEnds) {
  RouteConfig config;
  config.policy = {.kind = Policy::Kind::kFixed, .delay = 20ms, .copies = 1};
  config.budget = {.share = 0, .floor = 0};
  make(config);
  for (int i = 1; i <= 300; ++i) {
    Race race(*route_);
    (void)start(race);
    if (i % 2 == 0) (void)race.on_timer(now_ + 20ms);
    (void)race.on_outcome(0, kGood, now_ + 30ms);
    EXPECT_EQ(route_->decisions().size(), static_cast<std::size_t>(std::min(i, 256)));
    step();
  }
  for (std::size_t back = 0; back < 256; ++back) {
    const Decision& decision = route_->decisions().last(back);
    ASSERT_EQ(decision.request, 300 - back);
    ASSERT_EQ(decision.was_denied, decision.request % 2 == 0);
    ASSERT_EQ(decision.denied, Denied::kBudget);
    ASSERT_EQ(decision.due, decision.request % 2 == 0);
    ASSERT_EQ(decision.winner, 0);
  }
}

TEST_F(AdaptiveRaceTest, ARequestThatNobodyAnsweredHasNoWinner) {
  make(plain());
  Race race(*route_);
  (void)start(race);
  (void)race.on_caller_gone(now_ + 4ms);
  EXPECT_EQ(last().winner, kNoAttempt);
  EXPECT_EQ(last().latency, 4ms);
}

TEST_F(AdaptiveRaceTest, OtherPoliciesHaveNoExperiments) {
  RouteConfig config;
  config.policy = {.kind = Policy::Kind::kFixed, .delay = 20ms, .copies = 1};
  config.proof.control_share = 1;
  config.budget.unlimited = true;
  make(config);
  run(1500);
  EXPECT_EQ(hedges_when_slow(), 1u);
  EXPECT_EQ(last().group, Group::kHedged);
  run(200, 0);
  EXPECT_EQ(route_->hosts().shifted(), 0u);
}

TEST_F(AdaptiveRaceTest, WithPolicyOffTheGroupIsOff) {
  make(RouteConfig{});
  run(1);
  EXPECT_EQ(last().group, Group::kOff);
  EXPECT_EQ(to_string(Group::kHedged), "hedged");
  EXPECT_EQ(to_string(Group::kControl), "control");
  EXPECT_EQ(to_string(Group::kSliceOff), "slice_off");
  EXPECT_EQ(to_string(Group::kOff), "off");
}

}  // namespace
}  // namespace tailward::hedge
