// The public client against real servers on loopback, as a user sees it: calls come from threads
// that have no loop.
#include "tailward/http_client.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "net/http_server.h"
#include "net/loop.h"
#include "net/loop_thread.h"
#include "net/socket_transport.h"

namespace tailward {
namespace {

using namespace std::chrono_literals;

// Hosts of one service, all on one loop with a thread of its own.
class Servers {
 public:
  // Runs on that loop.
  using Handler = void (*)(Servers& servers, const net::CallRef& call);

  Servers(std::size_t count, Handler handler) : transport_(loop_) {
    for (std::size_t host = 0; host < count; ++host) {
      servers_.push_back(std::make_unique<net::HttpServer>(
          transport_, loop_.timers(), [this, host, handler](const net::CallRef& call) {
            seen_.emplace_back(call->request().target, host);
            handler(*this, call);
          }));
      hosts.push_back(io::to_string(servers_.back()->listen({"127.0.0.1", 0}).value()));
    }
    thread_.emplace(loop_);
  }
  ~Servers() { thread_.reset(); }

  void run(UniqueFunction<void()> task) { thread_->run(std::move(task)); }
  // The hosts that requests for `target` arrived at, in the order of their arrival.
  std::vector<std::size_t> seen(const std::string& target) {
    std::vector<std::size_t> found;
    run([&] {
      for (const auto& [what, host] : seen_) {
        if (what == target) found.push_back(host);
      }
    });
    return found;
  }

  std::vector<std::string> hosts;  // for HttpClientOptions
  std::vector<net::CallRef> held;  // calls that wait for an answer; on the loop
  std::promise<void> first_held;   // set by hold()

