// The rules of the race, one test each, on the ordered log of its actions. Many carry the number of
// the user report that they answer (docs/design/reports.md).
#include "hedge/engine/race.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace tailward::hedge {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr TimePoint kStart{1s};

std::string to_text(const Action& action) {
  switch (action.kind) {
    case Action::Kind::kStart:
      return fmt::format("start {}", action.attempt);
    case Action::Kind::kCancel:
      return fmt::format("cancel {}", action.attempt);
    case Action::Kind::kArm:
      return action.at == kNever ? "disarm" : fmt::format("arm {:g}ms", to_ms(action.at - kStart));
    case Action::Kind::kFinish:
      break;
  }
  static constexpr const char* kEndings[] = {"answered", "failed", "timed out", "caller gone"};
  const char* ending = kEndings[static_cast<int>(action.ending)];
  return action.attempt == kNoAttempt ? fmt::format("finish {}", ending)
                                      : fmt::format("finish {} {}", action.attempt, ending);
}

std::vector<std::string> to_texts(const Actions& actions) {
  std::vector<std::string> texts;
  for (const Action& action : actions) texts.push_back(to_text(action));
  return texts;
}

RouteConfig config_with(const Policy& policy) {
  RouteConfig config;
  config.policy = policy;
  config.budget.unlimited = true;
  return config;
}

Policy fixed(Duration delay, int copies = 1) {
  return Policy{.kind = Policy::Kind::kFixed, .delay = delay, .copies = copies};
}

std::unique_ptr<Route> route_of(const RouteConfig& config, int hosts = 3) {
  auto route = std::make_unique<Route>(config);
  for (int i = 0; i < hosts; ++i)
    EXPECT_TRUE(route->add_host(fmt::format("host{}", i)).has_value());
  return route;
}

std::unique_ptr<Route> fixed_route(Duration delay = 50ms, int copies = 1, int hosts = 3) {
  return route_of(config_with(fixed(delay, copies)), hosts);
}

constexpr Outcome kGood{};
constexpr Outcome kAnswered503{.result = Outcome::Class::kBad};
constexpr Outcome kRefused{.result = Outcome::Class::kBad, .has_response = false};

Outcome pushed_back(Pushback pushback) {
  Outcome outcome = kAnswered503;
  outcome.pushback = pushback;
  return outcome;
}

std::uint64_t denied(const Route& route, Denied why) {
  return route.counters().denied[static_cast<std::size_t>(why)];
}

HostIndex host_of(const Actions& actions) {
  for (const Action& action : actions) {
    if (action.kind == Action::Kind::kStart) return action.host;
  }
  return kNoHost;
}

// Attempts are where they should be: begun = ended + alive.
void expect_balanced(const Route& route, std::uint64_t in_flight = 0) {
  const Counters& c = route.counters();
  EXPECT_EQ(c.attempts,
            c.succeeded + c.failed + c.superseded + c.cancelled + c.not_sent + in_flight);
  EXPECT_EQ(c.attempts, c.requests + c.hedges);
  std::uint64_t at_hosts = 0;
  for (std::size_t i = 0; i < route.hosts().size(); ++i) {
    at_hosts += route.hosts().at(static_cast<HostIndex>(i)).in_flight;
  }
  EXPECT_EQ(at_hosts, in_flight);
  EXPECT_EQ(route.budget().primaries_in_flight() + route.budget().hedges_in_flight(),
            static_cast<std::int64_t>(in_flight));
}

TEST(RaceTest, StartsTheHedgeOnlyAfterItsDelay) {
  auto route = fixed_route();
  Race race(*route);
  EXPECT_THAT(to_texts(race.start({}, kStart)), ElementsAre("start 0", "arm 50ms"));
  EXPECT_THAT(to_texts(race.on_timer(kStart + 50ms - 1ns)), ElementsAre("arm 50ms"));
  EXPECT_THAT(to_texts(race.on_timer(kStart + 50ms)), ElementsAre("start 1"));
  expect_balanced(*route, 2);
}

