#include "lab/closed_loop.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <vector>

#include "io/memory_transport.h"
#include "net/http_server.h"

namespace tailward::lab {
namespace {

using namespace std::chrono_literals;

http::Request numbered(std::uint64_t n) {
  http::Request request;
  request.method = "GET";
  request.target = fmt::format("/{}", n);
  request.fields.add("Host", "test");
  return request;
}

// A server in memory that answers each request after a time of the test's choosing.
class ClosedLoopTest : public ::testing::Test {
 protected:
  ClosedLoopTest()
      : transport_(timers_),
        server_(transport_, timers_, [this](net::CallRef call) { handle(std::move(call)); }) {
    endpoint_ = *server_.listen({"127.0.0.1", 0});
    hedge::RouteConfig route;
    client_.emplace(transport_, timers_, route, std::vector<io::HostPort>{endpoint_});
  }

  void handle(net::CallRef call) {
    targets_.push_back(call->request().target);
    in_flight_max_ = std::max(in_flight_max_, ++in_flight_);
    const std::uint64_t number = std::stoull(targets_.back().substr(1));
    waiting_.push_back(timers_.after(latency_(number), [this, call, number] {
      --in_flight_;
      call->respond(status_(number), "text/plain", "ok");
    }));
  }

  void run(ClosedLoop::Options options) {
    options.request = numbered;
    loop_.emplace(*client_, std::move(options));
    loop_->start([this] { done_ = true; });
    // Bounded: a loop that does not end fails the test instead of hanging it.
    for (int i = 0; i < 100'000 && !done_; ++i) timers_.advance_to(timers_.now() + 1ms);
  }

  io::Timers timers_;
  io::MemoryTransport transport_;
  std::function<Duration(std::uint64_t)> latency_ = [](std::uint64_t) { return Duration{10ms}; };
  std::function<int(std::uint64_t)> status_ = [](std::uint64_t) { return 200; };
  std::vector<std::string> targets_;
  int in_flight_ = 0;
  int in_flight_max_ = 0;
  std::deque<io::Timer> waiting_;
  net::HttpServer server_;
  io::HostPort endpoint_;
  std::optional<client::Client> client_;
  std::optional<ClosedLoop> loop_;
  bool done_ = false;
};

TEST_F(ClosedLoopTest, KeepsSoManyInFlightUntilTheTotalIsReached) {
  run({.total = 100, .in_flight = 7, .request = {}});
  EXPECT_TRUE(done_);
  EXPECT_EQ(targets_.size(), 100u);
  EXPECT_EQ(in_flight_max_, 7);
  EXPECT_EQ(loop_->counts().answered, 100u);
  EXPECT_EQ(loop_->latency().count(), 100u);
  EXPECT_NEAR(to_ms(loop_->latency().quantile(0.5)), 10, 1.2);
}

TEST_F(ClosedLoopTest, NeverStartsMoreThanTheTotal) {
  run({.total = 3, .in_flight = 50, .request = {}});
  EXPECT_TRUE(done_);
  EXPECT_EQ(targets_.size(), 3u);
}

TEST_F(ClosedLoopTest, AFanOutIsDoneWithItsSlowestCall) {
  latency_ = [](std::uint64_t n) { return n % 5 == 4 ? Duration{80ms} : Duration{10ms}; };
  run({.total = 20, .in_flight = 2, .width = 5, .request = {}});
  EXPECT_TRUE(done_);
  EXPECT_EQ(targets_.size(), 100u);
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
  EXPECT_LT(targets_.size(), 40u);
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
}  // namespace tailward::lab
