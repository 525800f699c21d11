#include "client/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/client_testing.h"

namespace tailward::client {
namespace {

using namespace std::chrono_literals;
using net::Events;
using net::get;

// One request with what came of it.
struct Request {
  explicit Request(Client& client) : call(std::make_unique<Call>(client, log)) {}
  CallLog log;
  std::unique_ptr<Call> call;
};

class ClientTest : public testing::Test, public net::MemoryNet {
 protected:
  static constexpr Duration kDelay = 50ms;

  // Hedges after kDelay, as often as it likes.
  Client& make_client(std::string_view policy = "fixed:50ms", ClientOptions options = {}) {
    hedge::RouteConfig config;
    config.policy = hedge::parse_policy(policy).value();
    config.budget.unlimited = true;
    client_ = std::make_unique<Client>(network, timers, config, service.endpoints, options);
    return *client_;
  }
  Client& client() { return client_ != nullptr ? *client_ : make_client(); }

  std::unique_ptr<Request> send(http::Request head = get(), CallOptions options = {},
                                std::shared_ptr<const std::string> body = nullptr) {
    auto request = std::make_unique<Request>(client());
    request->call->start(std::move(head), std::move(body), options);
    settle();
    return request;
  }

  std::size_t in_use() {
    std::size_t sum = 0;
    for (std::size_t i = 0; i < client().hosts(); ++i) {
      const net::PoolCounters& pool = client().pool(static_cast<hedge::HostIndex>(i)).counters();
      sum += pool.in_use + pool.connecting + pool.waiting;
    }
    return sum;
  }

