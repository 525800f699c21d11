#include "net/http_server.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "net/http_testing.h"

namespace tailward::net {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

const std::string kGet = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
const std::string kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

std::string repeat(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

struct ServerTest : testing::Test, MemoryNet {
  // By default a call is kept for the test to answer.
  HttpServer& serve(ServerOptions options = {}, HttpServer::Handler handler = nullptr) {
    if (!handler) handler = [this](CallRef call) { calls.push_back(std::move(call)); };
    server.emplace(network, timers, std::move(handler), options);
    EXPECT_TRUE(server->listen({"server", 80}));
    return *server;
  }
  static void answer_ok(const CallRef& call) { call->respond(200, "", "ok"); }

  RawPeer& connect() {
    std::unique_ptr<io::Connecting> connecting =
        network.connect({"server", 80}, [this](Result<std::unique_ptr<io::Stream>> stream) {
          clients.push_back(std::make_unique<RawPeer>(std::move(*stream)));
        });
    // Without time, so that a delay of the faults does not hold up the handshake.
    settle();
    return *clients.back();
  }

  RawPeer& connect_and_send(std::string text) {
    RawPeer& client = connect();
    client.send(std::move(text));
    settle();
    return client;
  }

  // The head of the first call's response; its body follows by write().
  void respond_in_chunks() {
    http::Response head;
    head.body = http::BodyKind::kChunked;
    calls[0]->respond_head(head);
  }
  void respond_with_length(std::uint64_t length) {
    http::Response head;
    head.body = http::BodyKind::kLength;
    head.content_length = length;
    calls[0]->respond_head(head);
  }

  std::vector<CallRef> calls;
  std::optional<HttpServer> server;
  std::vector<std::unique_ptr<RawPeer>> clients;
  std::unique_ptr<io::Stream> held;  // a client that reads nothing
};

TEST_F(ServerTest, AnswersAndKeepsTheConnection) {
  serve({}, answer_ok);
  RawPeer& client = connect();
  for (int i = 1; i <= 3; ++i) {
    client.send(kGet);
    settle();
    EXPECT_EQ(client.received, repeat(kOk, i));
  }
  EXPECT_FALSE(client.ended);
  EXPECT_EQ(server->counters().requests, 3u);
  EXPECT_EQ(server->counters().answered, 3u);
  EXPECT_EQ(server->counters().connections, 1u);
  EXPECT_EQ(server->counters().in_flight, 0u);
}

TEST_F(ServerTest, ClosesAfterTheResponseWhenAskedTo) {
  serve({}, answer_ok);
  RawPeer& client = connect_and_send("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(client.received, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
  EXPECT_TRUE(client.ended);
  EXPECT_FALSE(client.broken);
  EXPECT_EQ(server->counters().connections, 0u);
}

TEST_F(ServerTest, KeepsAConnectionOfHttp10OnlyWhenAskedTo) {
  serve({}, answer_ok);
  RawPeer& kept = connect_and_send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(kept.received,
            "HTTP/1.0 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nok");
  EXPECT_FALSE(kept.ended);
  RawPeer& closed = connect_and_send("GET / HTTP/1.0\r\n\r\n");
  EXPECT_TRUE(closed.ended);
}

TEST_F(ServerTest, AnswersPipelinedRequestsInOrderOneAtATime) {
  serve();
  RawPeer& client = connect_and_send(
      "GET /1 HTTP/1.1\r\nHost: h\r\n\r\nGET /2 HTTP/1.1\r\nHost: h\r\n\r\n"
      "GET /3 HTTP/1.1\r\nHost: h\r\n\r\n");
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_EQ(calls.size(), i + 1) << "the next one waits for the answer before it";
    calls[i]->respond(200, "", calls[i]->request().target);
    settle();
  }
  EXPECT_EQ(client.received,
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n/1"
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n/2"
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n/3");
}

TEST_F(ServerTest, TakesARequestApartAtAnyByte) {
  serve({}, [](const CallRef& call) {
    call->read_body(100, [call](Result<std::string> body) { call->respond(200, "", *body); });
  });
  const std::string request =
      "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: "
      "chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
  for (std::size_t split = 1; split < request.size(); ++split) {
    RawPeer& client = connect_and_send(request.substr(0, split));
    client.send(request.substr(split));
    settle();
    EXPECT_EQ(client.received, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabcde") << split;
  }
  faults.faults.to_server.slice = 1;
  RawPeer& client = connect_and_send(repeat(request, 3));
  EXPECT_EQ(client.received, repeat("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabcde", 3));
}

TEST_F(ServerTest, AnswersHeadAndNotModifiedWithoutABody) {
  serve({}, [](const CallRef& call) {
    call->respond(call->request().target == "/304" ? 304 : 200, "", "body");
  });
  RawPeer& client = connect_and_send(
      "HEAD / HTTP/1.1\r\nHost: h\r\n\r\nGET /304 HTTP/1.1\r\nHost: h\r\n\r\n" + kGet);
  EXPECT_EQ(client.received,
            "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n"
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 4\r\n\r\n"
            "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody");
}

TEST_F(ServerTest, TheCallHearsAtOnceThatItsClientHasGone) {
  serve();
  RawPeer& leaver = connect();
  RawPeer& stayer = connect();
  leaver.send(kGet);
  stayer.send(kGet);
  settle();
  ASSERT_EQ(calls.size(), 2u);
  bool cancelled[2] = {false, false};
  for (std::size_t i = 0; i < 2; ++i) calls[i]->on_cancel([&cancelled, i] { cancelled[i] = true; });
  leaver.close();
  settle();
  EXPECT_TRUE(cancelled[0]);
  EXPECT_FALSE(cancelled[1]);
  EXPECT_FALSE(calls[0]->open());
  calls[0]->respond(200, "", "to nobody");
  calls[1]->respond(200, "", "ok");
  settle();
  EXPECT_EQ(stayer.received, kOk);
  EXPECT_EQ(server->counters().cancelled, 1u);
  EXPECT_EQ(server->counters().in_flight, 0u);
  EXPECT_EQ(server->counters().connections, 1u);
}

TEST_F(ServerTest, TheCallHearsOfAResetAndOfACloseBehindPipelinedBytes) {
  serve();
  faults.faults.to_server.reset_after = kGet.size();
  RawPeer& resetter = connect();
  faults.faults = {};
  RawPeer& pipeliner = connect();
  resetter.send(kGet);
  settle();
  EXPECT_EQ(server->counters().cancelled, 1u);
  pipeliner.send(repeat(kGet, 3));
  settle();
  pipeliner.close();
  settle();
  EXPECT_EQ(server->counters().cancelled, 2u);
  EXPECT_EQ(server->counters().connections, 0u);
}

TEST_F(ServerTest, ACallMayOwnItselfThroughItsCallbackWithoutLeaking) {
  serve();
  RawPeer& client = connect_and_send(kGet);
  const CallWeak weak = calls[0];
  calls[0]->on_cancel([call = calls[0]] {});
  calls[0]->respond(200, "", "ok");
  calls.clear();
  settle();
  EXPECT_TRUE(weak.expired());
  EXPECT_EQ(client.received, kOk);
}

TEST_F(ServerTest, ACallThatIsDroppedIsAnsweredWith500) {
  serve({}, [](const CallRef&) {});
  RawPeer& client = connect_and_send(kGet);
  EXPECT_EQ(client.received,
            "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(client.ended);
  EXPECT_EQ(server->counters().aborted, 1u);
}

TEST_F(ServerTest, AResponseBrokenOffClosesTheConnection) {
  serve();
  RawPeer& client = connect_and_send(kGet);
  respond_in_chunks();
  calls[0]->write(std::string_view("part"));
  settle();
  calls[0]->abort();
  settle();
  EXPECT_TRUE(client.ended);
  EXPECT_TRUE(client.received.ends_with("4\r\npart\r\n"));
  EXPECT_EQ(server->counters().in_flight, 0u);
}

TEST_F(ServerTest, WritesAResponseInChunksAndTellsWhenTheyAreTaken) {
  serve();
  RawPeer& client = connect_and_send(kGet + kGet);
  respond_in_chunks();
  int taken = 0;
  calls[0]->write(std::string_view("abc"),
                  [&](Result<void> result) { taken += result.has_value(); });
  EXPECT_EQ(taken, 0);
  EXPECT_GT(calls[0]->buffered(), 0u);
  settle();
  EXPECT_EQ(taken, 1);
  EXPECT_EQ(calls[0]->buffered(), 0u);
  EXPECT_EQ(client.received, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
  calls[0]->write(std::string_view("de"));
  calls[0]->finish();
  settle();
  EXPECT_TRUE(client.received.ends_with("3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"));
  EXPECT_EQ(calls.size(), 2u) << "the connection goes on";
}

TEST_F(ServerTest, TheHeadLeavesAloneWhenNoPieceFollowsInItsTurn) {
  serve();
  RawPeer& client = connect_and_send(kGet);
  respond_with_length(3);
  settle();
  EXPECT_EQ(client.received, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n");
  calls[0]->write(std::string_view("abc"));
  settle();
  calls[0]->finish();
  client.send(kGet);
  settle();
  EXPECT_TRUE(client.received.ends_with("\r\n\r\nabc"));
  EXPECT_EQ(calls.size(), 2u);
}

TEST_F(ServerTest, AResponseShorterThanAnnouncedIsBrokenOff) {
  serve();
  RawPeer& client = connect_and_send(kGet);
  respond_with_length(3);
  calls[0]->write(std::string_view("ab"));
  settle();
  calls[0]->finish();
  settle();
  EXPECT_TRUE(client.ended);
  EXPECT_EQ(server->counters().aborted, 1u);
}

TEST_F(ServerTest, AClientOfHttp10GetsAChunkedResponseUntilClose) {
  serve();
  RawPeer& client = connect_and_send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  respond_in_chunks();
  calls[0]->write(std::string_view("abc"));
  calls[0]->finish();
  settle();
  EXPECT_EQ(client.received, "HTTP/1.0 200 OK\r\nConnection: close\r\n\r\nabc");
  EXPECT_TRUE(client.ended);
}

TEST_F(ServerTest, AReaderThatStopsHoldsUpTheWriter) {
  serve();
  auto idle_client = network.connect({"server", 80}, [this](auto stream) {
    auto raw = std::move(*stream);
    raw->write(kGet, [](Result<void>) {});
    held = std::move(raw);
  });
  settle();
  ASSERT_EQ(calls.size(), 1u);
  respond_in_chunks();
  bool taken = false;
  calls[0]->write(std::string(1'000'000, 'x'), [&](Result<void>) { taken = true; });
  pass(seconds(1));
  EXPECT_FALSE(taken);
  EXPECT_GE(calls[0]->buffered(), 1'000'000u);
  held.reset();
  settle();
  EXPECT_FALSE(taken);
  EXPECT_FALSE(calls[0]->open());
}

TEST_F(ServerTest, AReaderThatHasStoppedTimesOutAndASlowOneDoesNot) {
  serve({.write_timeout = seconds(5)});
  auto connecting = network.connect({"server", 80}, [this](auto stream) {
    held = std::move(*stream);
    held->write(kGet, [](Result<void>) {});
  });
  settle();
  calls[0]->respond(200, "", std::string(1'000'000, 'x'));
  std::string buffer(100'000, '\0');
  for (int i = 0; i < 9; ++i) {
    pass(seconds(1));
    held->read(buffer, [](Result<std::size_t> got) { EXPECT_TRUE(got); });
    settle();
  }
  EXPECT_EQ(server->counters().timed_out, 0u);
  pass(seconds(5));
  EXPECT_EQ(server->counters().timed_out, 1u);
  EXPECT_EQ(server->counters().in_flight, 0u);
  EXPECT_EQ(server->counters().connections, 0u);
}

TEST_F(ServerTest, OutputPiledUpBeyondTheLimitBreaksTheCallOff) {
  serve({.buffered_bytes = 1000});
  connect().send(kGet);
  settle();
  respond_in_chunks();
  calls[0]->write(std::string(2000, 'x'));
  settle();
  EXPECT_FALSE(calls[0]->open());
  EXPECT_EQ(server->counters().buffered_limit_hits, 1u);
}

class BodyLog : public BodyHandler {
 public:
  void on_request_body(std::span<const char> piece) override {
    text.append(piece.data(), piece.size());
    largest = std::max(largest, piece.size());
  }
  void on_request_end() override { ended = true; }
  std::string text;
  std::size_t largest = 0;
  bool ended = false;
};

TEST_F(ServerTest, StreamsARequestBodyAndHoldsUpTheClient) {
  serve({.read_buffer_bytes = 1024, .early_bytes = 4096});
  RawPeer& client = connect();
  const std::string body(1'000'000, 'b');
  client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n" + body);
  settle();
  ASSERT_EQ(calls.size(), 1u) << "told as soon as the head is whole";
  BodyLog log;
  calls[0]->pause_body();
  calls[0]->stream_body(log);
  pass(seconds(1));
  EXPECT_TRUE(log.text.empty());
  EXPECT_GE(server->counters().early_limit_hits, 1u);
  calls[0]->resume_body();
  EXPECT_TRUE(log.text.empty()) << "told inside the call";
  settle();
  EXPECT_EQ(log.text, body);
  EXPECT_TRUE(log.ended);
  EXPECT_LE(log.largest, 8192u);
  calls[0]->respond(200, "", "ok");
  client.send(kGet);
  settle();
  EXPECT_EQ(client.received, kOk);
  EXPECT_EQ(calls.size(), 2u);
}

TEST_F(ServerTest, ABodyLongerThanItsReaderTakesIsOverloaded) {
  std::optional<ErrorKind> kind;
  serve({}, [&](const CallRef& call) {
    call->read_body(4, [&kind, call](Result<std::string> body) {
      kind = body ? std::optional<ErrorKind>() : body.error().kind;
      call->respond(413, "", "");
    });
  });
  RawPeer& client =
      connect_and_send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 50\r\n\r\n12345");
  EXPECT_EQ(kind, ErrorKind::kOverloaded);
  EXPECT_TRUE(client.received.starts_with("HTTP/1.1 413 "));
  EXPECT_TRUE(client.received.find("Connection: close") != std::string::npos);
  client.close();
  settle();
  EXPECT_EQ(server->counters().connections, 0u);
}

TEST_F(ServerTest, SaysContinueOnceTheBodyIsWanted) {
  serve();
  RawPeer& client = connect_and_send(
      "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.received, "");
  std::string got;
  calls[0]->read_body(10, [&](Result<std::string> body) { got = *body; });
  settle();
  EXPECT_EQ(client.received, "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("hi");
  settle();
  EXPECT_EQ(got, "hi");
  calls[0]->respond(200, "", "ok");
  settle();
  EXPECT_EQ(client.received, "HTTP/1.1 100 Continue\r\n\r\n" + kOk);
  EXPECT_FALSE(client.ended);
}

TEST_F(ServerTest, AResponseWithoutReadingTheBodyIsTheLast) {
  serve();
  RawPeer& client = connect_and_send(
      "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  calls[0]->respond(403, "", "no");
  settle();
  EXPECT_EQ(client.received,
            "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno");
  EXPECT_TRUE(client.ended);
  pass(seconds(1));
  EXPECT_EQ(server->counters().connections, 0u);
}

// Goal: whatever is wrong with one connection, it is answered where it can be, and closed, and no
// other connection feels it.
TEST_F(ServerTest, AnswersInputItCannotUnderstandAndClosesThatConnectionOnly) {
  ServerOptions options;
  options.limits = {.head_bytes = 1000, .fields = 5, .body_bytes = 10};
  serve(options, [](const CallRef& call) {
    call->read_body(100, [call](Result<std::string>) { call->respond(200, "", "ok"); });
  });
  RawPeer& good = connect();
  const std::string h = "Host: h\r\n";
  const struct {
    std::string input;
    int status;
  } cases[] = {
      {"nonsense\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\n" + h + "a b: c\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\n" + h + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\n" + h + "Transfer-Encoding: gzip\r\n\r\n", 501},
      {"POST / HTTP/1.1\r\n" + h + "Transfer-Encoding: chunked\r\n\r\nxyz\r\n", 400},
      {"POST / HTTP/1.1\r\n" + h + "Content-Length: 11\r\n\r\n", 413},
      {"POST / HTTP/1.1\r\n" + h + "Transfer-Encoding: chunked\r\n\r\n" +
           "b\r\n01234567890\r\n0\r\n\r\n",
       413},
      {"GET /" + std::string(2000, 'u') + " HTTP/1.1\r\n" + h + "\r\n", 414},
      {"GET / HTTP/1.1\r\n" + h + "x: " + std::string(2000, 'v') + "\r\n\r\n", 431},
      {"GET / HTTP/1.1\r\n" + h + repeat("x: y\r\n", 6) + "\r\n", 431},
      {"GET / HTTP/2.0\r\n" + h + "\r\n", 505},
  };
  std::uint64_t malformed = 0;
  for (const auto& [input, status] : cases) {
    RawPeer& bad = connect_and_send(input);
    const std::string expected = "HTTP/1.1 " + std::to_string(status) + " ";
    EXPECT_TRUE(bad.received.starts_with(expected)) << input << "\n" << bad.received;
    EXPECT_TRUE(bad.received.find("Connection: close\r\n") != std::string::npos) << input;
    EXPECT_TRUE(bad.ended) << input;
    EXPECT_FALSE(bad.broken) << input;
    EXPECT_EQ(server->counters().malformed, ++malformed) << input;
    good.received.clear();
    good.send(kGet);
    settle();
    EXPECT_EQ(good.received, kOk) << input;
  }
  pass(seconds(1));
  EXPECT_EQ(server->counters().connections, 1u);
  EXPECT_EQ(server->counters().in_flight, 0u);
}

TEST_F(ServerTest, ACallWhoseBodyTurnsOutMalformedIsCancelled) {
  serve();
  RawPeer& client = connect_and_send(
      "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n");
  BodyLog log;
  bool cancelled = false;
  calls[0]->stream_body(log);
  calls[0]->on_cancel([&] { cancelled = true; });
  settle();
  EXPECT_EQ(log.text, "a");
  client.send("garbage\r\n");
  settle();
  EXPECT_TRUE(cancelled);
  EXPECT_TRUE(client.received.starts_with("HTTP/1.1 400 "));
  EXPECT_EQ(server->counters().in_flight, 0u);
}

TEST_F(ServerTest, AnswersAHeadThatIsCutOff) {
  serve();
  RawPeer& client = connect();
  client.send("GET / HTTP/1.1\r\nHo");
  client.stream->finish_writing();
  settle();
  EXPECT_TRUE(client.received.starts_with("HTTP/1.1 400 "));
  EXPECT_TRUE(client.ended);
  EXPECT_EQ(server->counters().truncated, 1u);
  EXPECT_EQ(server->counters().connections, 0u);
}

TEST_F(ServerTest, AHeadThatComesTooSlowlyTimesOutHoweverItDrips) {
  serve({.header_timeout = seconds(10)});
  RawPeer& client = connect();
  pass(seconds(3));
  client.send("G");
  settle();
  for (int i = 0; i < 9; ++i) {
    pass(seconds(1));
    client.send("E");
    settle();
  }
  pass(seconds(1) - nanoseconds(1));
  EXPECT_EQ(client.received, "");
  pass(nanoseconds(1));
  EXPECT_TRUE(client.received.starts_with("HTTP/1.1 408 ")) << client.received;
  EXPECT_TRUE(client.ended);
  EXPECT_EQ(server->counters().timed_out, 1u);
}

TEST_F(ServerTest, ABodyThatStopsTimesOut) {
  serve({.body_timeout = seconds(5)});
  RawPeer& client = connect_and_send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nabc");
  BodyLog log;
  bool cancelled = false;
  calls[0]->on_cancel([&] { cancelled = true; });
  pass(seconds(60));
  EXPECT_FALSE(cancelled) << "nobody waits for the body yet";
  calls[0]->stream_body(log);
  settle();
  pass(seconds(4));
  client.send("d");
  settle();
  pass(seconds(5) - nanoseconds(1));
  EXPECT_FALSE(cancelled);
  pass(nanoseconds(1));
  EXPECT_TRUE(cancelled);
  EXPECT_EQ(server->counters().timed_out, 1u);
}

TEST_F(ServerTest, AnIdleConnectionIsClosedAtItsTimeout) {
  serve({.idle_timeout = seconds(20)}, answer_ok);
  RawPeer& client = connect();
  pass(seconds(15));
  client.send(kGet);
  settle();
  pass(seconds(20) - nanoseconds(1));
  settle();
  EXPECT_FALSE(client.ended);
  pass(nanoseconds(1));
  EXPECT_TRUE(client.ended);
  EXPECT_EQ(server->counters().idle_closed, 1u);
}

TEST_F(ServerTest, AWorkingCallIsNotTimedOut) {
  serve();
  RawPeer& client = connect();
  client.send(kGet);
  pass(std::chrono::hours(1));
  calls[0]->respond(200, "", "ok");
  settle();
  EXPECT_EQ(client.received, kOk);
}

TEST_F(ServerTest, RefusesConnectionsBeyondTheLimit) {
  serve({.max_connections = 1}, answer_ok);
  RawPeer& first = connect();
  RawPeer& second = connect();
  settle();
  EXPECT_TRUE(second.ended);
  EXPECT_EQ(server->counters().refused, 1u);
  first.send(kGet);
  settle();
  EXPECT_EQ(first.received, kOk);
}

TEST_F(ServerTest, DrainingFinishesWhatIsUnderWayAndClosesTheRest) {
  serve();
  RawPeer& idle = connect();
  RawPeer& busy = connect();
  RawPeer& half = connect();
  busy.send(kGet);
  half.send(kGet.substr(0, 10));
  settle();
  bool empty = false;
  server->drain([&] { empty = true; });
  settle();
  EXPECT_TRUE(idle.ended);
  EXPECT_FALSE(busy.ended);
  std::optional<Error> refused;
  auto late = network.connect({"server", 80}, [&](auto stream) { refused = stream.error(); });
  settle();
  EXPECT_TRUE(refused.has_value());
  half.send(kGet.substr(10));
  settle();
  ASSERT_EQ(calls.size(), 2u);
  for (const CallRef& call : calls) call->respond(200, "", "ok");
  EXPECT_FALSE(empty);
  settle();
  for (RawPeer* client : {&busy, &half}) {
    EXPECT_EQ(client->received,
              "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
    EXPECT_TRUE(client->ended);
  }
  EXPECT_TRUE(empty);
  EXPECT_EQ(server->counters().connections, 0u);
}

TEST_F(ServerTest, DrainingAnEmptyServerReportsAtOnceButNotInsideTheCall) {
  serve();
  bool empty = false;
  server->drain([&] { empty = true; });
  EXPECT_FALSE(empty);
  settle();
  EXPECT_TRUE(empty);
}

TEST_F(ServerTest, DestroyingTheServerCancelsQuietly) {
  serve();
  RawPeer& client = connect_and_send(kGet);
  bool cancelled = false;
  calls[0]->on_cancel([&] { cancelled = true; });
  server.reset();
  settle();
  EXPECT_FALSE(cancelled);
  EXPECT_FALSE(calls[0]->open());
  EXPECT_TRUE(client.ended);
}

}  // namespace
}  // namespace tailward::net
