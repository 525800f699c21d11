#include "hedge/route.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/rng.h"
#include "hedge/race.h"

namespace tailward::hedge {
namespace {

using namespace std::chrono_literals;

// Runs one request every `gap` for `length`, each answered after about 5 ms, with a tick every 100
// ms. Returns the share of ticks, in the second half of the time, at which the route has a plan.
double planned_share(const Policy& policy, Duration gap, Duration length) {
  RouteConfig config;
  config.policy = policy;
  Route route(config);
  for (const char* host : {"a", "b"}) EXPECT_TRUE(route.add_host(host).has_value());
  Rng rng(1);
  TimePoint now{1s};
  TimePoint next_request = now;
  const TimePoint end = now + length;
  int ticks = 0;
  int planned = 0;
  for (; now < end; now += 100ms) {
    for (; next_request <= now; next_request += gap) {
      Race race(route);
      (void)race.start({}, next_request);
      (void)race.on_outcome(0, {}, next_request + from_ms(rng.uniform(3, 7)));
    }
    route.tick(now);
    if (now < end - length / 2) continue;
    ++ticks;
    planned += route.plan_board().read().stages > 0 ? 1 : 0;
  }
  return static_cast<double>(planned) / ticks;
}

TEST(RouteTest, AQuietServiceKeepsWhatItHasLearned) {
  const Policy q95{.kind = Policy::Kind::kQuantile, .quantile = 0.95};
  EXPECT_EQ(planned_share(q95, 1s, 1h), 1);
  EXPECT_EQ(planned_share(q95, 300ms, 1h), 1);
  const Policy q99{.kind = Policy::Kind::kQuantile, .quantile = 0.99};
  EXPECT_EQ(planned_share(q99, 100ms, 1h), 1);
}

TEST(RouteTest, OldSamplesFadeWhereThereAreEnough) {
  RouteConfig config;
  config.policy = {.kind = Policy::Kind::kQuantile, .quantile = 0.9};
  Route route(config);
  ASSERT_TRUE(route.add_host("a").has_value());
  TimePoint now{1s};
  const auto run = [&](Duration latency, Duration length) {
    for (const TimePoint end = now + length; now < end; now += 10ms) {
      Race race(route);
      (void)race.start({}, now);
      (void)race.on_outcome(0, {}, now + latency);
      route.tick(now);
    }
  };
  run(10ms, 60s);
  EXPECT_NEAR(to_ms(route.plan_board().read().stage[0].delay), 10, 0.2);
  run(5ms, 240s);
  EXPECT_NEAR(to_ms(route.plan_board().read().stage[0].delay), 5, 0.1)
      << "eight half-lives later nothing is left of the slow minute";
}

// An adaptive route on three hosts that runs a request every 10 ms, with a tick every 100 ms.
class AdaptiveRouteTest : public ::testing::Test {
 protected:
  void make(const RouteConfig& config) {
    route_ = std::make_unique<Route>(config);
    for (const char* host : {"a", "b", "c"}) ASSERT_TRUE(route_->add_host(host).has_value());
  }
  static RouteConfig config() {
    RouteConfig config;
    config.policy = {.kind = Policy::Kind::kAdaptive, .goal = 0.99, .copies = 1};
    config.budget.share = 0.1;
    config.proof.control_share = 0;
    return config;
  }
  // One request in 25 takes 100 ms, the others about 5; all of them `slower` while hedging is on.
  void run(Duration length, Duration slower = {}) {
    for (const TimePoint end = now_ + length; now_ < end; now_ += 10ms) {
      Race race(*route_);
      (void)race.start({}, now_);
      const bool harmed = route_->switchback().hedging() && !route_->off_since();
      const Duration latency = ++drawn_ % 25 == 0 ? 100ms : 5ms + (drawn_ % 7) * 100us;
      (void)race.on_outcome(0, {}, now_ + latency + (harmed ? slower : Duration{}));
      if (drawn_ % 10 == 0) route_->tick(now_);
    }
  }
  TimePoint now_{1s};
  int drawn_ = 0;
  std::unique_ptr<Route> route_;
};

TEST_F(AdaptiveRouteTest, WithoutHarmItsTrialEndsAndHedgingStaysOn) {
  make(config());
  run(120s);
  EXPECT_FALSE(route_->switchback().on_trial());
  EXPECT_FALSE(route_->off_since().has_value());
  EXPECT_TRUE(harmless(route_->proof(now_).switchback));
  EXPECT_EQ(route_->plan_board().read().stages, 1);
  EXPECT_EQ(route_->planned().plan.stages, 1);
}

TEST_F(AdaptiveRouteTest, WhereItDoesHarmItIsOffAndIsTriedAgainLaterEachTime) {
  RouteConfig config = AdaptiveRouteTest::config();
  config.retrial = 60s;
  config.retrial_max = 150s;
  make(config);
  std::vector<Duration> off_for;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 3000 && !route_->off_since(); ++i) run(100ms, 1ms);
    ASSERT_TRUE(route_->off_since().has_value()) << "round " << round;
    const TimePoint since = *route_->off_since();
    const std::uint64_t eligible = route_->counters().eligible;
    run(20s, 1ms);
    EXPECT_EQ(route_->counters().eligible, eligible);
    EXPECT_EQ(route_->decisions().last(0).group, Group::kOff);
    EXPECT_EQ(route_->verdict(now_).layer, Layer::kCause);
    for (int i = 0; i < 3000 && route_->off_since(); ++i) run(100ms, 1ms);
    off_for.push_back(now_ - since);
    EXPECT_TRUE(route_->switchback().on_trial());
    EXPECT_EQ(route_->switchback().measured(), 0u) << "it begins with nothing known";
  }
  EXPECT_NEAR(to_seconds(off_for[0]), 60, 0.3);
  EXPECT_NEAR(to_seconds(off_for[1]), 120, 0.3);
  EXPECT_NEAR(to_seconds(off_for[2]), 150, 0.3) << "no longer than that";
}

