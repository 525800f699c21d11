// A route in virtual time, for the tests of the adaptive policy.
//
// For tests only. Thread safety: one thread.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>

#include "hedge/engine/race.h"

namespace tailward::hedge {

using namespace std::chrono_literals;

inline constexpr Outcome kGood{};
inline constexpr Outcome kAnswered503{.result = Outcome::Class::kBad};

// No experiments, and a budget that is not what holds hedges back.
inline RouteConfig plain() {
  RouteConfig config;
  config.policy = {.kind = Policy::Kind::kAdaptive, .goal = 0.99, .copies = 1};
  config.budget = {.share = 0.1, .burst = 1000, .floor = 1000, .in_flight_floor = 100};
  config.proof.control_share = 0;
  config.proof.switchback.enabled = false;
  return config;
}

// A route in virtual time. One request in 25 is slow: 100 ms, the others about 5 ms.
class AdaptiveFixture : public ::testing::Test {
 protected:
  void make(const RouteConfig& config, int hosts = 3) {
    route_ = std::make_unique<Route>(config);
    for (int i = 0; i < hosts; ++i)
      ASSERT_TRUE(route_->add_host(fmt::format("host{}", i)).has_value());
  }

  Duration usual() { return ++drawn_ % 25 == 0 ? 100ms : 5ms + (drawn_ % 7) * 100us; }

  // Runs `count` requests, 10 ms apart, whose primaries answer in their own time; no hedge in
  // sight. A host that is `slow` takes 60 ms.
  void run(int count, HostIndex slow = kNoHost) {
    for (int i = 0; i < count; ++i) {
      Race race(*route_);
      const Started started = start(race);
      (void)race.on_outcome(0, kGood, now_ + (started.host == slow ? 60ms : usual()));
      step();
    }
  }
  // `count` requests, each of which is answered after `latency`.
  void answer_all_after(Duration latency, int count) {
    for (int i = 0; i < count; ++i) {
      Race race(*route_);
      (void)start(race);
      (void)race.on_outcome(0, kGood, now_ + latency);
      step();
    }
  }
  void step() {
    now_ += 10ms;
    if (++steps_ % 10 == 0) route_->tick(now_);
  }
  // Learns with all hosts well.
  void learn() {
    run(1500);
    ASSERT_GE(plan().stages, 1);
    ASSERT_TRUE(route_->baseline().learned());
  }

  struct Started {
    HostIndex host = kNoHost;
    Duration armed = kForever;
  };
  Started start(Race& race, const RequestInfo& request = {}) {
    Started started;
    for (const Action& action : race.start(request, now_)) {
      if (action.kind == Action::Kind::kStart) started.host = action.host;
      if (action.kind == Action::Kind::kArm) started.armed = action.at - now_;
    }
    return started;
  }
  static std::size_t starts(const Actions& actions) {
    std::size_t count = 0;
    for (const Action& action : actions) count += action.kind == Action::Kind::kStart ? 1 : 0;
    return count;
  }
  // The timer fires when it was armed for; 1 when that sends a hedge, which answers in 5 ms.
  // Otherwise the primary answers after 100 ms.
  std::size_t hedges_when_slow(const RequestInfo& request = {}) {
    Race race(*route_);
    const Started started = start(race, request);
    std::size_t hedges = 0;
    if (started.armed < kForever) hedges = starts(race.on_timer(now_ + started.armed));
    if (hedges > 0) (void)race.on_outcome(1, kGood, now_ + started.armed + 5ms);
    (void)race.on_outcome(0, kGood, now_ + 100ms);
    step();
    return hedges;
  }

  [[nodiscard]] Plan plan() const { return route_->plan_board().read(); }
  [[nodiscard]] std::uint64_t denied(Denied why) const {
    return route_->counters().denied[static_cast<std::size_t>(why)];
  }
  [[nodiscard]] const Decision& last() const { return route_->decisions().last(0); }

  TimePoint now_{1s};
  int drawn_ = 0;
  int steps_ = 0;
  std::unique_ptr<Route> route_;
};

}  // namespace tailward::hedge
