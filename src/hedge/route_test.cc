#include "hedge/route.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace tailward::hedge
