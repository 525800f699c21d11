#include "lab/server.h"

#include <gtest/gtest.h>

#include <deque>
#include <optional>
#include <string>

#include "client/client.h"
#include "client/client_testing.h"
#include "io/memory_transport.h"

namespace tailward::lab {
namespace {

using namespace std::chrono_literals;

// A server whose work takes 100 ms, in memory, and a client of it.
class ServerTest : public ::testing::Test {
 protected:
  struct Answer : client::CallLog {
    explicit Answer(client::Client& client) : call(client, *this) {}
    client::Call call;
    TimePoint asked{};
    std::optional<Duration> took;
  };

  ServerTest() : transport_(timers_), server_(model(), transport_, timers_, post()) {
    client_.emplace(transport_, timers_, hedge::RouteConfig{},
                    std::vector<io::HostPort>{*server_.listen(0)});
  }
  static ServerModel model() {
    ServerModel model;
    WorkPart part;
    part.low = part.high = 100ms;
    model.work = {part};
    return model;
  }
  static Server::Post post() {
    return [](UniqueFunction<void()>) { FAIL() << "no locks here"; };
  }

  Answer& get(const std::string& target) {
    Answer& answer = answers_.emplace_back(*client_);
    answer.asked = timers_.now();
    answer.hook = [this, &answer](std::string_view event) {
      if (event == "end") answer.took = timers_.now() - answer.asked;
    };
    http::Request request;
    request.method = "GET";
    request.target = target;
    request.fields.add("Host", "test");
    answer.call.start(std::move(request));
    timers_.advance_to(timers_.now());
    return answer;
  }
  void pass(Duration time) { timers_.advance_to(timers_.now() + time); }

  io::Timers timers_;
  io::MemoryTransport transport_;
  Server server_;
  std::optional<client::Client> client_;
  std::deque<Answer> answers_;
};

TEST_F(ServerTest, WorksForAsLongAsItsModelSays) {
  const Answer& work = get("/work?key=1");
  pass(100ms - 1ns);
  EXPECT_FALSE(work.took);
  EXPECT_EQ(server_.stats().in_flight, 1u);
  pass(1ns);
  EXPECT_EQ(work.took, Duration{100ms});
  EXPECT_EQ(work.body, "ok\n");
  EXPECT_EQ(server_.stats().answered, 1u);
}

TEST_F(ServerTest, ASlowDownStretchesWhatIsLeftOfWorkUnderWay) {
  const Answer& work = get("/work");
  pass(40ms);
  const Answer& fault = get("/lab/fault?slow=3");
  EXPECT_EQ(fault.response.status, 200);
  EXPECT_EQ(fault.took, Duration{0}) << "made when it is answered";
  pass(1s);
  EXPECT_EQ(work.took, Duration{40ms + 3 * 60ms});
}

TEST_F(ServerTest, ASlowDownSlowsNewWorkUntilItIsTakenBack) {
  get("/lab/fault?slow=3");
  const Answer& slow = get("/work");
  pass(300ms - 1ns);
  EXPECT_FALSE(slow.took);
  pass(1ns);
  EXPECT_EQ(slow.took, Duration{300ms});
  const Answer& across = get("/work");
  pass(150ms);  // half of it done
  get("/lab/fault?slow=1");
  const Answer& healthy = get("/work");
  pass(1s);
  EXPECT_EQ(across.took, Duration{150ms + 50ms});
  EXPECT_EQ(healthy.took, Duration{100ms});
}

TEST_F(ServerTest, OneSlowDownReplacesTheOther) {
  const Answer& work = get("/work");
  get("/lab/fault?slow=3");
  get("/lab/fault?slow=10");
  get("/lab/fault?slow=10");
  pass(2s);
  EXPECT_EQ(work.took, Duration{1s});
}

TEST_F(ServerTest, FailingItAnswers503AtOnceToWorkUnderWayToo) {
  const Answer& before = get("/work");
  pass(40ms);
  const Answer& fault = get("/lab/fault?fail=1");
  EXPECT_EQ(fault.response.status, 200);
  EXPECT_EQ(before.response.status, 503);
  EXPECT_EQ(before.took, Duration{40ms});
  const Answer& meanwhile = get("/work");
  EXPECT_EQ(meanwhile.response.status, 503);
  EXPECT_EQ(meanwhile.took, Duration{0});
  EXPECT_EQ(server_.stats().in_flight, 0u);
  get("/lab/fault?fail=0");
  const Answer& after = get("/work");
  pass(100ms);
  EXPECT_EQ(after.response.status, 200);
  EXPECT_EQ(after.took, Duration{100ms});
}

TEST_F(ServerTest, RefusesAFaultThatItDoesNotKnowAndKeepsItsOwn) {
  get("/lab/fault?slow=2");
  for (const char* target : {"/lab/fault?", "/lab/fault?slo=3", "/lab/fault?slow=0",
                             "/lab/fault?slow=1001", "/lab/fault?slow=x", "/lab/fault?fail=2"}) {
    EXPECT_EQ(get(target).response.status, 400) << target;
  }
  EXPECT_EQ(get("/lab/fault").response.status, 404);
  const Answer& work = get("/work");
  pass(1s);
  EXPECT_EQ(work.took, Duration{200ms});
}

TEST_F(ServerTest, WorkWhoseClientIsGoneStops) {
  get("/work");
  answers_.clear();
  pass(10ms);
  EXPECT_EQ(server_.stats().cancelled, 1u);
  EXPECT_EQ(server_.stats().in_flight, 0u);
  get("/lab/fault?slow=3");
  pass(1s);
  EXPECT_EQ(server_.stats().answered, 0u);
}

}  // namespace
}  // namespace tailward::lab
