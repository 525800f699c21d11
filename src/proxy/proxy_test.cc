#include "proxy/proxy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "http/testing.h"
#include "proxy/proxy_testing.h"

namespace tailward::proxy {
namespace {

using namespace std::chrono_literals;
using client::answer_hedges;
using client::ignore;
using client::pattern;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

class ProxyTest : public ProxyFixture {};

// What a reader of an answer can tell, but for how its end was marked.
std::string meaning(std::string_view bytes, std::string_view method) {
  auto outcome = http::testing::run_responses(bytes, {}, std::span(&method, 1), /*eof=*/true);
  if (outcome.heads.size() != 1 || outcome.events.back() != "end")
    return "no answer: " + outcome.end;
  http::Response head = outcome.heads[0];
  http::remove_hop_by_hop(head.fields);
  head.fields.remove("content-length");
  head.minor_version = 1;
  head.keep_alive = true;
  const bool framed = head.announced == http::BodyKind::kUntilClose;
  if (head.body == http::BodyKind::kUntilClose) head.body = http::BodyKind::kChunked;
  std::string text = http::testing::describe(head) + (framed ? " unframed" : "");
  for (std::size_t i = 1; i < outcome.events.size(); ++i) text += "\n" + outcome.events[i];
  return text;
}

struct Canned {
  const char* name;
  const char* method;
  std::string answer;
  bool closes = false;
};

std::vector<Canned> corpus() {
  const std::string mib = pattern(1 << 20);
  const std::string sized = "Content-Length: " + std::to_string(mib.size()) + "\r\n\r\n";
  return {
      {"a length", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX: y\r\n\r\nhello"},
      {"no bytes", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"},
      {"chunks", "GET",
       "HTTP/1.1 200 OK\r\nTransfer-Encoding: "
       "chunked\r\n\r\n3\r\nabc\r\n5;x=1\r\ndefgh\r\n0\r\n\r\n"},
      {"no chunk", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
      {"a HEAD with a length", "HEAD",
       "HTTP/1.1 200 OK\r\nContent-Length: 1234\r\nETag: \"a\"\r\n\r\n"},
      {"a HEAD of chunks", "HEAD", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"},
      {"a HEAD without a length", "HEAD", "HTTP/1.1 200 OK\r\nServer: s\r\n\r\n"},
      {"no content", "GET", "HTTP/1.1 204 No Content\r\nX-Left: 3\r\n\r\n"},
      {"not modified", "GET", "HTTP/1.1 304 Not Modified\r\nETag: W/\"1\"\r\n\r\n"},
      {"not modified, with a length", "GET",
       "HTTP/1.1 304 Not Modified\r\nContent-Length: 77\r\n\r\n"},
      {"a megabyte", "GET", "HTTP/1.1 200 OK\r\n" + sized + mib},
      {"a megabyte until the end", "GET", "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + mib,
       true},
      {"HTTP/1.0", "GET", "HTTP/1.0 200 OK\r\nX: y\r\n\r\nold", true},
      {"fields of all kinds", "GET",
       "HTTP/1.1 200 Fine by me\r\nDate: Tue, 15 Nov 1994 08:12:31 GMT\r\nServer: "
       "s/1\r\nSet-Cookie: "
       "a=1\r\nSet-Cookie: b=2\r\nETag: \"x\"\r\nVary: *\r\nX-Empty:\r\nx-lower: UP\r\n"
       "Cache-Control: no-store\r\nConnection: X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\n"
       "Content-Length: 2\r\n\r\nok"},
      {"not found", "GET", "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno"},
      {"an error", "GET", "HTTP/1.1 500 Oops\r\nContent-Length: 4\r\nX: y\r\n\r\nfail"},
      {"interim answers", "GET",
       "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: "
       "2\r\n\r\nok"},
      {"an unknown status", "GET", "HTTP/1.1 299 Odd\r\nContent-Length: 1\r\n\r\n!"},
  };
}

TEST_F(ProxyTest, PassesEveryAnswerOnAsItIs) {
  for (const char* const policy : {"off", "fixed:50ms"}) {
    const io::HostPort at{"10.0.0.9", 80};
    CannedHost host(network, at);
    Options options;
    options.policy = hedge::parse_policy(policy).value();
    options.to = {at, at};
    start(options);
    for (const Canned& one : corpus()) {
      // A failure would be hedged, and find the same answer again.
      const auto peer = client();
      peer->send(std::string(one.method) + " / HTTP/1.1\r\nHost: shop\r\n\r\n");
      for (int turn = 0; turn < 3; ++turn) {
        settle();
        host.answer(one.answer, one.closes);
      }
      settle();
      std::string expected = meaning(one.answer, one.method);
      EXPECT_EQ(meaning(peer->received, one.method), expected) << one.name << ", policy " << policy;
    }
    proxy.reset();
  }
}

TEST_F(ProxyTest, KeepsAnAnswersFramingAndAddsNothing) {
  CannedHost host(network, {"10.0.0.9", 80});
  Options options = unhedged();
  options.to = {{"10.0.0.9", 80}};
  start(options);
  const auto answer = [&](const std::string& bytes, const std::string& request) {
    const auto peer = client();
    peer->send(request);
    settle();
    host.answer(bytes);
    settle();
    return peer->received;
  };
  const std::string sized = "HTTP/1.1 200 OK\r\nServer: s\r\nContent-Length: 2\r\n\r\nok";
  EXPECT_EQ(answer(sized, kGet), sized);
  const std::string chunked =
      "HTTP/1.1 200 OK\r\nServer: s\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";
  EXPECT_EQ(answer(chunked, kGet), chunked);
  EXPECT_EQ(answer(chunked, "GET / HTTP/1.0\r\n\r\n"),
            "HTTP/1.0 200 OK\r\nServer: s\r\nConnection: close\r\n\r\nok");
  EXPECT_EQ(
      answer(sized, "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"),
      "HTTP/1.0 200 OK\r\nServer: s\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nok");
}

TEST_F(ProxyTest, PassesARequestOnWithNothingAddedButItsAttemptNumber) {
  CannedHost host(network, {"10.0.0.9", 80});
  Options options = unhedged();
  options.to = {{"10.0.0.9", 80}};
  start(options);
  const auto peer = client();
  peer->send(
      "DELETE /a%20b?c=d&e HTTP/1.1\r\nHost: shop:81\r\nUser-Agent: u\r\nAccept: */*\r\nCookie: "
      "a\r\n"
      "Cookie: b\r\nConnection: keep-alive, X-Mine\r\nX-Mine: 1\r\nTE: trailers\r\n\r\n");
  settle();
  host.answer("HTTP/1.1 204 No Content\r\n\r\n");
  EXPECT_EQ(host.request,
            "DELETE /a%20b?c=d&e HTTP/1.1\r\nHost: shop:81\r\nUser-Agent: u\r\nAccept: */*\r\n"
            "Cookie: a\r\nCookie: b\r\nx-tailward-attempt: 0\r\n\r\n");
}

TEST_F(ProxyTest, KeepsConnectionsOnBothSides) {
  start(unhedged());
  const auto peer = client();
  for (int i = 0; i < 20; ++i) {
    peer->received.clear();
    peer->send(kGet);
    settle();
    EXPECT_THAT(peer->received, EndsWith("ok"));
  }
  EXPECT_EQ(proxy->server().counters().accepted, 1U);
  EXPECT_LE(proxy->client().pool(0).counters().opened, 1U);
  EXPECT_LE(proxy->client().pool(1).counters().opened, 1U);
}

TEST_F(ProxyTest, AnswersPipelinedRequestsInTheirOrder) {
  service.answer = [](const net::CallRef& call, int) {
    call->respond(200, "text/plain", call->request().target);
  };
  start(unhedged());
  const auto peer = client();
  peer->send("GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n");
  settle();
  const std::size_t first = peer->received.find("/1");
  EXPECT_NE(first, std::string::npos);
  EXPECT_GT(peer->received.find("/2"), first);
  EXPECT_THAT(peer->received, EndsWith("/2"));
}

TEST_F(ProxyTest, HedgesASlowRequest) {
  service.answer = answer_hedges;
  start(hedging());
  const auto peer = client();
  peer->send(kGet);
  pass(50ms - 1ns);
  EXPECT_EQ(peer->received, "");
  pass(1ns);
  EXPECT_THAT(peer->received, EndsWith("from attempt 1"));
  EXPECT_EQ(service.cancelled, 1U);
}

TEST_F(ProxyTest, DoesNotHedgeAHedge) {
  service.answer = ignore;
  start(hedging());
  const auto peer = client();
  peer->send("GET / HTTP/1.1\r\nHost: a\r\nx-tailward-attempt: 1\r\n\r\n");
  pass(5s);
  EXPECT_EQ(service.attempts(), "1");
}

// Answers with the body that it got.
void echo(const net::CallRef& call, int) {
  net::ServerCall* const raw = call.get();
  call->read_body(10'000'000, [raw](Result<std::string> body) {
    raw->respond(200, "text/plain", body ? std::move(*body) : "too long");
  });
}

std::string chunked(std::string_view body, std::size_t piece) {
  std::string text;
  for (std::size_t at = 0; at < body.size(); at += piece) {
    const std::string_view part = body.substr(at, piece);
    text += fmt::format("{:x}\r\n{}\r\n", part.size(), part);
  }
  return text + "0\r\n\r\n";
}

TEST_F(ProxyTest, PassesBodiesOfAllSizesOn) {
  service.answer = echo;
  start(hedging());
  for (const std::size_t size : {1, 1000, 65'536, 65'537, 1'000'000}) {
    const std::string body = pattern(size);
    for (const char* const head : {"POST / HTTP/1.1\r\nHost: a\r\n",
                                   "POST / HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\n"}) {
      const std::string by_length =
          ask(fmt::format("{}Content-Length: {}\r\n\r\n{}", head, size, body));
      EXPECT_EQ(body_of(by_length), body) << head << size;
      const std::string by_chunks =
          ask(std::string(head) + "Transfer-Encoding: chunked\r\n\r\n" + chunked(body, 777));
      EXPECT_EQ(body_of(by_chunks), body) << head << size;
    }
  }
  EXPECT_EQ(proxy->in_flight(), 0U);
}

TEST_F(ProxyTest, HedgesAPostWithAKeyWhenItsBodyFitsTheLimit) {
  service.answer = ignore;
  start(hedging());
  const auto hedged = [&](std::size_t size, bool by_chunks) {
    service.forget();
    const std::string body = pattern(size);
    const auto peer = client();
    const std::string head = "POST / HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\n";
    peer->send(by_chunks ? head + "Transfer-Encoding: chunked\r\n\r\n" + chunked(body, 5000)
                         : fmt::format("{}Content-Length: {}\r\n\r\n{}", head, size, body));
    pass(60ms);
    return service.attempts();
  };
  EXPECT_EQ(hedged(65'536, false), "0 1");
  EXPECT_EQ(hedged(65'536, true), "0 1");
  EXPECT_EQ(hedged(65'537, false), "0");
  EXPECT_EQ(hedged(65'537, true), "0");
}

TEST_F(ProxyTest, NeverHedgesAPostWithoutAKey) {
  service.answer = ignore;
  start(hedging());
  const auto peer = client();
  peer->send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi");
  pass(5s);
  EXPECT_EQ(service.attempts(), "0");
}

TEST_F(ProxyTest, LetsAClientTalkWhileItListens) {
  std::unique_ptr<net::BodyHandler> handler;
  struct Parrot : net::BodyHandler {
    explicit Parrot(net::ServerCall& to) : call(to) {
      http::Response head;
      head.body = http::BodyKind::kChunked;
      call.respond_head(std::move(head));
    }
    void on_request_body(std::span<const char> piece) override { call.write(piece); }
    void on_request_end() override { call.finish(); }
    net::ServerCall& call;
  };
  service.answer = [&](const net::CallRef& call, int) {
    handler = std::make_unique<Parrot>(*call);
    call->stream_body(*handler);
  };
  start(hedging());
  const auto peer = client();
  peer->send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\none \r\n");
  settle();
  EXPECT_THAT(peer->received, HasSubstr("one "));
  peer->send("3\r\ntwo\r\n0\r\n\r\n");
  settle();
  EXPECT_THAT(peer->received, HasSubstr("two"));
  EXPECT_THAT(peer->received, EndsWith("0\r\n\r\n"));
}

TEST_F(ProxyTest, AnswersExpectContinueItself) {
  service.answer = echo;
  start(unhedged());
  const auto peer = client();
  peer->send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  settle();
  EXPECT_EQ(peer->received, "HTTP/1.1 100 Continue\r\n\r\n");
  peer->send("hi");
  settle();
  EXPECT_THAT(peer->received, EndsWith("\r\n\r\nhi"));
  EXPECT_FALSE(service.seen[0].head.fields.find("expect").has_value());
}

TEST_F(ProxyTest, CancelsEveryAttemptWhenTheClientGoes) {
  service.answer = ignore;
  start(hedging());
  auto peer = client();
  peer->send(kGet);
  pass(60ms);
  ASSERT_EQ(service.attempts(), "0 1");
  peer.reset();
  settle();
  EXPECT_EQ(service.cancelled, 2U);
  EXPECT_EQ(proxy->in_flight(), 0U);
  EXPECT_EQ(proxy->figures().client_gone, 1U);
}

TEST_F(ProxyTest, SaysWhyNoHostAnswered) {
  service.servers.clear();
  start(unhedged());
  const std::string answer = ask(kGet);
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 502 Bad Gateway\r\n"));
  EXPECT_THAT(answer, HasSubstr("text/plain"));
  EXPECT_THAT(body_of(answer), StartsWith("tailward: 10.0.0."));
  EXPECT_THAT(answer, EndsWith("refused the connection\n"));
  EXPECT_EQ(body_of(ask("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n")), "");
}

TEST_F(ProxyTest, AnswersTheDeadlineWith504) {
  service.answer = ignore;
  Options options = unhedged();
  options.deadline = 200ms;
  start(options);
  const auto peer = client();
  peer->send(kGet);
  pass(200ms - 1ns);
  EXPECT_EQ(peer->received, "");
  pass(1ns);
  EXPECT_THAT(peer->received, StartsWith("HTTP/1.1 504 Gateway Timeout\r\n"));
  EXPECT_EQ(service.cancelled, 1U);
}

TEST_F(ProxyTest, AnswersItsOwnLimitsWith503) {
  service.answer = ignore;
  Options options = unhedged();
  options.to = {service.endpoints[0]};
  options.host_connections_max = 1;
  options.host_waiting_max = 0;
  start(options);
  const auto first = client();
  first->send(kGet);
  settle();
  EXPECT_THAT(ask(kGet), StartsWith("HTTP/1.1 503 Service Unavailable\r\n"));
  EXPECT_EQ(proxy->figures().overloaded, 1U);
  service.calls[0]->respond(200, "text/plain", "late");
  settle();
  EXPECT_THAT(first->received, EndsWith("late"));
}

TEST_F(ProxyTest, RefusesToSpeakAnotherProtocol) {
  start(unhedged());
  const std::string upgrade =
      ask("GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
  EXPECT_THAT(upgrade, StartsWith("HTTP/1.1 501 Not Implemented\r\n"));
  EXPECT_THAT(body_of(upgrade), HasSubstr("Upgrade is not supported"));
  const std::string connect = ask("CONNECT shop:443 HTTP/1.1\r\nHost: shop:443\r\n\r\n");
  EXPECT_THAT(connect, StartsWith("HTTP/1.1 501 Not Implemented\r\n"));
  EXPECT_EQ(service.seen.size(), 0U);
}

TEST_F(ProxyTest, IgnoresAnOfferOfHttp2) {
  start(unhedged());
  EXPECT_THAT(ask("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\n"
                  "Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAA\r\n\r\n"),
              EndsWith("ok"));
  EXPECT_FALSE(service.seen[0].head.fields.find("http2-settings").has_value());
}

TEST_F(ProxyTest, MalformedInputOfOneClientDoesNotDisturbAnother) {
  service.answer = ignore;
  start(unhedged());
  const auto good = client();
  good->send(kGet);
  settle();
  for (const char* const bad :
       {"nonsense\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: "
        "3\r\n\r\nabc"}) {
    EXPECT_THAT(ask(bad), testing::AnyOf(StartsWith("HTTP/1.1 400"), StartsWith("HTTP/1.1 501")))
        << bad;
  }
  service.calls[0]->respond(200, "text/plain", "undisturbed");
  settle();
  EXPECT_THAT(good->received, EndsWith("undisturbed"));
}

TEST_F(ProxyTest, EndsTheClientsAnswerWhenTheHostBreaksOff) {
  CannedHost host(network, {"10.0.0.9", 80});
  Options options = unhedged();
  options.to = {{"10.0.0.9", 80}};
  start(options);
  const auto peer = client();
  peer->send(kGet);
  settle();
  host.answer("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", true);
  settle();
  EXPECT_THAT(peer->received, EndsWith("half"));
  EXPECT_TRUE(peer->ended);
  EXPECT_EQ(proxy->figures().broken_off, 1U);
}

TEST_F(ProxyTest, PassesAnEarlyAnswerOnWithoutTheRestOfTheBody) {
  service.answer = [](const net::CallRef& call, int) { call->respond(413, "text/plain", "no"); };
  start(unhedged());
  const auto peer = client();
  peer->send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9000000\r\n\r\n" + pattern(100'000));
  settle();
  EXPECT_THAT(peer->received, StartsWith("HTTP/1.1 413"));
  EXPECT_THAT(peer->received, HasSubstr("Connection: close"));
  EXPECT_EQ(proxy->in_flight(), 0U);
}

// Faults at every byte of an exchange: whatever breaks, a POST is not sent a second time, and its
// client hears of one answer or of none.
class FaultTest : public ProxyTest {
 protected:
  using Place = std::uint64_t io::PathFaults::*;

  // A POST through the proxy whose connection to the host breaks after `at` bytes. Returns how
  // many copies reached a host.
  std::size_t post_with_fault(bool to_server, Place place, std::uint64_t at, bool warm) {
    service.forget();
    service.answer = [](const net::CallRef& call, int) { call->respond(200, "", "done"); };
    io::ConnectionFaults broken;
    io::PathFaults& path = to_server ? broken.to_server : broken.to_client;
    path.*place = at;
    faults.faults = broken;
    faults.connections = 1;
    Options options = unhedged();
    options.to = {service.endpoints[0]};
    start(options);
    const auto peer = client();
    if (warm) {
      peer->send(kGet);
      settle();
    }
    service.forget();
    peer->received.clear();
    if (!peer->ended) {
      peer->send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
      pass(100ms);
      // 400 is the host's: its half of the connection ended within the request.
      EXPECT_TRUE(peer->ended || peer->received.starts_with("HTTP/1.1 200") ||
                  peer->received.starts_with("HTTP/1.1 400") ||
                  peer->received.starts_with("HTTP/1.1 502"))
          << peer->received;
    }
    const std::size_t copies = service.seen.size();
    proxy.reset();
    settle();
    return copies;
  }
};

TEST_F(FaultTest, NeverSendsAPostTwiceWhereverTheConnectionBreaks) {
  std::size_t unanswered = 0;
  for (const bool warm : {false, true}) {
    for (const bool to_server : {true, false}) {
      for (const Place place : {&io::PathFaults::reset_after, &io::PathFaults::finish_after,
                                &io::PathFaults::write_error_after}) {
        for (std::uint64_t at = 0; at < 260; ++at) {
          const std::size_t copies = post_with_fault(to_server, place, at, warm);
          ASSERT_LE(copies, 1U) << "after " << at << " bytes " << (to_server ? "to" : "from")
                                << " the server" << (warm ? ", on a kept connection" : "");
          if (copies == 0) ++unanswered;
        }
      }
    }
  }
  EXPECT_GT(unanswered, 100U);  // the faults did strike
}

// Reads only when told, so that what it does not read piles up elsewhere.
class SlowReader {
 public:
  explicit SlowReader(std::unique_ptr<io::Stream> stream) : stream_(std::move(stream)) {}
  void send(std::string text) {
    out_ = std::move(text);
    stream_->write(out_, [this](const Result<void>&) { sent = true; });
  }
  void read_all() {
    stream_->read(buffer_, [this](Result<std::size_t> got) {
      if (!got || *got == 0) return;
      received.append(buffer_, 0, *got);
      read_all();
    });
  }
  std::string received;
  bool sent = false;

 private:
  std::unique_ptr<io::Stream> stream_;
  std::string out_;
  std::string buffer_ = std::string(4096, '\0');
};

// What the memory network holds on one connection and direction, twice, and what the proxy may
// hold: its limit, a read buffer on either side, a host's read-ahead.
constexpr std::size_t kHeldMax = 2 * 64 * 1024 + 64 * 1024 + 2 * 16 * 1024;

TEST_F(ProxyTest, HoldsABoundedPartOfAnAnswerForASlowReader) {
  constexpr std::size_t kPiece = 10'000;
  const std::string text = pattern(8'000'000);
  std::size_t taken = 0;
  std::function<void(net::ServerCall&)> go = [&](net::ServerCall& call) {
    if (taken == text.size()) return call.finish();
    call.write(std::span(text).subspan(taken, kPiece), [&](const Result<void>&) {
      taken += kPiece;
      go(call);
    });
  };
  service.answer = [&](const net::CallRef& call, int) {
    http::Response head;
    head.body = http::BodyKind::kLength;
    head.content_length = text.size();
    call->respond_head(std::move(head));
    go(*call);
  };
  start(hedging());
  SlowReader reader(connect({"127.0.0.1", 8080}));
  reader.send(kGet);
  settle();
  pass(10s);
  EXPECT_GT(taken, 100'000U);
  EXPECT_LE(taken, kHeldMax);
  EXPECT_GE(proxy->figures().held_up, 1U);
  reader.read_all();
  settle();
  EXPECT_EQ(body_of(reader.received), text);
}

TEST_F(ProxyTest, HoldsABoundedPartOfABodyForASlowHost) {
  service.answer = ignore;  // reads nothing beyond what a server reads ahead
  start(unhedged());
  SlowReader sender(connect({"127.0.0.1", 8080}));
  std::string head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 8000000\r\n\r\n";
  // The pipe takes what fits: only when all of it fits is a write done.
  const std::size_t fits = 600'000;
  sender.send(head + pattern(fits));
  pass(1s);
  EXPECT_FALSE(sender.sent);
  EXPECT_GE(proxy->figures().held_up, 1U);
  EXPECT_EQ(proxy->server().counters().buffered_limit_hits, 0U);
}

}  // namespace
}  // namespace tailward::proxy
