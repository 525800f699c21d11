// What the tests of the load loops share: a server in memory whose latencies and statuses the test
// chooses, and a hedged client of it, on timers that the test moves.
//
// Thread safety: one thread.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "client/client.h"
#include "io/memory_transport.h"
#include "net/http_server.h"

namespace tailward::load {

// The n-th request of a loop. The server recognises it by its target.
inline http::Request numbered(std::uint64_t n) {
  http::Request request;
  request.method = "GET";
  request.target = fmt::format("/{}", n);
  request.fields.add("Host", "test");
  return request;
}

class LoadTest : public ::testing::Test {
 protected:
  LoadTest()
      : transport_(timers_),
        server_(transport_, timers_, [this](net::CallRef call) { handle(call); }),
        endpoint_(*server_.listen({"127.0.0.1", 0})) {
    use({});
  }

  // Makes the client anew. It knows the server twice, so that a hedge has a second host.
  void use(const hedge::RouteConfig& route) {
    client_.emplace(transport_, timers_, route, std::vector<io::HostPort>{endpoint_, endpoint_});
  }

  io::Timers timers_;
  io::MemoryTransport transport_;
  // Of the n-th request. Both may be replaced at any time.
  std::function<Duration(std::uint64_t n)> latency_ = [](std::uint64_t) {
    return Duration{std::chrono::milliseconds(5)};
  };
  std::function<int(std::uint64_t n)> status_ = [](std::uint64_t) { return 200; };
  std::vector<std::uint64_t> arrived_;  // the numbers, in the order of arrival
  int in_flight_ = 0;
  int in_flight_max_ = 0;
  std::deque<io::Timer> waiting_;
  net::HttpServer server_;
  io::HostPort endpoint_;
  std::optional<client::Client> client_;

 private:
  void handle(const net::CallRef& call) {
    const std::uint64_t number = std::stoull(call->request().target.substr(1));
    arrived_.push_back(number);
    in_flight_max_ = std::max(in_flight_max_, ++in_flight_);
    waiting_.push_back(timers_.after(latency_(number), [this, call, number] {
      --in_flight_;
      call->respond(status_(number), "text/plain", "ok");
    }));
  }
};

}  // namespace tailward::load
