#include "load/open_loop.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "load/load_testing.h"

namespace tailward::load {
namespace {

using namespace std::chrono_literals;

class OpenLoopTest : public LoadTest {
 protected:
  OpenLoop& begin(OpenLoop::Options options) {
    options.request = numbered;
    options.observe = [this](const Observation& one) { seen_.push_back(one); };
    loop_.emplace(*client_, std::move(options));
    loop_->start();
    return *loop_;
  }
  void run_for(Duration time) {
    const TimePoint until = timers_.now() + time;
    while (timers_.now() < until) timers_.advance_to(std::min(until, timers_.now() + 100us));
  }
  [[nodiscard]] std::vector<Duration> intended() const {
    std::vector<Duration> times;
    for (const Observation& one : seen_) times.push_back(one.intended.time_since_epoch());
    return times;
  }

  std::vector<Observation> seen_;
  std::optional<OpenLoop> loop_;
};

TEST_F(OpenLoopTest, UniformArrivalsComeLikeAMetronome) {
  begin({.per_s = 100, .arrivals = Arrivals::kUniform, .request = {}, .observe = {}});
  run_for(1s + 9ms);
  ASSERT_EQ(arrived_.size(), 100u);
  for (std::size_t i = 0; i < seen_.size(); ++i) {
    EXPECT_EQ(seen_[i].number, i);
    EXPECT_EQ(seen_[i].intended.time_since_epoch(), 1s + 10ms * (i + 1));
    EXPECT_TRUE(seen_[i].ok);
    EXPECT_EQ(seen_[i].attempts, 1);
  }
}

TEST_F(OpenLoopTest, PoissonArrivalsHaveTheRateAndAreNoMetronome) {
  begin({.per_s = 1000, .seed = 7, .request = {}, .observe = {}});
  run_for(4s);
  EXPECT_NEAR(static_cast<double>(arrived_.size()), 4000, 4 * 64);  // four standard deviations
  std::size_t short_gaps = 0;  // below a tenth of the mean: 9.5 % of an exponential's
  const std::vector<Duration> times = intended();
  for (std::size_t i = 1; i < times.size(); ++i) short_gaps += times[i] - times[i - 1] < 100us;
  EXPECT_NEAR(static_cast<double>(short_gaps) / static_cast<double>(times.size()), 0.095, 0.02);
}

TEST_F(OpenLoopTest, TheSameSeedGivesTheSameArrivals) {
  std::vector<std::vector<Duration>> runs;
  for (const std::uint64_t seed : {3, 3, 4}) {
    seen_.clear();
    const Duration began = timers_.now().time_since_epoch();
    begin({.per_s = 500, .seed = seed, .request = {}, .observe = {}});
    run_for(1s);
    loop_.reset();
    runs.push_back(intended());
    for (Duration& time : runs.back()) time -= began;
  }
  EXPECT_EQ(runs[0], runs[1]);
  EXPECT_NE(runs[0], runs[2]);
}

// What a closed loop hides: while the server stands still, requests go on being asked for.
TEST_F(OpenLoopTest, GoesOnAskingAServerThatStandsStillAndCountsTheWait) {
  const TimePoint awake = timers_.now() + 1s;
  latency_ = [this, awake](std::uint64_t) {
    return std::max<Duration>(awake - timers_.now(), Duration{1ms});
  };
  begin({.per_s = 100, .arrivals = Arrivals::kUniform, .request = {}, .observe = {}});
  run_for(1s - 5ms);
  EXPECT_EQ(arrived_.size(), 99u);
  EXPECT_TRUE(seen_.empty());
  run_for(1s);
  ASSERT_GE(seen_.size(), 150u);
  // The n-th waited for what was left of the second when it was meant to begin.
  for (std::size_t i = 0; i < 90; ++i) {
    const Observation& one = seen_[i];
    EXPECT_NEAR(to_ms(one.response_time()), to_ms(awake - one.intended), 0.5) << one.number;
  }
}

TEST_F(OpenLoopTest, ABoundOnThoseInFlightDelaysRequestsAndTheDelayCounts) {
  latency_ = [](std::uint64_t) { return Duration{40ms}; };
  begin({.per_s = 100,
         .arrivals = Arrivals::kUniform,
         .in_flight_max = 2,
         .request = {},
         .observe = {}});
  run_for(1s);
  EXPECT_EQ(in_flight_max_, 2);
  EXPECT_NEAR(static_cast<double>(seen_.size()), 2 * 1000 / 40, 3);
  // One every 20 ms is served, one every 10 ms is asked for.
  const Observation& last = seen_.back();
  EXPECT_EQ(last.number, seen_.size() - 1) << "none is left out";
  EXPECT_NEAR(to_ms(last.response_time()), 500, 50);
  EXPECT_EQ(loop_->counts().delayed, loop_->counts().started - 2);
}

TEST_F(OpenLoopTest, NothingIsDelayedWhereThereIsRoom) {
  begin({.per_s = 1000, .request = {}, .observe = {}});
  run_for(1s);
  EXPECT_EQ(loop_->counts().delayed, 0u);
}

TEST_F(OpenLoopTest, FailuresAreObservedAndStopNothing) {
  status_ = [](std::uint64_t n) { return n % 2 == 0 ? 503 : 200; };
  begin({.per_s = 100, .arrivals = Arrivals::kUniform, .request = {}, .observe = {}});
  run_for(1s + 9ms);
  ASSERT_EQ(seen_.size(), 100u);
  for (const Observation& one : seen_) EXPECT_EQ(one.ok, one.number % 2 == 1);
  EXPECT_EQ(loop_->counts().failed, 50u);
  EXPECT_EQ(loop_->counts().answered, 50u);
}

TEST_F(OpenLoopTest, ARequestNobodyAnswersFailsAtItsDeadline) {
  latency_ = [](std::uint64_t n) { return n == 0 ? Duration{1h} : Duration{1ms}; };
  begin({.per_s = 100,
         .arrivals = Arrivals::kUniform,
         .request = {},
         .deadline = 200ms,
         .observe = {}});
  run_for(300ms);
  const auto failed =
      std::find_if(seen_.begin(), seen_.end(), [](const Observation& one) { return !one.ok; });
  ASSERT_NE(failed, seen_.end());
  EXPECT_EQ(failed->number, 0u);
  EXPECT_NEAR(to_ms(failed->response_time()), 200, 0.2);
}

TEST_F(OpenLoopTest, SaysHowManyAttemptsARequestTook) {
  hedge::RouteConfig route;
  route.policy = {.kind = hedge::Policy::Kind::kFixed, .delay = 10ms};
  use(route);
  latency_ = [this](std::uint64_t n) {
    // The first sending of request 0 hangs.
    return n == 0 && std::count(arrived_.begin(), arrived_.end(), n) == 1 ? Duration{1h}
                                                                          : Duration{2ms};
  };
  begin({.per_s = 10, .arrivals = Arrivals::kUniform, .request = {}, .observe = {}});
  run_for(250ms);
  ASSERT_EQ(seen_.size(), 2u);
  EXPECT_EQ(seen_[0].attempts, 2);
  EXPECT_NEAR(to_ms(seen_[0].response_time()), 12, 0.5);
  EXPECT_EQ(seen_[1].attempts, 1);
}

TEST_F(OpenLoopTest, TheRateCanChangeWhileItRuns) {
  OpenLoop& loop =
      begin({.per_s = 100, .arrivals = Arrivals::kUniform, .request = {}, .observe = {}});
  run_for(1s + 1ms);
  EXPECT_EQ(arrived_.size(), 100u);
  loop.set_rate(10);
  run_for(1s + 1ms);
  EXPECT_EQ(arrived_.size(), 110u);
  loop.set_rate(1000);
  run_for(1s + 500us);
  EXPECT_EQ(arrived_.size(), 1110u);
}

TEST_F(OpenLoopTest, StoppedItBeginsNothingAndLetsTheRestEnd) {
  latency_ = [](std::uint64_t) { return Duration{50ms}; };
  OpenLoop& loop =
      begin({.per_s = 100, .arrivals = Arrivals::kUniform, .request = {}, .observe = {}});
  run_for(105ms);
  EXPECT_EQ(loop.in_flight(), 5u);
  loop.stop();
  run_for(1s);
  EXPECT_EQ(loop.in_flight(), 0u);
  EXPECT_EQ(seen_.size(), 10u);
  EXPECT_EQ(arrived_.size(), 10u);
}

TEST_F(OpenLoopTest, DestroyedItTakesBackWhatIsInFlight) {
  latency_ = [](std::uint64_t) { return Duration{1h}; };
  begin({.per_s = 100, .arrivals = Arrivals::kUniform, .request = {}, .observe = {}});
  run_for(105ms);
  EXPECT_EQ(server_.counters().in_flight, 10u);
  loop_.reset();
  run_for(1s);
  EXPECT_EQ(server_.counters().in_flight, 0u);
  EXPECT_EQ(server_.counters().cancelled, 10u);
  EXPECT_TRUE(seen_.empty());
}

}  // namespace
}  // namespace tailward::load
