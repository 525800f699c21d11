#include "load/closed_loop.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>

#include "load/load_testing.h"

namespace tailward::load {
namespace {

using namespace std::chrono_literals;

class ClosedLoopTest : public LoadTest {
 protected:
  ClosedLoopTest() {
    latency_ = [](std::uint64_t) { return Duration{10ms}; };
  }

  void run(ClosedLoop::Options options) {
    options.request = numbered;
    loop_.emplace(*client_, std::move(options));
    loop_->start([this] { done_ = true; });
    // Bounded: a loop that does not end fails the test instead of hanging it.
    for (int i = 0; i < 100'000 && !done_; ++i) timers_.advance_to(timers_.now() + 1ms);
  }

  std::optional<ClosedLoop> loop_;
  bool done_ = false;
};

TEST_F(ClosedLoopTest, KeepsTheNumberInFlightUntilTheTotalIsReached) {
  run({.total = 100, .in_flight = 7, .request = {}});
  EXPECT_TRUE(done_);
  EXPECT_EQ(arrived_.size(), 100u);
  EXPECT_EQ(in_flight_max_, 7);
  EXPECT_EQ(loop_->counts().answered, 100u);
  EXPECT_EQ(loop_->latency().count(), 100u);
  EXPECT_NEAR(to_ms(loop_->latency().quantile(0.5)), 10, 1.2);
}

TEST_F(ClosedLoopTest, NeverStartsMoreThanTheTotal) {
  run({.total = 3, .in_flight = 50, .request = {}});
  EXPECT_TRUE(done_);
  EXPECT_EQ(arrived_.size(), 3u);
}

TEST_F(ClosedLoopTest, AFanOutIsDoneWithItsSlowestCall) {
  latency_ = [](std::uint64_t n) { return n % 5 == 4 ? Duration{80ms} : Duration{10ms}; };
  run({.total = 20, .in_flight = 2, .width = 5, .request = {}});
  EXPECT_TRUE(done_);
  EXPECT_EQ(arrived_.size(), 100u);
  EXPECT_EQ(loop_->latency().count(), 20u);
  EXPECT_EQ(loop_->call_latency().count(), 100u);
  EXPECT_NEAR(to_ms(loop_->latency().min()), 80, 1.2);
  EXPECT_NEAR(to_ms(loop_->call_latency().quantile(0.5)), 10, 1.2);
}

TEST_F(ClosedLoopTest, FailuresAreCountedAndEnterNoPercentile) {
  status_ = [](std::uint64_t n) { return n % 4 == 0 ? 500 : 200; };
  run({.total = 40, .in_flight = 4, .request = {}});
  EXPECT_TRUE(done_);
  EXPECT_EQ(loop_->counts().answered, 30u);
  EXPECT_EQ(loop_->counts().failed, 10u);
  EXPECT_EQ(loop_->latency().count(), 30u);
  EXPECT_FALSE(loop_->gave_up());
}

TEST_F(ClosedLoopTest, GivesUpOnAServerThatOnlyFails) {
  status_ = [](std::uint64_t) { return 503; };
  run({.total = 10'000, .in_flight = 4, .request = {}, .failures_in_a_row_max = 25});
  EXPECT_TRUE(done_);
  EXPECT_TRUE(loop_->gave_up());
  EXPECT_LT(arrived_.size(), 40u);
  EXPECT_NE(loop_->last_error().message.find("503"), std::string::npos);
}

TEST_F(ClosedLoopTest, ARequestNobodyAnswersEndsAtItsDeadline) {
  latency_ = [](std::uint64_t n) { return n == 0 ? Duration{1h} : Duration{10ms}; };
  run({.total = 4, .in_flight = 2, .request = {}, .deadline = 1s});
  EXPECT_TRUE(done_);
  EXPECT_EQ(loop_->counts().failed, 1u);
  EXPECT_EQ(loop_->counts().answered, 3u);
}

TEST_F(ClosedLoopTest, StoppingTakesBackWhatIsInFlight) {
  latency_ = [](std::uint64_t) { return Duration{1h}; };
  ClosedLoop::Options options{.total = 10, .in_flight = 5, .request = numbered};
  ClosedLoop loop(*client_, options);
  loop.start([] { FAIL() << "stopped loops do not finish"; });
  timers_.advance_to(timers_.now() + 1s);
  EXPECT_EQ(server_.counters().in_flight, 5u);
  loop.stop();
  timers_.advance_to(timers_.now() + 1s);
  EXPECT_EQ(server_.counters().in_flight, 0u);
  EXPECT_EQ(server_.counters().cancelled, 5u);
}

}  // namespace
}  // namespace tailward::load
