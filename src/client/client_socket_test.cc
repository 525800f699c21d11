// The hedged client over real sockets: what losing a race costs in connections and descriptors.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <vector>

#include "client/client.h"
#include "net/http_server.h"
#include "net/loop.h"
#include "net/socket_transport.h"

namespace tailward::client {
namespace {

using namespace std::chrono_literals;

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator entries("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
}

// Holds every primary for ever, and answers every hedge.
class SilentToPrimaries {
 public:
  void handle(const net::CallRef& call) {
    if (attempt_number(call->request().fields) > 0) {
      ++hedges;
      call->respond(200, "text/plain", "ok");
      return;
    }
    ++primaries;
    call->on_cancel([this, call = net::CallWeak(call)] {
      ++cancelled;
      std::erase_if(held_, [&](const net::CallRef& held) { return held == call.lock(); });
    });
    held_.push_back(call);
  }
  int primaries = 0;
  int hedges = 0;
  int cancelled = 0;

 private:
  std::vector<net::CallRef> held_;
};

class OneCall : public CallHandler {
 public:
  OneCall(Client& client, UniqueFunction<void(bool)> done)
      : call_(client, *this), done_(std::move(done)) {
    http::Request request;
    request.method = "GET";
    request.target = "/";
    request.fields.add("Host", "test");
    call_.start(std::move(request));
  }
  void on_response_head(http::Response&& head) override { good_ = head.status == 200; }
  void on_body(std::span<const char>) override {}
  void on_end() override { done_(good_); }
  void on_error(Error) override { done_(false); }

 private:
  Call call_;
  UniqueFunction<void(bool)> done_;
  bool good_ = false;
};

// Reports 2 and 24: losers release what they held, and the server learns of every one of them.
TEST(ClientSocketTest, TwoHundredLosersLeaveNoConnectionAndNoDescriptorBehind) {
  constexpr int kCalls = 200;
  constexpr int kInFlight = 50;
  net::Loop loop;
  net::SocketTransport transport(loop);
  SilentToPrimaries service;
  net::HttpServer server(transport, loop.timers(),
                         [&service](const net::CallRef& call) { service.handle(call); });
  const io::HostPort endpoint = *server.listen({"127.0.0.1", 0});
  const std::size_t descriptors_before = open_descriptors();
  {
    hedge::RouteConfig route;
    route.policy = {.kind = hedge::Policy::Kind::kFixed, .delay = 5ms};
    route.budget.unlimited = true;
    Client client(transport, loop.timers(), route, {endpoint, endpoint});
    std::vector<std::unique_ptr<OneCall>> calls;
    int answered = 0;
    int begun = 0;
    UniqueFunction<void()> start_one = [&] {
      calls.push_back(std::make_unique<OneCall>(client, [&](bool good) {
        answered += good ? 1 : 0;
        // Counted here: several may end in one turn, before the first of their posts runs.
        if (begun++ < kCalls) loop.post([&] { start_one(); });
      }));
    };
    for (; begun < kInFlight; ++begun) start_one();
    ASSERT_TRUE(
        loop.run_until([&] { return answered == kCalls && service.cancelled == kCalls; }, 20s))
        << answered << " answered, " << service.cancelled << " cancelled";
    EXPECT_EQ(service.primaries, kCalls);
    EXPECT_EQ(service.hedges, kCalls);
    EXPECT_EQ(client.route().counters().superseded, static_cast<std::uint64_t>(kCalls));
    for (hedge::HostIndex host = 0; host < 2; ++host) {
      EXPECT_EQ(client.pool(host).counters().in_use, 0u);
      EXPECT_EQ(client.pool(host).counters().connecting, 0u);
      EXPECT_EQ(client.pool(host).counters().waiting, 0u);
      client.pool(host).close_idle();
      EXPECT_EQ(client.pool(host).counters().idle, 0u);
    }
  }
  ASSERT_TRUE(loop.run_until([&] { return server.counters().connections == 0; }, 20s));
  EXPECT_EQ(server.counters().in_flight, 0u);
  EXPECT_EQ(server.counters().cancelled, static_cast<std::uint64_t>(kCalls));
  EXPECT_EQ(open_descriptors(), descriptors_before);
}

}  // namespace
}  // namespace tailward::client