TEST(RaceTest, AnAnswerBeforeTheDelayEndsItWithoutAHedge) {
  auto route = fixed_route();
  Race race(*route);
  (void)race.start({}, kStart);
  EXPECT_THAT(to_texts(race.on_outcome(0, kGood, kStart + 10ms)), ElementsAre("finish 0 answered"));
  EXPECT_THAT(to_texts(race.on_timer(kStart + 50ms)), IsEmpty());
  EXPECT_EQ(route->counters().hedges, 0u);
  expect_balanced(*route);
}

TEST(RaceTest, WithPolicyOffNothingIsArmedOrHedged) {
  auto route = route_of(config_with({}));
  Race race(*route);
  EXPECT_THAT(to_texts(race.start({}, kStart)), ElementsAre("start 0"));
  EXPECT_THAT(to_texts(race.on_outcome(0, kRefused, kStart + 1ms)), ElementsAre("finish 0 failed"));
  EXPECT_EQ(route->counters().eligible, 0u);
}

// Reports 2, 38: losers are released at once and nobody waits for them.
TEST(RaceTest, TheFirstGoodAnswerWinsAndTheLoserIsCancelledInTheSameBreath) {
  auto route = fixed_route();
  Race race(*route);
  (void)race.start({}, kStart);
  (void)race.on_timer(kStart + 50ms);
  EXPECT_THAT(to_texts(race.on_outcome(1, kGood, kStart + 60ms)),
              ElementsAre("cancel 0", "finish 1 answered"));
  EXPECT_EQ(route->counters().hedge_wins, 1u);
  EXPECT_EQ(route->counters().superseded, 1u);
  EXPECT_EQ(route->counters().wasted, 60ms);
  expect_balanced(*route);
}

TEST(RaceTest, WhatComesAfterTheFinishIsIgnored) {
  auto route = fixed_route();
  Race race(*route);
  (void)race.start({}, kStart);
  (void)race.on_timer(kStart + 50ms);
  (void)race.on_outcome(0, kGood, kStart + 60ms);
  EXPECT_THAT(to_texts(race.on_outcome(1, kGood, kStart + 60ms)), IsEmpty());
  EXPECT_THAT(to_texts(race.on_outcome(1, kAnswered503, kStart + 61ms)), IsEmpty());
  EXPECT_THAT(to_texts(race.on_caller_gone(kStart + 62ms)), IsEmpty());
  expect_balanced(*route);
}

// Report 10: a failure does not wait out the delay.
TEST(RaceTest, AFailureStartsTheNextAttemptAtOnce) {
  auto route = fixed_route();
  Race race(*route);
  (void)race.start({}, kStart);
  EXPECT_THAT(to_texts(race.on_outcome(0, kRefused, kStart + 1ms)),
              ElementsAre("start 1", "disarm"));
  EXPECT_EQ(route->counters().hedges_after_failure, 1u);
  EXPECT_EQ(route->counters().hedged_requests, 0u)
      << "the trigger rate counts slowness, not failures";
  EXPECT_THAT(to_texts(race.on_outcome(1, kGood, kStart + 3ms)),
              ElementsAre("cancel 0", "finish 1 answered"));
  expect_balanced(*route);
}

TEST(RaceTest, ALaterStageKeepsItsTimeAfterAFailureTookTheOneBefore) {
  auto route = fixed_route(50ms, 2);
  Race race(*route);
  EXPECT_THAT(to_texts(race.start({}, kStart)), ElementsAre("start 0", "arm 50ms"));
  EXPECT_THAT(to_texts(race.on_outcome(0, kRefused, kStart + 1ms)),
              ElementsAre("start 1", "arm 100ms"));
  EXPECT_THAT(to_texts(race.on_timer(kStart + 100ms)), ElementsAre("start 2"));
}