  Service service{network, timers, 2};
  std::unique_ptr<Client> client_;
};

TEST_F(ClientTest, PassesAnAnswerOn) {
  const auto request = send();
  EXPECT_EQ(request->log.events, (Events{"head:200", "end"}));
  EXPECT_EQ(request->log.body, "ok");
  EXPECT_EQ(service.attempts(), "0");
  EXPECT_EQ(request->call->answered_by(), 0);
  EXPECT_EQ(in_use(), 0U);
}

TEST_F(ClientTest, SendsTheHedgeToTheOtherHostOnlyAfterItsDelay) {
  service.answer = answer_hedges;
  const auto request = send();
  pass(kDelay - 1ns);
  EXPECT_EQ(service.attempts(), "0");
  EXPECT_EQ(request->log.events, Events{});
  pass(1ns);
  EXPECT_EQ(service.attempts(), "0 1");
  EXPECT_NE(service.seen[0].host, service.seen[1].host);
  EXPECT_EQ(request->log.events, (Events{"head:200", "end"}));
  EXPECT_EQ(request->log.body, "from attempt 1");
  EXPECT_EQ(request->call->answered_by(), 1);
}

TEST_F(ClientTest, ClosesTheLosersConnectionAndItsServerHearsOfIt) {
  service.answer = answer_hedges;
  const auto request = send();
  pass(kDelay);
  EXPECT_EQ(service.cancelled, 1U);
  EXPECT_FALSE(service.calls[0]->open());
  EXPECT_EQ(client().route().counters().superseded, 1U);
  EXPECT_EQ(client().route().counters().hedge_wins, 1U);
  EXPECT_EQ(in_use(), 0U);
}

TEST_F(ClientTest, TakesThePrimarysAnswerWhenItComesFirstAfterAll) {
  service.answer = ignore;
  const auto request = send();
  pass(kDelay);
  ASSERT_EQ(service.attempts(), "0 1");
  service.calls[0]->respond(200, "text/plain", "late");
  settle();
  EXPECT_EQ(request->log.body, "late");
  EXPECT_EQ(service.cancelled, 1U);
  EXPECT_FALSE(service.calls[1]->open());
}

TEST_F(ClientTest, SendsTheNextAttemptAtOnceWhenTheFirstAnswerIsBad) {
  service.answer = [](const net::CallRef& call, int attempt) {
    call->respond(attempt == 0 ? 503 : 200, "text/plain", "x");
  };
  const auto request = send();
  EXPECT_EQ(service.attempts(), "0 1");
  EXPECT_EQ(request->log.events, (Events{"head:200", "end"}));
  EXPECT_EQ(client().route().counters().hedges_after_failure, 1U);
}

TEST_F(ClientTest, GivesThePrimarysAnswerWholeWhenAllAreBad) {
  const std::string long_text = pattern(300'000);
  service.answer = [&](const net::CallRef& call, int attempt) {
    call->respond(attempt == 0 ? 503 : 500, "text/plain", attempt == 0 ? long_text : "hedge");
  };
  const auto request = send();
  EXPECT_EQ(service.attempts(), "0 1");
  EXPECT_EQ(request->log.events, (Events{"head:503", "end"}));
  EXPECT_EQ(request->log.body, long_text);
  EXPECT_EQ(request->call->answered_by(), 0);
  EXPECT_EQ(in_use(), 0U);
}

TEST_F(ClientTest, PrefersABadAnswerOverNone) {
  service.answer = [](const net::CallRef& call, int) { call->respond(500, "text/plain", "sorry"); };
  service.servers[0]->drain([] {});  // one host refuses connections
  settle();
  const auto request = send();
  EXPECT_EQ(request->log.body, "sorry");
}

TEST_F(ClientTest, HedgesAServerThatSendsItsHeadAndThenStalls) {
  service.answer = [](const net::CallRef& call, int attempt) {
    http::Response head;
    head.body = http::BodyKind::kLength;
    head.content_length = 5;
    head.fields.add("x-from", std::to_string(attempt));
    call->respond_head(std::move(head));
    if (attempt == 0) return;
    call->write(std::string_view("hello"));
    call->finish();
  };
  const auto request = send();
  pass(kDelay - 1ns);
  EXPECT_EQ(request->log.events, Events{});
  pass(1ns);
  EXPECT_EQ(request->log.events, (Events{"head:200", "end"}));
  EXPECT_EQ(request->log.response.fields.find("x-from"), "1");
  EXPECT_EQ(request->log.body, "hello");
  EXPECT_EQ(service.cancelled, 1U);
}

TEST_F(ClientTest, PassesTheHeadOnAtOnceWhereNothingCanBeHedged) {
  service.answer = [](const net::CallRef& call, int) {
    http::Response head;
    head.body = http::BodyKind::kChunked;
    call->respond_head(std::move(head));
  };
  make_client("off");
  EXPECT_EQ(send()->log.events, (Events{"head:200"}));
}

TEST_F(ClientTest, ReadsTheWinnersBodyToItsEndAfterTheLosersAreCancelled) {
  const std::string text = pattern(512 * 1024);
  const std::size_t half = text.size() / 2;
  service.answer = [&](const net::CallRef& call, int attempt) {
    if (attempt == 0) return;
    http::Response head;
    head.body = http::BodyKind::kChunked;
    call->respond_head(std::move(head));
    call->write(std::span(text).first(half));
  };
  const auto request = send();
  pass(kDelay);
  EXPECT_EQ(service.cancelled, 1U);
  EXPECT_EQ(request->log.body.size(), half);
  pass(10s);  // long after the loser is gone
  service.calls[1]->write(std::span(text).subspan(half));
  service.calls[1]->finish();
  settle();
  EXPECT_EQ(request->log.events, (Events{"head:200", "end"}));
  EXPECT_EQ(request->log.body, text);
}

TEST_F(ClientTest, WaitsAsLongAsRetryAfterSays) {
  service.answer = [](const net::CallRef& call, int attempt) {
    http::Response head;
    head.status = attempt == 0 ? 503 : 200;
    head.fields.add("retry-after", "1");
    call->respond(std::move(head), "x");
  };
  const auto request = send();
  pass(1s - 1ns);
  EXPECT_EQ(service.attempts(), "0");
  EXPECT_EQ(request->log.events, Events{});
  pass(1ns);
  EXPECT_EQ(service.attempts(), "0 1");
  EXPECT_EQ(request->log.events, (Events{"head:200", "end"}));
}

TEST_F(ClientTest, DoesNotHedgeWhenRetryAfterIsTooLongOrADate) {
  for (const char* const value : {"120", "Fri, 31 Dec 1999 23:59:59 GMT", "-1"}) {
    service.forget();
    service.answer = [value](const net::CallRef& call, int) {
      http::Response head;
      head.status = 503;
      head.fields.add("retry-after", value);
      call->respond(std::move(head), "busy");
    };
    const auto request = send();
    EXPECT_EQ(request->log.events, (Events{"head:503", "end"})) << value;
    EXPECT_EQ(service.attempts(), "0") << value;
  }
}

TEST_F(ClientTest, NeverHedgesAfterTooManyRequests) {
  service.answer = [](const net::CallRef& call, int) { call->respond(429, "text/plain", "x"); };
  const auto request = send();
  EXPECT_EQ(request->log.events, (Events{"head:429", "end"}));
  pass(10s);
  EXPECT_EQ(service.attempts(), "0");
}

TEST_F(ClientTest, TellsADeadlineAndCancelsEveryAttempt) {
  service.answer = ignore;
  const auto request = send(get(), {.deadline = timers.now() + 200ms});
  pass(200ms - 1ns);
  EXPECT_EQ(request->log.events, Events{});
  EXPECT_EQ(service.attempts(), "0 1");
  pass(1ns);
  EXPECT_EQ(request->log.events, (Events{"error:timed_out"}));
  EXPECT_EQ(service.cancelled, 2U);
  EXPECT_EQ(in_use(), 0U);
}

TEST_F(ClientTest, CancelsEveryAttemptWhenTheCallerGoes) {
  service.answer = ignore;
  const auto request = send();
  pass(kDelay);
  ASSERT_EQ(service.attempts(), "0 1");
  request->call.reset();
  settle();
  EXPECT_EQ(service.cancelled, 2U);
  EXPECT_EQ(client().route().counters().caller_gone, 1U);
  EXPECT_EQ(client().route().counters().cancelled, 2U);
  EXPECT_EQ(in_use(), 0U);
}

TEST_F(ClientTest, SendsNothingMoreWhenTheCallerGoesJustBeforeTheDelay) {
  service.answer = ignore;
  const auto request = send();
  pass(kDelay - 1ns);
  request->call.reset();
  pass(1ns);
  EXPECT_EQ(service.attempts(), "0");
}

TEST_F(ClientTest, EveryEventMayDestroyTheCall) {
  service.answer = [](const net::CallRef& call, int) {
    call->respond(200, "text/plain", pattern(100'000));
  };
  for (const char* const event : {"head", "body", "end"}) {
    Request request(client());
    request.log.hook = [&](std::string_view at) {
      if (at == event) request.call.reset();
    };
    request.call->start(get());
    settle();
    EXPECT_EQ(request.call, nullptr) << event;
    EXPECT_EQ(in_use(), 0U) << event;
  }
  service.servers.clear();
  Request request(client());
  request.log.hook = [&](std::string_view) { request.call.reset(); };
  request.call->start(get());
  settle();
  EXPECT_EQ(request.log.events, (Events{"error:disconnected"}));
}

TEST_F(ClientTest, NamesTheHostThatCouldNotBeReached) {
  service.servers.clear();
  make_client("off");
  const auto request = send();
  EXPECT_EQ(request->log.events, (Events{"error:disconnected"}));
  EXPECT_THAT(request->log.error.message, testing::HasSubstr("10.0.0."));
}

TEST_F(ClientTest, SaysThatAConnectTimeoutIsNotTheCallersDeadline) {
  faults.faults.unanswered = true;
  make_client("off");
  const auto request = send();
  pass(2s);
  EXPECT_EQ(request->log.events, (Events{"error:disconnected"}));
}

TEST_F(ClientTest, NumbersAttemptsOnTopOfTheOneItGotAndDoesNotHedgeAHedge) {
  service.answer = ignore;
  http::Request head = get();
  head.fields.add("X-Tailward-Attempt", "2");
  const auto request = send(std::move(head));
  pass(10s);
  EXPECT_EQ(service.attempts(), "2");
  EXPECT_EQ(service.seen[0].head.fields.count(kAttemptField), 1U);
  EXPECT_EQ(client().route().counters().denied[static_cast<std::size_t>(hedge::Denied::kNested)],
            1U);
}

TEST_F(ClientTest, TakesNonsenseForAttemptZero) {
  http::Request head = get();
  head.fields.add("x-tailward-attempt", "-7x");
  const auto request = send(std::move(head));
  EXPECT_EQ(service.seen[0].head.fields.find(kAttemptField), "0");
}

TEST_F(ClientTest, HedgesAPostOnlyWithAnIdempotencyKey) {
  service.answer = ignore;
  const auto body = std::make_shared<const std::string>("payload");
  const auto plain = send(net::post(7), {}, body);
  pass(10s);
  EXPECT_EQ(service.attempts(), "0");
  service.forget();
  http::Request head = net::post(7);
  head.fields.add("idempotency-key", "k");
  const auto keyed = send(std::move(head), {}, body);
  pass(kDelay);
  EXPECT_EQ(service.attempts(), "0 1");
  std::string bodies;
  for (const net::CallRef& call : service.calls) {
    call->read_body(100, [&](const Result<std::string>& got) { bodies += got.value() + "|"; });
  }
  settle();
  EXPECT_EQ(bodies, "payload|payload|");
}

TEST_F(ClientTest, NeedsASecondHostForAHedge) {
  service.answer = ignore;
  service.endpoints.pop_back();
  const auto request = send();
  pass(10s);
  EXPECT_EQ(service.attempts(), "0");
}

TEST_F(ClientTest, GoesOnWithThePrimaryWhenTheOtherPoolHasNoConnectionForAHedge) {
  service.answer = ignore;
  ClientOptions options;
  options.pool.max_connections = 1;
  make_client("fixed:50ms", options);
  const auto request = send();
  pass(10s);
  EXPECT_EQ(service.attempts(), "0");
  EXPECT_EQ(request->log.events, Events{});
  service.calls[0]->respond(200, "text/plain", "patience");
  settle();
  EXPECT_EQ(request->log.body, "patience");
}

TEST_F(ClientTest, SaysThatALimitOfItsOwnKeptTheRequestFromBeingSent) {
  service.answer = ignore;
  ClientOptions options;
  options.pool.max_connections = 1;
  options.pool.max_waiting = 0;
  make_client("off", options);
  const auto first = send();
  const auto second = send();  // goes to the other, less busy host
  const auto third = send();
  EXPECT_EQ(third->log.events, (Events{"error:overloaded"}));
  EXPECT_EQ(client().route().counters().failed, 0U);
}

TEST_F(ClientTest, AddsAHostFieldWhereThereIsNone) {
  http::Request head = get();
  head.fields.remove("host");
  const auto request = send(std::move(head));
  const Service::Seen& seen = service.seen.at(0);
  EXPECT_EQ(seen.head.fields.find("host"), io::to_string(service.endpoints[seen.host]));
}

TEST_F(ClientTest, ReadsLongAnswersOfAnySize) {
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, std::size_t{65'536}, std::size_t{8'000'000}}) {
    const std::string text = pattern(size);
    service.answer = [&](const net::CallRef& call, int) { call->respond(200, "", text); };
    const auto request = send();
    EXPECT_EQ(request->log.events, (Events{"head:200", "end"}));
    EXPECT_EQ(request->log.body, text);
  }
}

TEST_F(ClientTest, HoldsUpTheServerWhilePaused) {
  const std::string text = pattern(4'000'000);
  service.answer = [&](const net::CallRef& call, int) { call->respond(200, "", text); };
  Request request(client());
  request.log.hook = [&](std::string_view at) {
    if (at == "head") request.call->pause();
  };
  request.call->start(get());
  settle();
  pass(1s);
  EXPECT_LE(request.log.body.size(), 16U * 1024);  // one read buffer
  request.call->resume();
  settle();
  EXPECT_EQ(request.log.body, text);
  EXPECT_EQ(request.log.events, (Events{"head:200", "end"}));
}

// Echoes a request's body, piece by piece.
class Echo : public net::BodyHandler {
 public:
  explicit Echo(net::ServerCall& call) : call_(call) {
    http::Response head;
    head.body = http::BodyKind::kChunked;
    call_.respond_head(std::move(head));
    call_.stream_body(*this);
  }
  void on_request_body(std::span<const char> piece) override { call_.write(piece); }
  void on_request_end() override { call_.finish(); }

 private:
  net::ServerCall& call_;
};

TEST_F(ClientTest, StreamsABodyOfAnyLengthWithoutHedgingIt) {
  std::unique_ptr<Echo> echo;
  service.answer = [&](const net::CallRef& call, int) { echo = std::make_unique<Echo>(*call); };
  const std::string text = pattern(2'000'000);
  http::Request head = net::post(0);
  head.method = "PUT";
  head.body = http::BodyKind::kChunked;
  Request request(client());
  request.call->start_streaming(std::move(head));
  constexpr std::size_t kPiece = 50'000;
  for (std::size_t at = 0; at < text.size(); at += kPiece) {
    bool taken = false;
    request.call->write(std::span(text).subspan(at, kPiece),
                        [&taken](const Result<void>& done) { taken = done.has_value(); });
    EXPECT_GE(request.call->buffered(), kPiece);
    pass(10ms);
    EXPECT_TRUE(taken);
    EXPECT_EQ(request.call->buffered(), 0U);
  }
  request.call->finish_body();
  settle();
  EXPECT_EQ(request.log.events, (Events{"head:200", "end"}));
  EXPECT_EQ(request.log.body, text);
  EXPECT_EQ(service.attempts(), "0");
}

TEST_F(ClientTest, IgnoresTheRestOfABodyAfterTheAnswerIsComplete) {
  service.answer = [](const net::CallRef& call, int) { call->respond(413, "", "no"); };
  http::Request head = net::post(1'000'000);
  Request request(client());
  request.call->start_streaming(std::move(head));
  request.call->write(pattern(1'000));
  settle();
  EXPECT_EQ(request.log.events, (Events{"head:413", "end"}));
  request.call->write(pattern(999'000));
  request.call->finish_body();
  settle();
  EXPECT_EQ(in_use(), 0U);
}

// A server that answers the first request of each connection and closes at the second.
class ForgetfulServer {
 public:
  ForgetfulServer(io::MemoryTransport& network, const io::HostPort& at) {
    listener_ = network
                    .listen(at,
                            [this](std::unique_ptr<io::Stream> stream) {
                              peers_.push_back(std::make_unique<net::RawPeer>(std::move(stream)));
                              served_.push_back(0);
                            })
                    .value();
  }
  // Looks at what has arrived.
  void serve() {
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      net::RawPeer& peer = *peers_[i];
      if (peer.stream == nullptr || !peer.received.ends_with("\r\n\r\n")) continue;
      ++requests;
      peer.received.clear();
      if (served_[i]++ == 0) {
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
      } else {
        peer.close();
      }
    }
  }
  int requests = 0;

 private:
  std::unique_ptr<io::Listener> listener_;
  std::vector<std::unique_ptr<net::RawPeer>> peers_;
  std::vector<int> served_;
};

class StaleConnectionTest : public ClientTest {
 protected:
  std::unique_ptr<Request> exchange(std::string method) {
    auto request = send(get("/", std::move(method)));
    for (int i = 0; i < 3; ++i) {
      server_.serve();
      settle();
    }
    return request;
  }

  StaleConnectionTest() { service.endpoints = {{"10.0.0.9", 80}}; }
  ForgetfulServer server_{network, {"10.0.0.9", 80}};
};

TEST_F(StaleConnectionTest, SendsAGetOnceMoreOnAFreshConnection) {
  EXPECT_EQ(exchange("GET")->log.body, "ok");
  const auto second = exchange("GET");
  EXPECT_EQ(second->log.events, (Events{"head:200", "end"}));
  EXPECT_EQ(client().pool(0).counters().stale_retries, 1U);
  EXPECT_EQ(second->call->attempts(), 1);
  EXPECT_EQ(server_.requests, 3);
}

TEST_F(StaleConnectionTest, NeverSendsAPostOnceMore) {
  EXPECT_EQ(exchange("POST")->log.body, "ok");
  const auto second = exchange("POST");
  EXPECT_EQ(second->log.events, (Events{"error:disconnected"}));
  EXPECT_EQ(client().pool(0).counters().stale_retries, 0U);
  EXPECT_EQ(server_.requests, 2);
}

// The losers must not leak: not a connection here, not a stream there, not a call at the server.
TEST_F(ClientTest, TwoHundredHedgedCallsLeaveNothingBehind) {
  constexpr std::size_t kCalls = 200;
  constexpr std::size_t kInFlight = 50;
  service.answer = answer_hedges;
  std::vector<std::unique_ptr<Request>> slots(kInFlight);
  std::size_t started = 0;
  std::size_t ended = 0;
  const std::function<void(std::size_t)> go = [&](std::size_t slot) {
    if (started == kCalls) return;
    ++started;
    slots[slot] = std::make_unique<Request>(client());
    slots[slot]->log.hook = [&, slot](std::string_view at) {
      if (at == "head" || at == "body") return;
      EXPECT_EQ(at, "end");
      EXPECT_EQ(slots[slot]->log.body, "from attempt 1");
      ++ended;
      const std::unique_ptr<Request> old = std::move(slots[slot]);
      go(slot);
    };
    slots[slot]->call->start(get());
  };
  for (std::size_t i = 0; i < kInFlight; ++i) go(i);
  for (int i = 0; i < 20 && ended < kCalls; ++i) pass(kDelay);
  EXPECT_EQ(ended, kCalls);
  settle();

  EXPECT_EQ(service.cancelled, kCalls);
  EXPECT_EQ(in_use(), 0U);
  const hedge::Counters& counters = client().route().counters();
  EXPECT_EQ(counters.attempts, 2 * kCalls);
  EXPECT_EQ(counters.superseded, kCalls);
  EXPECT_EQ(counters.hedge_wins, kCalls);
  for (const auto& server : service.servers) {
    EXPECT_EQ(server->counters().in_flight, 0U);
  }
  for (std::size_t i = 0; i < client().hosts(); ++i) {
    const auto host = static_cast<hedge::HostIndex>(i);
    EXPECT_EQ(client().route().hosts().at(host).in_flight, 0U);
    client().pool(host).close_idle();
  }
  settle();
  EXPECT_EQ(network.open_streams(), 0U);
}

TEST_F(ClientTest, ReachesAConsistentEndUnderRandomFaults) {
  constexpr std::uint64_t kSeed = 20'240'817;
  RecordProperty("seed", std::to_string(kSeed));
  SCOPED_TRACE(kSeed);
  io::RandomFaults random(Rng(kSeed), {.refuse = 0.1,
                                       .stall = 0.1,
                                       .reset = 0.1,
                                       .finish = 0.1,
                                       .write_error = 0.1,
                                       .slice = 0.3,
                                       .within = 400,
                                       .delay_max = 40ms});
  io::MemoryTransport rough(timers, &random);
  net::HttpServer one(rough, timers,
                      [](const net::CallRef& call) { call->respond(200, "", "ok"); });
  const io::HostPort at = one.listen({"10.0.0.1", 80}).value();
  hedge::RouteConfig config;
  config.policy = hedge::parse_policy("fixed:50ms").value();
  Client rough_client(rough, timers, config, {at, at});
  std::size_t answered = 0;
  for (int i = 0; i < 500; ++i) {
    Request request(rough_client);
    request.call->start(get(), nullptr, {.deadline = timers.now() + 1s});
    pass(1s);
    ASSERT_FALSE(request.log.events.empty()) << i;
    const std::string& last = request.log.events.back();
    if (last == "end") {
      ++answered;
      EXPECT_EQ(request.log.body, "ok");
    } else {
      EXPECT_TRUE(last.starts_with("error:")) << last;
    }
  }
  EXPECT_GT(answered, 250U);
  const hedge::Counters& counters = rough_client.route().counters();
  EXPECT_EQ(counters.attempts, counters.requests + counters.hedges);
  EXPECT_EQ(counters.attempts,
            counters.succeeded + counters.failed + counters.superseded + counters.cancelled);
}

}  // namespace
}  // namespace tailward::client