TEST_F(AdaptiveRouteTest, WithoutAutoOffItSaysSoAndGoesOn) {
  RouteConfig config = AdaptiveRouteTest::config();
  config.auto_off = false;
  make(config);
  run(60s, 1ms);
  EXPECT_FALSE(route_->off_since().has_value());
  EXPECT_TRUE(harms(route_->proof(now_).switchback));
  EXPECT_EQ(route_->verdict(now_).layer, Layer::kCause);
  EXPECT_EQ(route_->verdict(now_).sentence.find("switched itself off"), std::string::npos);
}

TEST_F(AdaptiveRouteTest, ForgettingTheBaselineEndsWhatWasConcludedFromIt) {
  make(config());
  for (int i = 0; i < 3000 && !route_->off_since(); ++i) run(100ms, 1ms);
  ASSERT_TRUE(route_->off_since().has_value());
  route_->forget_baseline();
  EXPECT_FALSE(route_->off_since().has_value());
  EXPECT_FALSE(route_->baseline().learned());
  EXPECT_FALSE(route_->switchback().effect().known);
}

TEST_F(AdaptiveRouteTest, NothingIsPlannedBeforeTwoHundredRequestsWhateverIsAskedFor) {
  RouteConfig config = AdaptiveRouteTest::config();
  config.samples_min = 1;
  make(config);
  run(1990ms);
  route_->tick(now_);
  EXPECT_EQ(route_->plan_board().read().stages, 0);
  EXPECT_GT(route_->plan_board().read().fresh_median, 4ms);
  run(100ms);
  route_->tick(now_);
  EXPECT_EQ(route_->plan_board().read().stages, 1);
}

TEST(RouteTest, NamesWhyHedgesAreDenied) {
  EXPECT_EQ(to_string(Denied::kBrownout), "brownout");
  EXPECT_EQ(to_string(Denied::kProbability), "probability");
  EXPECT_EQ(to_string(Denied::kDryRun), "dry_run");
  for (std::size_t i = 0; i < kDeniedCount; ++i) {
    EXPECT_NE(to_string(static_cast<Denied>(i)), "unknown");
  }
}

// Every field is one word of eight bytes, so the words are the fields.
TEST(CountersTest, EveryFieldIsAddedAndTakenAway) {
  using Words = std::array<std::int64_t, sizeof(Counters) / sizeof(std::int64_t)>;
  Words one{};
  Words ten{};
  for (std::size_t i = 0; i < one.size(); ++i) {
    one[i] = static_cast<std::int64_t>(i + 1);
    ten[i] = 10 * one[i];
  }
  auto counters = std::bit_cast<Counters>(one);
  counters += std::bit_cast<Counters>(ten);
  const auto sum = std::bit_cast<Words>(counters);
  for (std::size_t i = 0; i < sum.size(); ++i) EXPECT_EQ(sum[i], 11 * one[i]) << "word " << i;
  counters -= std::bit_cast<Counters>(one);
  EXPECT_EQ(std::bit_cast<Words>(counters), ten);
}

}  // namespace
}  // namespace tailward::hedge