TEST(RaceTest, ABadHedgeDoesNotEndTheRaceOfAHealthyPrimary) {
  auto route = fixed_route();
  Race race(*route);
  (void)race.start({}, kStart);
  (void)race.on_timer(kStart + 50ms);
  EXPECT_THAT(to_texts(race.on_outcome(1, kRefused, kStart + 51ms)), IsEmpty());
  EXPECT_THAT(to_texts(race.on_outcome(0, kGood, kStart + 90ms)),
              ElementsAre("cancel 1", "finish 0 answered"));
}

// Report 12: a request with nothing outstanding is answered, not left to its deadline.
TEST(RaceTest, WhenAllHaveFailedTheCallerGetsThePrimarysAnswer) {
  auto route = fixed_route();
  Race race(*route);
  (void)race.start({}, kStart);
  (void)race.on_outcome(0, kAnswered503, kStart + 1ms);
  EXPECT_THAT(to_texts(race.on_outcome(1, kAnswered503, kStart + 2ms)),
              ElementsAre("cancel 1", "finish 0 failed"));
  expect_balanced(*route);
}

TEST(RaceTest, AnAnswerOfAHedgeTellsMoreThanARefusedPrimary) {
  auto route = fixed_route();
  Race race(*route);
  (void)race.start({}, kStart);
  (void)race.on_outcome(0, kRefused, kStart + 1ms);
  EXPECT_THAT(to_texts(race.on_outcome(1, kAnswered503, kStart + 2ms)),
              ElementsAre("cancel 0", "finish 1 failed"));
}

TEST(RaceTest, AFatalOutcomeEndsTheRaceAtOnce) {
  auto route = fixed_route();
  Race race(*route);
  (void)race.start({}, kStart);
  (void)race.on_timer(kStart + 50ms);
  const Outcome fatal{.result = Outcome::Class::kFatal};
  EXPECT_THAT(to_texts(race.on_outcome(1, fatal, kStart + 55ms)),
              ElementsAre("cancel 0", "finish 1 failed"));
  expect_balanced(*route);
}

// Report 12, 18: the budget suppresses the new attempt and nothing else.
TEST(RaceTest, AnExhaustedBudgetLeavesTheLivingAttemptsAlone) {
  RouteConfig config = config_with(fixed(50ms));
  config.budget = {.share = 0, .burst = 0, .floor = 0};
  auto route = route_of(config);
  Race race(*route);
  (void)race.start({}, kStart);
  EXPECT_THAT(to_texts(race.on_timer(kStart + 50ms)), IsEmpty());
  EXPECT_EQ(denied(*route, Denied::kBudget), 1u);
  EXPECT_EQ(route->counters().due_requests, 1u);
  EXPECT_THAT(to_texts(race.on_outcome(0, kGood, kStart + 500ms)),
              ElementsAre("finish 0 answered"));
}

TEST(RaceTest, AFailureThatMayNotBeHedgedIsAnsweredAtOnce) {
  RouteConfig config = config_with(fixed(50ms));
  config.budget = {.share = 0, .burst = 0, .floor = 0};
  auto route = route_of(config);
  Race race(*route);
  (void)race.start({}, kStart);
  EXPECT_THAT(to_texts(race.on_outcome(0, kAnswered503, kStart + 1ms)),
              ElementsAre("finish 0 failed"));
}

// Report 1.
TEST(RaceTest, ARequestThatIsNotIdempotentIsNeverSentTwice) {
  auto route = fixed_route();
  Race slow(*route);
  (void)slow.start({.idempotent = false}, kStart);
  EXPECT_THAT(to_texts(slow.on_timer(kStart + 50ms)), IsEmpty());
  EXPECT_EQ(denied(*route, Denied::kNotIdempotent), 1u);
  Race failing(*route);
  (void)failing.start({.idempotent = false}, kStart);
  EXPECT_THAT(to_texts(failing.on_outcome(0, kRefused, kStart + 1ms)),
              ElementsAre("finish 0 failed"));
  EXPECT_EQ(route->counters().hedges, 0u);
  EXPECT_EQ(route->counters().eligible, 0u);
}