 private:
  std::vector<std::pair<std::string, std::size_t>> seen_;
  net::Loop loop_;
  net::SocketTransport transport_;
  std::vector<std::unique_ptr<net::HttpServer>> servers_;
  std::optional<net::LoopThread> thread_;
};

void hold(Servers& servers, const net::CallRef& call) {
  servers.held.push_back(call);
  if (servers.held.size() == 1) servers.first_held.set_value();
}

void hold_primaries(Servers& servers, const net::CallRef& call) {
  if (call->request().fields.find("x-tailward-attempt") == "0") return hold(servers, call);
  call->respond(200, "text/plain", "from the hedge");
}

void echo(Servers&, const net::CallRef& call) {
  call->read_body(1 << 20, [call](Result<std::string> body) {
    http::Response head;
    head.fields.add("X-Method", call->request().method);
    call->respond(std::move(head), call->request().target + " " + body.value_or("?"));
  });
}

// The head and a first piece, and then nothing more.
void stall(Servers& servers, const net::CallRef& call) {
  http::Response head;
  head.body = http::BodyKind::kChunked;
  call->respond_head(std::move(head));
  call->write(std::string_view("the beginning"));
  hold(servers, call);
}

HttpClient make(HttpClientOptions options) {
  Result<HttpClient> client = HttpClient::create(std::move(options));
  if (!client) throw std::runtime_error(client.error().message);
  return std::move(*client);
}

// An address at which nobody listens.
std::string dead_address() { return Servers(1, echo).hosts[0]; }

ErrorKind kind_of(const Result<HttpResponse>& response) {
  return response ? ErrorKind::kInternal : response.error().kind;
}

TEST(HttpClientTest, ReturnsStatusFieldsAndBody) {
  Servers servers(1, echo);
  const HttpClient client = make({.hosts = servers.hosts});
  const Result<HttpResponse> response = client.get("/orders?id=7");
  ASSERT_TRUE(response.has_value()) << response.error().message;
  EXPECT_EQ(response->status, 200);
  EXPECT_TRUE(response->ok());
  EXPECT_EQ(response->body, "/orders?id=7 ");
  EXPECT_EQ(response->field("x-method"), "GET");
  EXPECT_EQ(response->field("x-other"), std::nullopt);
  EXPECT_EQ(response->attempt, 0);
  EXPECT_EQ(response->attempts, 1);
}

TEST(HttpClientTest, SendsMethodFieldsAndBody) {
  Servers servers(1, [](Servers&, const net::CallRef& call) {
    call->read_body(1 << 20, [call](Result<std::string> body) {
      const http::Fields& fields = call->request().fields;
      call->respond(404, "text/plain",
                    fmt::format("{} {} {} {}", call->request().method,
                                fields.find("content-length").value_or("no"),
                                fields.find("x-trace").value_or("no"), body.value_or("?")));
    });
  });
  const HttpClient client = make({.hosts = servers.hosts});
  const Result<HttpResponse> response =
      client.send({.method = "PUT", .fields = {{"X-Trace", "abc"}}, .body = "seven"});
  ASSERT_TRUE(response.has_value()) << response.error().message;
  EXPECT_EQ(response->status, 404);
  EXPECT_FALSE(response->ok());
  EXPECT_EQ(response->body, "PUT 5 abc seven");
}

TEST(HttpClientTest, SendsTheHedgeToTheOtherHostAndReturnsItsResponse) {
  Servers servers(2, hold_primaries);
  const HttpClient client = make({.hosts = servers.hosts, .policy = "fixed:1ms"});
  const Result<HttpResponse> response = client.get("/slow");
  ASSERT_TRUE(response.has_value()) << response.error().message;
  EXPECT_EQ(response->body, "from the hedge");
  EXPECT_EQ(response->attempt, 1);
  EXPECT_EQ(response->attempts, 2);
  const std::vector<std::size_t> seen = servers.seen("/slow");
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_NE(seen[0], seen[1]);
  const HttpClientStats stats = client.stats();
  EXPECT_EQ(stats.requests, 1u);
  EXPECT_EQ(stats.attempts, 2u);
  EXPECT_EQ(stats.hedges, 1u);
  EXPECT_EQ(stats.hedge_wins, 1u);
}

// The GET begins after the POST and its hedge arrives, so the POST's delay has passed by then.
TEST(HttpClientTest, HedgesAPostOnlyWhenTheCallerSaysThatItIsIdempotent) {
  Servers servers(2, hold_primaries);
  const HttpClient client = make({.hosts = servers.hosts, .policy = "fixed:1ms"});
  std::promise<Result<HttpResponse>> posted;
  client.send({.method = "POST", .target = "/pay", .body = "1"},
              [&posted](Result<HttpResponse> got) { posted.set_value(std::move(got)); });
  EXPECT_EQ(client.get("/look").value().attempts, 2);
  EXPECT_EQ(servers.seen("/pay").size(), 1u);
  servers.run([&] {
    for (const net::CallRef& call : servers.held) call->respond(200, "text/plain", "paid");
  });
  const Result<HttpResponse> response = posted.get_future().get();
  ASSERT_TRUE(response.has_value()) << response.error().message;
  EXPECT_EQ(response->body, "paid");
  EXPECT_EQ(response->attempts, 1);

  const Result<HttpResponse> idempotent =
      client.send({.method = "POST", .target = "/put", .body = "1", .idempotent = true});
  ASSERT_TRUE(idempotent.has_value()) << idempotent.error().message;
  EXPECT_EQ(idempotent->attempts, 2);
}

TEST(HttpClientTest, ReportsThatNoHostCanBeReachedAndNamesOne) {
  const std::string dead = dead_address();
  const HttpClient client = make({.hosts = {dead}});
  const Result<HttpResponse> response = client.get("/");
  EXPECT_EQ(kind_of(response), ErrorKind::kDisconnected);
  EXPECT_NE(response.error().message.find(dead), std::string::npos) << response.error().message;
  EXPECT_EQ(client.stats().failed, 1u);
}

TEST(HttpClientTest, GivesUpAtTheDeadlineWhenNoResponseBegins) {
  Servers servers(1, hold);
  const HttpClient client = make({.hosts = servers.hosts, .deadline = 5ms});
  EXPECT_EQ(kind_of(client.get("/")), ErrorKind::kTimedOut);
  EXPECT_EQ(client.stats().timed_out, 1u);
}

TEST(HttpClientTest, GivesUpAtTheDeadlineWhenTheBodyStalls) {
  Servers servers(1, stall);
  const HttpClient client = make({.hosts = servers.hosts});
  const Result<HttpResponse> response = client.send({.deadline = 5ms});
  EXPECT_EQ(kind_of(response), ErrorKind::kTimedOut);
}

TEST(HttpClientTest, RefusesABodyThatIsLongerThanAllowed) {
  Servers servers(1, [](Servers&, const net::CallRef& call) {
    if (call->request().target == "/announced") {
      return call->respond(200, "text/plain", std::string(11, 'x'));
    }
    http::Response head;
    head.body = http::BodyKind::kChunked;
    call->respond_head(std::move(head));
    call->write(std::string(call->request().target == "/ten" ? 10 : 11, 'x'));
    call->finish();
  });
  const HttpClient client = make({.hosts = servers.hosts, .response_bytes_max = 10});
  EXPECT_EQ(kind_of(client.get("/announced")), ErrorKind::kInvalid);
  EXPECT_EQ(kind_of(client.get("/eleven")), ErrorKind::kInvalid);
  EXPECT_EQ(client.get("/ten").value().body.size(), 10u);
}

TEST(HttpClientTest, RefusesCallsOnceTooManyWaitForAConnection) {
  constexpr int kCalls = 1 + 4096 + 3;  // one on the connection, all that may wait, and three
  Servers servers(1, hold);
  std::promise<void> three_refused;
  int overloaded = 0;  // both are counted on the client's thread
  int cancelled = 0;
  {
    const HttpClient client = make({.hosts = servers.hosts, .policy = "off", .connections_max = 1});
    for (int i = 0; i < kCalls; ++i) {
      client.send({}, [&](const Result<HttpResponse>& response) {
        cancelled += kind_of(response) == ErrorKind::kCancelled ? 1 : 0;
        overloaded += kind_of(response) == ErrorKind::kOverloaded ? 1 : 0;
        if (kind_of(response) == ErrorKind::kOverloaded && overloaded == 3) {
          three_refused.set_value();
        }
      });
    }
    three_refused.get_future().get();
  }
  EXPECT_EQ(overloaded, 3);
  EXPECT_EQ(cancelled, kCalls - 3);
}

TEST(HttpClientTest, DestroyingItEndsACallInFlightAsCancelled) {
  Servers servers(2, hold);
  std::optional<HttpClient> client = make({.hosts = servers.hosts});
  std::future<Result<HttpResponse>> call =
      std::async(std::launch::async, [&client] { return client->get("/"); });
  servers.first_held.get_future().get();
  client.reset();
  EXPECT_EQ(kind_of(call.get()), ErrorKind::kCancelled);
}

TEST(HttpClientTest, DestroyingItEndsCallsThatCallbacksBeginMeanwhile) {
  Servers servers(1, hold);
  auto client = std::make_unique<HttpClient>(make({.hosts = servers.hosts}));
  std::vector<ErrorKind> kinds;
  client->send({}, [&kinds, running = client.get()](const Result<HttpResponse>& first) {
    kinds.push_back(kind_of(first));
    running->send(
        {}, [&kinds](const Result<HttpResponse>& second) { kinds.push_back(kind_of(second)); });
  });
  servers.first_held.get_future().get();
  client.reset();
  EXPECT_EQ(kinds, std::vector(2, ErrorKind::kCancelled));
}

TEST(HttpClientTest, ServesManyThreadsAtOnceAndMixesNoResponses) {
  constexpr int kThreads = 8;
  constexpr int kCalls = 100;
  Servers servers(2, echo);
  const HttpClient client = make({.hosts = servers.hosts});
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&client, &right, thread] {
      for (int i = 0; i < kCalls; ++i) {
        const std::string target = fmt::format("/{}/{}", thread, i);
        const Result<HttpResponse> response = client.get(target);
        if (response && response->body == target + " ") ++right;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, kThreads * kCalls);
  const HttpClientStats stats = client.stats();
  EXPECT_EQ(stats.requests, static_cast<std::uint64_t>(kThreads * kCalls));
  EXPECT_EQ(stats.attempts, stats.requests + stats.hedges);
  ASSERT_TRUE(stats.p50 && stats.p99);
  EXPECT_GT(*stats.p50, 0ns);
  EXPECT_LE(*stats.p50, *stats.p99);
}

TEST(HttpClientTest, RunsCallbacksOnceAndTakesCallsAndStatsFromThem) {
  Servers servers(2, echo);
  const HttpClient client = make({.hosts = servers.hosts});
  std::promise<std::string> chained;
  client.send({.target = "/first"}, [&](const Result<HttpResponse>&) {
    EXPECT_EQ(client.stats().requests, 1u);
    client.send({.target = "/second"},
                [&](Result<HttpResponse> second) { chained.set_value(second.value().body); });
  });
  EXPECT_EQ(chained.get_future().get(), "/second ");
}

TEST(HttpClientTest, StaysUsableWhenItIsMoved) {
  Servers servers(1, echo);
  HttpClient first = make({.hosts = servers.hosts});
  EXPECT_TRUE(first.get("/").has_value());
  HttpClient second = std::move(first);
  EXPECT_TRUE(second.get("/").has_value());
  EXPECT_EQ(second.stats().requests, 2u);
  first = make({.hosts = servers.hosts});
  EXPECT_EQ(first.stats().requests, 0u);
}

TEST(HttpClientTest, SaysWhatItsFiguresMean) {
  Servers servers(2, echo);
  const HttpClient client = make({.hosts = servers.hosts});
  HttpClientStats stats = client.stats();
  EXPECT_EQ(stats.verdict, "unknown");
  EXPECT_FALSE(stats.sentence.empty());
  EXPECT_EQ(stats.p99, std::nullopt);
}

TEST(HttpClientTest, ABudgetOfNothingSendsNoHedge) {
  Servers servers(2, hold);
  const HttpClient client =
      make({.hosts = servers.hosts, .policy = "fixed:1ms", .budget = 0, .deadline = 20ms});
  EXPECT_EQ(kind_of(client.get("/")), ErrorKind::kTimedOut);
  EXPECT_EQ(servers.seen("/").size(), 1u);
}

TEST(HttpClientTest, RefusesRequestsThatNoServerCouldUnderstandAndSendsNothing) {
  Servers servers(1, echo);
  const HttpClient client = make({.hosts = servers.hosts});
  const std::vector<HttpRequest> malformed = {
      {.method = ""},
      {.method = "GET /x"},
      {.target = ""},
      {.target = "orders"},
      {.target = "*"},
      {.target = "http://10.0.0.1/"},
      {.target = "/a b"},
      {.target = "/a\r\nX: y"},
      {.target = "/a#part"},
      {.fields = {{"Bad Name", "x"}}},
      {.fields = {{"X", "a\r\nY: b"}}},
      {.fields = {{"content-length", "3"}}},
      {.fields = {{"Transfer-Encoding", "chunked"}}},
      {.fields = {{"Connection", "close"}}},
      {.deadline = 0ns},
  };
  for (const HttpRequest& request : malformed) {
    const Result<HttpResponse> response = client.send(request);
    EXPECT_EQ(kind_of(response), ErrorKind::kInvalid) << request.method << ' ' << request.target;
  }
  EXPECT_EQ(kind_of(client.send({.method = "CONNECT"})), ErrorKind::kUnsupported);
  EXPECT_TRUE(client.send({.method = "OPTIONS", .target = "*"}).has_value());
  EXPECT_EQ(client.stats().requests, 1u);
}

TEST(HttpClientTest, RefusesOptionsThatCannotWorkAndNamesThem) {
  const std::vector<std::string> two = {"127.0.0.1:1", "127.0.0.1:2"};
  const std::vector<std::pair<std::string, HttpClientOptions>> wrong = {
      {"hosts", {.hosts = {}}},
      {"hosts", {.hosts = {"127.0.0.1"}}},
      {"hosts", {.hosts = {"http://127.0.0.1:80"}}},
      {"hosts", {.hosts = {"127.0.0.1:0"}}},
      {"hosts", {.hosts = std::vector<std::string>(5000, "127.0.0.1:1")}},
      {"policy", {.hosts = two, .policy = "sometimes"}},
      {"budget", {.hosts = two, .budget = -0.1}},
      {"budget", {.hosts = two, .budget = 1.1}},
      {"budget", {.hosts = two, .budget = std::numeric_limits<double>::quiet_NaN()}},
      {"deadline", {.hosts = two, .deadline = 0ns}},
      {"connections_max", {.hosts = two, .connections_max = 0}},
  };
  for (const auto& [option, options] : wrong) {
    const Result<HttpClient> client = HttpClient::create(options);
    ASSERT_FALSE(client.has_value()) << option;
    EXPECT_EQ(client.error().kind, ErrorKind::kInvalid);
    EXPECT_TRUE(client.error().message.starts_with(option + ": ")) << client.error().message;
    EXPECT_FALSE(client.error().hint.empty()) << client.error().message;
  }
}

}  // namespace
}  // namespace tailward
