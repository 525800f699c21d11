// Client and server together, in memory with faults and over real sockets.
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/rng.h"
#include "net/http_testing.h"
#include "net/loop.h"
#include "net/socket_transport.h"

namespace tailward::net {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Answers with the request's body, piece by piece, holding up the one side while the other is slow.
class Echo : public BodyHandler, public std::enable_shared_from_this<Echo> {
 public:
  explicit Echo(CallRef call) : call_(std::move(call)) {}
  void begin() {
    http::Response head;
    head.body = http::BodyKind::kChunked;
    call_->on_cancel([self = shared_from_this()] { self->call_ = nullptr; });
    call_->stream_body(*this);
    call_->respond_head(head);
  }
  void on_request_body(std::span<const char> piece) override {
    call_->pause_body();
    call_->write(piece, [self = shared_from_this()](Result<void>) {
      if (self->call_ != nullptr) self->call_->resume_body();
    });
  }
  void on_request_end() override {
    const CallRef call = std::move(call_);
    call->finish();
  }

 private:
  CallRef call_;
};

void echo(CallRef call) { std::make_shared<Echo>(std::move(call))->begin(); }

// Sends a body piece by piece, one after another has been taken.
class Upload {
 public:
  Upload(Pool& pool, ExchangeHandler& handler, std::string body, std::size_t piece)
      : exchange(pool, handler), body_(std::move(body)), piece_(piece) {
    http::Request head = get("/echo", "POST");
    head.body = http::BodyKind::kChunked;
    exchange.start_streaming(head);
    next();
  }
  Exchange exchange;

 private:
  void next() {
    if (at_ == body_.size()) return exchange.finish_body();
    const std::string_view piece = std::string_view(body_).substr(at_, piece_);
    at_ += piece.size();
    exchange.write(piece, [this](Result<void>) { next(); });
  }
  std::string body_;
  std::size_t piece_;
  std::size_t at_ = 0;
};

TEST(HttpEndToEndTest, EchoesALargeBodyInBothDirectionsAtOnce) {
  MemoryNet net;
  HttpServer server(net.network, net.timers, echo);
  ASSERT_TRUE(server.listen({"server", 80}));
  Pool pool(net.network, net.timers, {"server", 80});
  std::string body(2'000'000, '\0');
  for (std::size_t i = 0; i < body.size(); ++i) body[i] = static_cast<char>('a' + i % 23);
  ExchangeLog log;
  Upload upload(pool, log, body, 7001);
  net.settle();
  EXPECT_EQ(log.events, (Events{"head:200", "end"}));
  EXPECT_EQ(log.body, body);
  EXPECT_EQ(pool.counters().idle, 1u);
}

TEST(HttpEndToEndTest, CancellingAnExchangeStopsTheWorkAtTheServer) {
  MemoryNet net;
  std::vector<CallRef> calls;
  HttpServer server(net.network, net.timers,
                    [&](CallRef call) { calls.push_back(std::move(call)); });
  ASSERT_TRUE(server.listen({"server", 80}));
  Pool pool(net.network, net.timers, {"server", 80});
  bool stopped = false;
  {
    ExchangeLog log;
    Exchange exchange(pool, log);
    exchange.start(get());
    net.settle();
    ASSERT_EQ(calls.size(), 1u);
    calls[0]->on_cancel([&] { stopped = true; });
  }
  net.settle();
  EXPECT_TRUE(stopped);
  EXPECT_EQ(server.counters().cancelled, 1u);
  EXPECT_EQ(net.network.open_streams(), 0u);
}

// Goal: whatever the network does, every exchange ends once, the bodies that end well are right,
// and nothing is left. Method: random faults on every connection, exchanges that are given up at
// random times.
TEST(HttpEndToEndTest, EveryExchangeEndsOnceWhateverTheNetworkDoes) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  RecordProperty("seed", std::to_string(seed));
  io::Timers timers;
  io::RandomFaults faults(Rng::stream(seed, 1), {.refuse = 0.05,
                                                 .stall = 0.1,
                                                 .reset = 0.2,
                                                 .finish = 0.2,
                                                 .write_error = 0.1,
                                                 .slice = 0.3,
                                                 .within = 3000,
                                                 .delay_max = milliseconds(3)});
  io::MemoryTransport network(timers, &faults);
  Rng rng = Rng::stream(seed, 2);
  {
    HttpServer server(network, timers, echo,
                      {.header_timeout = seconds(1),
                       .body_timeout = seconds(1),
                       .write_timeout = seconds(2),
                       .idle_timeout = seconds(2),
                       .linger = seconds(1)});
    ASSERT_TRUE(server.listen({"server", 80}));
    Pool pool(network, timers, {"server", 80}, {.max_connections = 5, .max_waiting = 10});
    int ended_well = 0;
    for (int round = 0; round < 2000; ++round) {
      ExchangeLog log;
      const std::string body(rng.below(1500), static_cast<char>('a' + rng.below(26)));
      std::optional<Exchange> exchange(std::in_place, pool, log);
      exchange->start(post(body.size()), std::make_shared<const std::string>(body),
                      {.resend = ExchangeOptions::Resend::kAlways});
      timers.advance_to(timers.now() + Duration(static_cast<std::int64_t>(rng.below(40'000'000))));
      exchange.reset();
      std::size_t ends = 0;
      for (const std::string& event : log.events) {
        ends += event == "end" || event.starts_with("error") ? 1u : 0u;
      }
      ASSERT_LE(ends, 1u) << "round " << round;
      // A head that a fault cut off is answered with 400.
      if (log.events == Events{"head:200", "end"}) {
        ASSERT_EQ(log.body, body) << "round " << round;
        ++ended_well;
      }
    }
    EXPECT_GT(ended_well, 500);
    pool.close_idle();
    timers.advance_to(timers.now() + seconds(10));
    const PoolCounters& counters = pool.counters();
    EXPECT_EQ(counters.opened, counters.closed);
    EXPECT_EQ(counters.in_use + counters.idle + counters.connecting + counters.waiting, 0u);
    EXPECT_EQ(server.counters().in_flight, 0u);
  }
  EXPECT_EQ(network.open_streams(), 0u);
}