// Report 37: a body that cannot be replayed passes through unhedged.
TEST(RaceTest, ABodyTooLongToKeepIsNotHedged) {
  auto route = fixed_route();
  Race race(*route);
  (void)race.start({.replayable = false}, kStart);
  EXPECT_THAT(to_texts(race.on_timer(kStart + 50ms)), IsEmpty());
  EXPECT_EQ(denied(*route, Denied::kNotReplayable), 1u);
}

// Report 50.
TEST(RaceTest, ARequestThatIsItselfAHedgeIsNotHedgedAgain) {
  auto route = fixed_route();
  Race race(*route);
  (void)race.start({.is_hedge = true}, kStart);
  EXPECT_THAT(to_texts(race.on_timer(kStart + 50ms)), IsEmpty());
  EXPECT_EQ(denied(*route, Denied::kNested), 1u);
}

// Report 34: with one endpoint the request keeps waiting for it.
TEST(RaceTest, WithoutAnotherHostItWaitsOn) {
  auto route = fixed_route(50ms, 1, 1);
  Race race(*route);
  (void)race.start({}, kStart);
  EXPECT_THAT(to_texts(race.on_timer(kStart + 50ms)), IsEmpty());
  EXPECT_EQ(denied(*route, Denied::kNoOtherHost), 1u);
  EXPECT_THAT(to_texts(race.on_outcome(0, kGood, kStart + 500ms)),
              ElementsAre("finish 0 answered"));
}

TEST(RaceTest, EveryAttemptOfARequestGoesToAHostOfItsOwn) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    RouteConfig config = config_with(fixed(10ms, 4));
    config.seed = seed;
    auto route = route_of(config, 4);
    Race race(*route);
    std::vector<HostIndex> used{host_of(race.start({}, kStart))};
    for (int stage = 1; stage <= 4; ++stage) {
      const HostIndex host = host_of(race.on_timer(kStart + 10ms * stage));
      if (stage == 4) {
        EXPECT_EQ(host, kNoHost) << "four hosts serve four attempts";
        continue;
      }
      EXPECT_THAT(used, ::testing::Not(::testing::Contains(host))) << "seed " << seed;
      used.push_back(host);
    }
  }
}

TEST(RaceTest, ARouteWithoutHostsFailsAtOnce) {
  auto route = fixed_route(50ms, 1, 0);
  Race race(*route);
  EXPECT_THAT(to_texts(race.start({}, kStart)), ElementsAre("finish failed"));
}

TEST(RaceTest, PushbackHoldsTheNextAttemptBackUntilItsTime) {
  auto route = fixed_route();
  Race race(*route);
  (void)race.start({}, kStart);
  const Outcome later = pushed_back({Pushback::Kind::kAfter, 200ms});
  EXPECT_THAT(to_texts(race.on_outcome(0, later, kStart + 10ms)), ElementsAre("arm 210ms"));
  EXPECT_THAT(to_texts(race.on_timer(kStart + 210ms - 1ns)), ElementsAre("arm 210ms"));
  EXPECT_THAT(to_texts(race.on_timer(kStart + 210ms)), ElementsAre("start 1"));
}

TEST(RaceTest, PushbackOfAHedgeHoldsTheFollowingStageBack) {
  auto route = fixed_route(50ms, 2);
  Race race(*route);
  (void)race.start({}, kStart);
  (void)race.on_timer(kStart + 50ms);
  const Outcome later = pushed_back({Pushback::Kind::kAfter, 300ms});
  EXPECT_THAT(to_texts(race.on_outcome(1, later, kStart + 60ms)), ElementsAre("arm 360ms"));
  EXPECT_THAT(to_texts(race.on_timer(kStart + 360ms)), ElementsAre("start 2"));
}

