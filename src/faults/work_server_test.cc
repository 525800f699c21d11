#include "faults/work_server.h"

#include <gtest/gtest.h>

#include <deque>
#include <optional>
#include <string>

#include "client/client.h"
#include "client/client_testing.h"
#include "io/memory_transport.h"

namespace tailward::faults {
namespace {

using namespace std::chrono_literals;

// A server whose work takes 100 ms, in memory, and a client of it.
class WorkServerTest : public ::testing::Test {
 protected:
  struct TimedResponse : client::CallLog {
    explicit TimedResponse(client::Client& client) : call(client, *this) {}
    client::Call call;
    TimePoint sent{};
    std::optional<Duration> took;
  };

  WorkServerTest() : transport_(timers_), server_(model(), transport_, timers_, post()) {
    client_.emplace(transport_, timers_, hedge::RouteConfig{},
                    std::vector<io::HostPort>{*server_.listen(0)});
  }
  static WorkModel model() {
    WorkModel model;
    model.work = sim::Law::constant(100ms);
    return model;
  }
  static WorkServer::Post post() {
    return [](UniqueFunction<void()>) { FAIL() << "no locks here"; };
  }

  TimedResponse& get(const std::string& target) {
    TimedResponse& response = responses_.emplace_back(*client_);
    response.sent = timers_.now();
    response.hook = [this, &response](std::string_view event) {
      if (event == "end") response.took = timers_.now() - response.sent;
    };
    http::Request request;
    request.method = "GET";
    request.target = target;
    request.fields.add("Host", "test");
    response.call.start(std::move(request));
    timers_.advance_to(timers_.now());
    return response;
  }
  void pass(Duration time) { timers_.advance_to(timers_.now() + time); }

  io::Timers timers_;
  io::MemoryTransport transport_;
  WorkServer server_;
  std::optional<client::Client> client_;
  std::deque<TimedResponse> responses_;
};

TEST_F(WorkServerTest, WorksForAsLongAsItsModelSays) {
  const TimedResponse& work = get("/work?key=1");
  pass(100ms - 1ns);
  EXPECT_FALSE(work.took);
  EXPECT_EQ(server_.stats().in_flight, 1u);
  pass(1ns);
  EXPECT_EQ(work.took, Duration{100ms});
  EXPECT_EQ(work.body, "ok\n");
  EXPECT_EQ(server_.stats().answered, 1u);
}

TEST_F(WorkServerTest, ASlowDownStretchesWhatIsLeftOfWorkUnderWay) {
  const TimedResponse& work = get("/work");
  pass(40ms);
  const TimedResponse& fault = get("/lab/fault?slow=3");
  EXPECT_EQ(fault.response.status, 200);
  EXPECT_EQ(fault.took, Duration{0}) << "in effect when it is answered";
  pass(1s);
  EXPECT_EQ(work.took, Duration{40ms + 3 * 60ms});
}

TEST_F(WorkServerTest, ASlowDownSlowsNewWorkUntilItIsUndone) {
  get("/lab/fault?slow=3");
  const TimedResponse& slow = get("/work");
  pass(300ms - 1ns);
  EXPECT_FALSE(slow.took);
  pass(1ns);
  EXPECT_EQ(slow.took, Duration{300ms});
  const TimedResponse& across = get("/work");
  pass(150ms);  // half of it done
  get("/lab/fault?slow=1");
  const TimedResponse& healthy = get("/work");
  pass(1s);
  EXPECT_EQ(across.took, Duration{150ms + 50ms});
  EXPECT_EQ(healthy.took, Duration{100ms});
}

TEST_F(WorkServerTest, OneSlowDownReplacesTheOther) {
  const TimedResponse& work = get("/work");
  get("/lab/fault?slow=3");
  get("/lab/fault?slow=10");
  get("/lab/fault?slow=10");
  pass(2s);
  EXPECT_EQ(work.took, Duration{1s});
}

TEST_F(WorkServerTest, FailingItAnswers503AtOnceToWorkUnderWayToo) {
  const TimedResponse& before = get("/work");
  pass(40ms);
  const TimedResponse& fault = get("/lab/fault?fail=1");
  EXPECT_EQ(fault.response.status, 200);
  EXPECT_EQ(before.response.status, 503);
  EXPECT_EQ(before.took, Duration{40ms});
  const TimedResponse& meanwhile = get("/work");
  EXPECT_EQ(meanwhile.response.status, 503);
  EXPECT_EQ(meanwhile.took, Duration{0});
  EXPECT_EQ(server_.stats().in_flight, 0u);
  get("/lab/fault?fail=0");
  const TimedResponse& after = get("/work");
  pass(100ms);
  EXPECT_EQ(after.response.status, 200);
  EXPECT_EQ(after.took, Duration{100ms});
}

TEST_F(WorkServerTest, RefusesAFaultThatItDoesNotKnowAndKeepsItsOwn) {
  get("/lab/fault?slow=2");
  for (const char* target : {"/lab/fault?", "/lab/fault?slo=3", "/lab/fault?slow=0",
                             "/lab/fault?slow=1001", "/lab/fault?slow=x", "/lab/fault?fail=2"}) {
    EXPECT_EQ(get(target).response.status, 400) << target;
  }
  EXPECT_EQ(get("/lab/fault").response.status, 404);
  const TimedResponse& work = get("/work");
  pass(1s);
  EXPECT_EQ(work.took, Duration{200ms});
}

TEST_F(WorkServerTest, WorkWhoseClientIsGoneStops) {
  get("/work");
  responses_.clear();
  pass(10ms);
  EXPECT_EQ(server_.stats().cancelled, 1u);
  EXPECT_EQ(server_.stats().in_flight, 0u);
  get("/lab/fault?slow=3");
  pass(1s);
  EXPECT_EQ(server_.stats().answered, 0u);
}

ServerStats sample() {
  ServerStats stats;
  stats.requests = 1;
  stats.answered = 2;
  stats.cancelled = 3;
  stats.in_flight = 4;
  stats.holds = 12;
  stats.lock_threads_short = 13;
  stats.hedges = 5;
  stats.lock_wait = 6ns;
  stats.lock_contentions = 7;
  stats.connections = 8;
  stats.connections_ever = 9;
  stats.log_lines = 10;
  stats.log_bytes = 11;
  return stats;
}

TEST(ServerStatsTest, APassThroughJsonKeepsEveryFigure) {
  const ServerStats stats = sample();
  const Result<ServerStats> back = parse_stats(to_json_text(stats));
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(to_json_text(*back), to_json_text(stats));
  EXPECT_EQ(back->lock_wait, 6ns);
  EXPECT_EQ(back->log_bytes, 11u);
  EXPECT_FALSE(parse_stats("{}").has_value());
}

TEST(ServerStatsTest, WhatIsAddedAndTakenAwayAgainLeavesEveryFigure) {
  ServerStats sum = sample();
  sum += sample();
  EXPECT_EQ(sum.requests, 2u);
  EXPECT_EQ(sum.lock_wait, 12ns);
  EXPECT_EQ(sum.holds, 24u);
  sum -= sample();
  // What is so now is not taken away.
  EXPECT_EQ(sum.in_flight, 8u);
  EXPECT_EQ(sum.holds, 24u);
  EXPECT_EQ(sum.connections, 16u);
  sum.in_flight = 4;
  sum.holds = 12;
  sum.connections = 8;
  EXPECT_EQ(to_json_text(sum), to_json_text(sample()));
}

}  // namespace
}  // namespace tailward::faults
