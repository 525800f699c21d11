#include "hedge/safety/breaker.h"

#include <gtest/gtest.h>

namespace tailward::hedge {
namespace {

using namespace std::chrono_literals;
using State = Breaker::State;

constexpr TimePoint kStart{1s};

// Of a window of 10 s, a cool-down of 1 s and no more than 4 s.
BreakerConfig config() { return {.cool_down_max = 4s}; }

void attempts(Breaker& breaker, TimePoint now, int good, int failed) {
  for (int i = 0; i < good; ++i) breaker.first_attempt_ended(now, false);
  for (int i = 0; i < failed; ++i) breaker.first_attempt_ended(now, true);
}

// Opened at kStart, by a quarter of the attempts failing.
Breaker opened() {
  Breaker breaker(config());
  attempts(breaker, kStart, 15, 5);
  EXPECT_EQ(breaker.state(), State::kOpen);
  return breaker;
}

TEST(BreakerTest, AllowsHedgesWhileFewAttemptsFail) {
  Breaker breaker(config());
  attempts(breaker, kStart, 900, 100);
  EXPECT_TRUE(breaker.allows_hedge(kStart)) << "exactly the limit is not above it";
  EXPECT_FALSE(breaker.hedge_sent()) << "no probe while it is closed";
  EXPECT_DOUBLE_EQ(breaker.error_rate(kStart), 0.1);
}

TEST(BreakerTest, OpensAboveTheErrorRate) {
  Breaker breaker(config());
  attempts(breaker, kStart, 900, 100);
  attempts(breaker, kStart, 0, 1);
  EXPECT_FALSE(breaker.allows_hedge(kStart));
  EXPECT_EQ(breaker.times_opened(), 1u);
}

TEST(BreakerTest, AFewSamplesProveNothing) {
  Breaker breaker(config());
  attempts(breaker, kStart, 0, 19);
  EXPECT_EQ(breaker.state(), State::kClosed);
  attempts(breaker, kStart, 0, 1);
  EXPECT_EQ(breaker.state(), State::kOpen);
}

TEST(BreakerTest, ErrorsThatHaveLeftTheWindowDoNotCount) {
  Breaker breaker(config());
  attempts(breaker, kStart, 0, 19);
  attempts(breaker, kStart + 11s, 15, 1);
  attempts(breaker, kStart + 11s, 15, 1);
  EXPECT_EQ(breaker.state(), State::kClosed);
}

TEST(BreakerTest, LetsOneProbeThroughAfterTheCoolDown) {
  Breaker breaker = opened();
  EXPECT_FALSE(breaker.allows_hedge(kStart + 1s - 1ns));
  EXPECT_TRUE(breaker.allows_hedge(kStart + 1s));
  EXPECT_EQ(breaker.state(), State::kHalfOpen);
  EXPECT_TRUE(breaker.hedge_sent());
  EXPECT_FALSE(breaker.allows_hedge(kStart + 1s)) << "one at a time";
}

TEST(BreakerTest, AskingWithoutSendingUsesNoProbeUp) {
  Breaker breaker = opened();
  EXPECT_TRUE(breaker.allows_hedge(kStart + 1s));
  EXPECT_TRUE(breaker.allows_hedge(kStart + 1s)) << "the budget said no to the first";
}

TEST(BreakerTest, AGoodProbeClosesItOnceTheErrorRateIsDown) {
  Breaker breaker = opened();
  attempts(breaker, kStart + 500ms, 100, 0);
  ASSERT_TRUE(breaker.allows_hedge(kStart + 1s));
  ASSERT_TRUE(breaker.hedge_sent());
  breaker.probe_ended(kStart + 1s, false);
  EXPECT_EQ(breaker.state(), State::kClosed);
  EXPECT_TRUE(breaker.allows_hedge(kStart + 1s));
}

TEST(BreakerTest, AGoodProbeAmongFailingAttemptsDoesNotCloseIt) {
  Breaker breaker = opened();
  ASSERT_TRUE(breaker.allows_hedge(kStart + 1s));
  ASSERT_TRUE(breaker.hedge_sent());
  breaker.probe_ended(kStart + 1s, false);
  EXPECT_EQ(breaker.state(), State::kOpen);
}

TEST(BreakerTest, ABadProbeOpensItForTwiceAsLongUpToTheLimit) {
  Breaker breaker = opened();
  attempts(breaker, kStart, 1000, 0);
  TimePoint now = kStart + 1s;
  for (const Duration cool_down : {2s, 4s, 4s}) {
    ASSERT_TRUE(breaker.allows_hedge(now));
    ASSERT_TRUE(breaker.hedge_sent());
    breaker.probe_ended(now, true);
    EXPECT_FALSE(breaker.allows_hedge(now + cool_down - 1ns));
    now += cool_down;
    EXPECT_TRUE(breaker.allows_hedge(now));
  }
  EXPECT_EQ(breaker.times_opened(), 4u);
}

TEST(BreakerTest, OnceClosedItStartsAgainWithTheFirstCoolDown) {
  Breaker breaker = opened();
  TimePoint now = kStart + 1s;
  ASSERT_TRUE(breaker.allows_hedge(now));
  ASSERT_TRUE(breaker.hedge_sent());
  breaker.probe_ended(now, true);
  now += 12s;
  attempts(breaker, now, 100, 0);
  ASSERT_TRUE(breaker.allows_hedge(now));
  ASSERT_TRUE(breaker.hedge_sent());
  breaker.probe_ended(now, false);
  ASSERT_EQ(breaker.state(), State::kClosed);
  attempts(breaker, now, 0, 20);
  EXPECT_FALSE(breaker.allows_hedge(now + 1s - 1ns));
  EXPECT_TRUE(breaker.allows_hedge(now + 1s));
}

TEST(BreakerTest, ASupersededProbeLetsTheFirstAttemptsDecide) {
  Breaker failing = opened();
  ASSERT_TRUE(failing.allows_hedge(kStart + 1s));
  ASSERT_TRUE(failing.hedge_sent());
  failing.probe_withdrawn(kStart + 1s);
  EXPECT_EQ(failing.state(), State::kHalfOpen);
  EXPECT_TRUE(failing.allows_hedge(kStart + 1s)) << "the next one may probe";

  Breaker well = opened();
  attempts(well, kStart, 1000, 0);
  ASSERT_TRUE(well.allows_hedge(kStart + 1s));
  ASSERT_TRUE(well.hedge_sent());
  well.probe_withdrawn(kStart + 1s);
  EXPECT_EQ(well.state(), State::kClosed);
}

TEST(BreakerTest, AnEndThatComesAfterItClosedIsIgnored) {
  Breaker breaker(config());
  breaker.probe_ended(kStart, true);
  breaker.probe_withdrawn(kStart);
  EXPECT_EQ(breaker.state(), State::kClosed);
  EXPECT_EQ(breaker.times_opened(), 0u);
}

}  // namespace
}  // namespace tailward::hedge