TEST(RaceTest, PushbackWithoutATimeEndsHedging) {
  auto route = fixed_route(50ms, 2);
  Race race(*route);
  (void)race.start({}, kStart);
  (void)race.on_timer(kStart + 50ms);
  EXPECT_THAT(
      to_texts(race.on_outcome(1, pushed_back({Pushback::Kind::kNever, {}}), kStart + 60ms)),
      ElementsAre("disarm"));
  EXPECT_THAT(to_texts(race.on_timer(kStart + 100ms)), IsEmpty());
  EXPECT_THAT(to_texts(race.on_outcome(0, kGood, kStart + 200ms)),
              ElementsAre("cancel 1", "finish 0 answered"));
}

TEST(RaceTest, ALongPushbackIsPassedOnRatherThanWaitedFor) {
  auto route = fixed_route();
  Race race(*route);
  (void)race.start({}, kStart);
  EXPECT_THAT(
      to_texts(race.on_outcome(0, pushed_back({Pushback::Kind::kAfter, 30s}), kStart + 10ms)),
      ElementsAre("finish 0 failed"));
}

TEST(RaceTest, NobodyWaitsForAHedgeThatCannotBeSent) {
  const Outcome later = pushed_back({Pushback::Kind::kAfter, 1s});
  auto single = fixed_route(50ms, 1, 1);
  Race alone(*single);
  (void)alone.start({}, kStart);
  EXPECT_THAT(to_texts(alone.on_outcome(0, later, kStart + 1ms)), ElementsAre("finish 0 failed"));
  RouteConfig config = config_with(fixed(50ms));
  config.budget = {.share = 0, .burst = 0, .floor = 0};
  auto poor = route_of(config);
  Race broke(*poor);
  (void)broke.start({}, kStart);
  EXPECT_THAT(to_texts(broke.on_outcome(0, later, kStart + 1ms)), ElementsAre("finish 0 failed"));
}

TEST(RaceTest, AnAttemptThatALimitOfOursKeptBackIsNobodysFailure) {
  auto route = fixed_route();
  Race race(*route);
  (void)race.start({}, kStart);
  (void)race.on_timer(kStart + 50ms);
  const Outcome refused{.result = Outcome::Class::kNotSent, .has_response = false};
  EXPECT_THAT(to_texts(race.on_outcome(1, refused, kStart + 50ms)), IsEmpty());
  EXPECT_THAT(to_texts(race.on_outcome(0, kGood, kStart + 70ms)),
              ElementsAre("cancel 1", "finish 0 answered"));
  EXPECT_EQ(route->counters().not_sent, 1u);
  EXPECT_EQ(route->counters().failed, 0u);
  EXPECT_EQ(route->counters().extra_load(), 0);
  expect_balanced(*route);
}

// Report 16.
TEST(RaceTest, NothingIsHedgedAfterTooManyRequests) {
  auto route = fixed_route(50ms, 2);
  Race race(*route);
  (void)race.start({}, kStart);
  Outcome overloaded = kAnswered503;
  overloaded.overloaded = true;
  EXPECT_THAT(to_texts(race.on_outcome(0, overloaded, kStart + 1ms)),
              ElementsAre("finish 0 failed"));
  EXPECT_EQ(route->counters().hedges, 0u);
}

// Report 57: cancel wins over timer.
TEST(RaceTest, ACallerGoneAtTheInstantOfTheTimerWins) {
  auto route = fixed_route();
  Race race(*route);
  (void)race.start({}, kStart);
  EXPECT_THAT(to_texts(race.on_caller_gone(kStart + 50ms)),
              ElementsAre("cancel 0", "finish caller gone"));
  EXPECT_THAT(to_texts(race.on_timer(kStart + 50ms)), IsEmpty());
  EXPECT_EQ(route->counters().hedges, 0u);
  EXPECT_EQ(route->counters().cancelled, 1u);
  expect_balanced(*route);
}