TEST(HttpEndToEndTest, ServesAndCallsOverRealSockets) {
  Loop loop;
  SocketTransport transport(loop);
  {
    HttpServer server(transport, loop.timers(), echo);
    const Result<io::HostPort> at = server.listen({"", 0});
    ASSERT_TRUE(at) << at.error().message;
    Pool pool(transport, loop.timers(), *at, {.max_connections = 4});
    constexpr int kRequests = 500;
    int running = 0;
    int started = 0;
    int ended = 0;
    const auto body = std::make_shared<const std::string>(5000, 'z');
    std::deque<ExchangeLog> logs(kRequests);
    std::deque<std::optional<Exchange>> exchanges(kRequests);
    const std::function<void()> fill = [&] {
      while (running < 8 && started < kRequests) {
        const auto i = static_cast<std::size_t>(started++);
        ++running;
        logs[i].hook = [&](std::string_view event) {
          if (event != "end" && event != "error") return;
          --running;
          ++ended;
          loop.post([&] { fill(); });
        };
        exchanges[i].emplace(pool, logs[i]);
        exchanges[i]->start(post(body->size()), body);
      }
    };
    fill();
    ASSERT_TRUE(loop.run_until([&] { return ended == kRequests; }, seconds(20)));
    for (const ExchangeLog& log : logs) {
      EXPECT_EQ(log.events, (Events{"head:200", "end"}));
      EXPECT_EQ(log.body, *body);
    }
    EXPECT_LE(pool.counters().opened, 4u);
    exchanges.clear();
    bool empty = false;
    server.drain([&] { empty = true; });
    EXPECT_TRUE(loop.run_until([&] { return empty; }, seconds(5)));
  }
  EXPECT_EQ(transport.counters().open_streams, 0u);
}

TEST(HttpEndToEndTest, AResponseFromAnotherThreadComesBackThroughTheLoop) {
  Loop loop;
  SocketTransport transport(loop);
  std::vector<std::thread> workers;
  {
    std::vector<CallRef> kept;
    HttpServer server(transport, loop.timers(), [&](CallRef call) {
      workers.emplace_back([&loop, weak = CallWeak(call)] {
        loop.post([weak] {
          if (const CallRef back = weak.lock()) back->respond(200, "", "worked out");
        });
      });
      kept.push_back(std::move(call));
    });
    const Result<io::HostPort> at = server.listen({"", 0});
    ASSERT_TRUE(at);
    Pool pool(transport, loop.timers(), *at);
    ExchangeLog log;
    Exchange exchange(pool, log);
    exchange.start(get());
    ASSERT_TRUE(loop.run_until([&] { return exchange.done(); }, seconds(10)));
    EXPECT_EQ(log.body, "worked out");
  }
  for (std::thread& worker : workers) worker.join();
}

}  // namespace
}  // namespace tailward::net