TEST(RaceTest, TheDeadlineCancelsEveryAttempt) {
  auto route = fixed_route();
  Race race(*route);
  EXPECT_THAT(to_texts(race.start({.deadline = kStart + 80ms}, kStart)),
              ElementsAre("start 0", "arm 50ms"));
  EXPECT_THAT(to_texts(race.on_timer(kStart + 50ms)), ElementsAre("start 1", "arm 80ms"));
  EXPECT_THAT(to_texts(race.on_timer(kStart + 80ms)),
              ElementsAre("cancel 0", "cancel 1", "finish timed out"));
  EXPECT_EQ(route->counters().timed_out, 1u);
  expect_balanced(*route);
}

TEST(RaceTest, AtTheDeadlineAnAnswerThatWasHeldIsBetterThanNone) {
  auto route = fixed_route();
  Race race(*route);
  (void)race.start({.deadline = kStart + 80ms}, kStart);
  (void)race.on_timer(kStart + 50ms);
  (void)race.on_outcome(0, kAnswered503, kStart + 60ms);
  EXPECT_THAT(to_texts(race.on_timer(kStart + 80ms)),
              ElementsAre("cancel 1", "finish 0 timed out"));
  expect_balanced(*route);
}

TEST(RaceTest, NoHedgeIsSentThatCouldNotMakeTheDeadline) {
  auto route = fixed_route();
  for (int i = 0; i < 200; ++i) {
    Race race(*route);
    (void)race.start({}, kStart);
    (void)race.on_outcome(0, kGood, kStart + 40ms);
  }
  route->tick(kStart + 100ms);
  Race race(*route);
  (void)race.start({.deadline = kStart + 80ms}, kStart);
  EXPECT_THAT(to_texts(race.on_timer(kStart + 50ms)), ElementsAre("arm 80ms"));
  EXPECT_EQ(denied(*route, Denied::kDeadline), 1u);
}

TEST(RaceTest, ADriverThatWakesLateSendsOneHedgeAtATime) {
  auto route = fixed_route(50ms, 3);
  Race race(*route);
  (void)race.start({}, kStart);
  EXPECT_THAT(to_texts(race.on_timer(kStart + 10s)), ElementsAre("start 1", "arm 10050ms"));
}

// Reports 42, 43, 58: a loser is neither a success nor a failure.
TEST(RaceTest, LosersTrainNeitherBreakerNorHost) {
  auto route = fixed_route();
  for (int i = 0; i < 100; ++i) {
    Race race(*route);
    (void)race.start({}, kStart);
    (void)race.on_timer(kStart + 50ms);
    (void)race.on_outcome(1, kGood, kStart + 60ms);
  }
  EXPECT_EQ(route->breaker().error_rate(kStart + 1s), 0);
  for (HostIndex host = 0; host < 3; ++host) {
    EXPECT_EQ(route->hosts().at(host).failures, 0u);
    EXPECT_EQ(route->hosts().at(host).failures_in_a_row, 0);
  }
  EXPECT_EQ(route->counters().failed, 0u);
  EXPECT_EQ(route->counters().superseded, 100u);
}

// Report 45: a host that always triggers hedges must not look like one without latency.
TEST(RaceTest, ASupersededFirstAttemptIsACensoredSample) {
  auto route = fixed_route();
  for (int i = 0; i < 50; ++i) {
    Race race(*route);
    (void)race.start({}, kStart);
    (void)race.on_timer(kStart + 50ms);
    (void)race.on_outcome(1, kGood, kStart + 60ms);
  }
  const stats::Survival first = route->first_attempts_now();
  EXPECT_DOUBLE_EQ(first.weight(), 50);
  EXPECT_DOUBLE_EQ(first.finished_weight(), 0);
  EXPECT_DOUBLE_EQ(first.above(59ms), 1);
}

TEST(RaceTest, ErrorsNeverEnterTheEstimator) {
  auto route = fixed_route();
  for (int i = 0; i < 50; ++i) {
    Race race(*route);
    (void)race.start({}, kStart);
    (void)race.on_outcome(0, kAnswered503, kStart + 1us);
    (void)race.on_outcome(1, kGood, kStart + 5ms);
  }
  EXPECT_EQ(route->first_attempts_now().weight(), 0);
}

TEST(RaceTest, ABodyThatStreamsThroughTeachesNoLatency) {
  auto route = fixed_route();
  Race answered(*route);
  (void)answered.start({.replayable = false}, kStart);
  (void)answered.on_outcome(0, kGood, kStart + 30s);
  Race given_up(*route);
  (void)given_up.start({.replayable = false}, kStart);
  (void)given_up.on_caller_gone(kStart + 30s);
  EXPECT_EQ(route->first_attempts_now().weight(), 0);
}

TEST(RaceTest, AHedgesLatencyDoesNotEnterTheFirstAttempts) {
  auto route = fixed_route();
  Race race(*route);
  (void)race.start({}, kStart);
  (void)race.on_timer(kStart + 50ms);
  (void)race.on_outcome(1, kGood, kStart + 51ms);
  EXPECT_DOUBLE_EQ(route->first_attempts_now().above(50ms), 1);
}

TEST(RaceTest, ALearnedDelayWaitsForEnoughSamples) {
  auto route = route_of(config_with({.kind = Policy::Kind::kQuantile, .quantile = 0.90}));
  const auto run_one = [&](Duration latency) {
    Race race(*route);
    const std::vector<std::string> began = to_texts(race.start({}, kStart));
    (void)race.on_outcome(0, kGood, kStart + latency);
    return began.size() > 1;
  };
  for (int i = 0; i < 99; ++i) EXPECT_FALSE(run_one(10ms));
  route->tick(kStart + 1s);
  EXPECT_FALSE(run_one(10ms)) << "99 samples are not enough";
  route->tick(kStart + 2s);
  EXPECT_TRUE(run_one(10ms)) << "100 are";
  const Plan plan = route->plan_board().read();
  EXPECT_EQ(plan.stages, 1);
  EXPECT_NEAR(to_ms(plan.stage[0].delay), 10, 0.2);
}

TEST(RaceTest, DestroyingARaceUnderWayLeavesNothingInFlight) {
  auto route = fixed_route();
  {
    Race race(*route);
    (void)race.start({}, kStart);
    (void)race.on_timer(kStart + 50ms);
    expect_balanced(*route, 2);
  }
  expect_balanced(*route);
  EXPECT_EQ(route->counters().cancelled, 2u);
  EXPECT_EQ(route->counters().caller_gone, 1u);
}

// Report 36: what one route does is no business of another.
TEST(RaceTest, RoutesHavePoliciesOfTheirOwn) {
  auto quick = fixed_route(10ms);
  auto never = route_of(config_with({}));
  Race a(*quick);
  Race b(*never);
  EXPECT_THAT(to_texts(a.start({}, kStart)), ElementsAre("start 0", "arm 10ms"));
  EXPECT_THAT(to_texts(b.start({}, kStart)), ElementsAre("start 0"));
}

TEST(RaceTest, AnOpenBreakerStopsHedgesButNoPrimary) {
  auto route = fixed_route();
  TimePoint now = kStart;
  for (int i = 0; i < 40; ++i) {
    now += 1ms;
    Race race(*route);
    (void)race.start({.idempotent = false}, now);
    (void)race.on_outcome(0, i % 4 == 0 ? kAnswered503 : kGood, now);
  }
  EXPECT_EQ(route->breaker().state(), Breaker::State::kOpen);
  Race race(*route);
  EXPECT_NE(host_of(race.start({}, now)), kNoHost);
  EXPECT_EQ(host_of(race.on_timer(now + 50ms)), kNoHost);
  EXPECT_EQ(denied(*route, Denied::kBreaker), 1u);
}

}  // namespace
}  // namespace tailward::hedge
