#include "net/http_pool.h"

#include <gtest/gtest.h>

#include <deque>
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

const std::string kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

struct PoolTest : testing::Test, MemoryNet {
  PoolTest() {
    listener = std::move(*network.listen({"server", 80}, [this](std::unique_ptr<io::Stream> s) {
      peers.push_back(std::make_unique<RawPeer>(std::move(s)));
    }));
  }

  Pool& make_pool(PoolOptions options = {}) {
    return pool.emplace(network, timers, io::HostPort{"server", 80}, options);
  }

  // One exchange that a peer answers with `answer`.
  Events run(const http::Request& request, const std::string& answer = kOk) {
    ExchangeLog log;
    Exchange exchange(*pool, log);
    exchange.start(request);
    settle();
    RawPeer& peer = *last_asked();
    peer.received.clear();
    peer.send(answer);
    settle();
    return log.events;
  }

  // An exchange and what it hears. It stays where it is made: the exchange refers to the log.
  struct Started {
    ExchangeLog log;
    Exchange exchange;
    Started(PoolTest& test, const http::Request& request, std::shared_ptr<const std::string> body,
            ExchangeOptions options)
        : exchange(*test.pool, log) {
      exchange.start(request, std::move(body), options);
      test.settle();
    }
  };
  // Its request has reached a peer.
  Started started(const http::Request& request = get(),
                  std::shared_ptr<const std::string> body = nullptr, ExchangeOptions options = {}) {
    return {*this, request, std::move(body), options};
  }

  void peer_sends(std::size_t which, std::string text) {
    peers[which]->send(std::move(text));
    settle();
  }
  void peer_closes(std::size_t which) {
    peers[which]->close();
    settle();
  }

  // The peer that holds an unanswered request.
  RawPeer* last_asked() {
    for (const auto& peer : peers) {
      if (!peer->received.empty()) return peer.get();
    }
    return nullptr;
  }

  std::unique_ptr<io::Listener> listener;
  std::deque<std::unique_ptr<RawPeer>> peers;
  std::optional<Pool> pool;
};

TEST_F(PoolTest, SendsTheRequestAndTellsTheResponse) {
  make_pool();
  ExchangeLog log;
  Exchange exchange(*pool, log);
  exchange.start(get("/a?b"));
  EXPECT_TRUE(log.events.empty());
  settle();
  EXPECT_EQ(peers[0]->received, "GET /a?b HTTP/1.1\r\nHost: test\r\n\r\n");
  EXPECT_NE(exchange.sent_at(), TimePoint{});
  EXPECT_EQ(exchange.first_byte_at(), TimePoint{});
  pass(milliseconds(3));
  peer_sends(0, kOk);
  EXPECT_EQ(log.events, (Events{"head:200", "end"}));
  EXPECT_EQ(log.body, "ok");
  EXPECT_EQ(exchange.first_byte_at() - exchange.sent_at(), milliseconds(3));
  EXPECT_TRUE(exchange.done());
  EXPECT_EQ(pool->counters().idle, 1u);
  EXPECT_EQ(pool->counters().in_use, 0u);
}

TEST_F(PoolTest, SharesACompleteBodyBetweenExchanges) {
  make_pool();
  const auto body = std::make_shared<const std::string>("payload");
  ExchangeLog log[2];
  {
    Exchange first(*pool, log[0]);
    Exchange second(*pool, log[1]);
    first.start(post(7), body);
    second.start(post(7), body);
    settle();
    ASSERT_EQ(peers.size(), 2u);
    for (const auto& peer : peers) {
      EXPECT_TRUE(peer->received.ends_with("Content-Length: 7\r\n\r\npayload")) << peer->received;
    }
  }
  settle();
  EXPECT_EQ(body.use_count(), 1);
}

TEST_F(PoolTest, ReusesTheConnectionThatWasUsedLast) {
  make_pool();
  ExchangeLog log[2];
  {
    Exchange first(*pool, log[0]);
    Exchange second(*pool, log[1]);
    first.start(get("/1"));
    second.start(get("/2"));
    settle();
    peer_sends(0, kOk);
    peer_sends(1, kOk);
  }
  peers[0]->received.clear();
  peers[1]->received.clear();
  EXPECT_EQ(run(get("/3")), (Events{"head:200", "end"}));
  EXPECT_EQ(pool->counters().opened, 2u);
  EXPECT_EQ(pool->counters().reused, 1u);
  ExchangeLog again;
  Exchange exchange(*pool, again);
  exchange.start(get("/4"));
  settle();
  EXPECT_EQ(peers[1]->received, "GET /4 HTTP/1.1\r\nHost: test\r\n\r\n");
  EXPECT_TRUE(exchange.reused_connection());
}

TEST_F(PoolTest, AnExchangeThatStartsFromTheEndOfAnotherReusesItsConnection) {
  make_pool();
  ExchangeLog first_log;
  ExchangeLog second_log;
  Exchange first(*pool, first_log);
  Exchange second(*pool, second_log);
  first_log.hook = [&](std::string_view event) {
    if (event == "end") second.start(get("/2"));
  };
  first.start(get("/1"));
  settle();
  peer_sends(0, kOk);
  EXPECT_EQ(pool->counters().opened, 1u);
  peer_sends(0, kOk);
  EXPECT_EQ(second_log.events, (Events{"head:200", "end"}));
}

TEST_F(PoolTest, ClosesAnIdleConnectionAtItsTimeoutAndNotBefore) {
  make_pool({.idle_timeout = seconds(5)});
  EXPECT_EQ(run(get()), (Events{"head:200", "end"}));
  pass(seconds(5) - nanoseconds(1));
  EXPECT_EQ(pool->counters().idle, 1u);
  pass(nanoseconds(1));
  EXPECT_EQ(pool->counters().idle, 0u);
  EXPECT_EQ(pool->counters().closed, 1u);
  settle();
  EXPECT_TRUE(peers[0]->ended);
}

TEST_F(PoolTest, DropsAnIdleConnectionThatTheServerCloses) {
  make_pool();
  run(get());
  peer_closes(0);
  EXPECT_EQ(pool->counters().idle, 0u);
  peers.clear();
  EXPECT_EQ(run(get()), (Events{"head:200", "end"}));
  EXPECT_EQ(pool->counters().stale_retries, 0u);
}

TEST_F(PoolTest, DropsAnIdleConnectionOnWhichUnaskedBytesArrive) {
  make_pool();
  run(get());
  peer_sends(0, kOk);
  EXPECT_EQ(pool->counters().idle, 0u);
  EXPECT_EQ(pool->counters().closed, 1u);
}

TEST_F(PoolTest, DropsAConnectionWhoseResponseIsFollowedByMore) {
  make_pool();
  EXPECT_EQ(run(get(), kOk + "HTTP/1.1 200 OK\r\n"), (Events{"head:200", "end"}));
  EXPECT_EQ(pool->counters().idle, 0u);
}

TEST_F(PoolTest, ClosesAConnectionThatTheServerWillNotKeep) {
  make_pool();
  run(get(), "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(pool->counters().closed, 1u);
  EXPECT_EQ(pool->counters().idle, 0u);
}

TEST_F(PoolTest, ReadsABodyUntilTheServerCloses) {
  make_pool();
  auto [log, exchange] = started(get());
  peer_sends(0, "HTTP/1.1 200 OK\r\n\r\npart one,");
  peer_sends(0, " part two");
  EXPECT_EQ(log.events, (Events{"head:200"}));
  peers[0]->stream->finish_writing();
  settle();
  EXPECT_EQ(log.events, (Events{"head:200", "end"}));
  EXPECT_EQ(log.body, "part one, part two");
}

// The connection dies on the wire while the next request is on its way.
TEST_F(PoolTest, SendsAgainOnAFreshConnectionWhenAReusedOneIsDead) {
  faults.faults.to_client.delay = milliseconds(1);
  faults.faults.to_server.delay = milliseconds(1);
  make_pool();
  ExchangeLog first;
  {
    Exchange exchange(*pool, first);
    exchange.start(get());
    pass(milliseconds(2));
    peers[0]->send(kOk);
    pass(milliseconds(2));
  }
  ASSERT_EQ(first.events, (Events{"head:200", "end"}));
  peers[0]->close();  // not known to the pool before a millisecond has passed
  ExchangeLog log;
  Exchange exchange(*pool, log);
  exchange.start(get("/again"));
  EXPECT_EQ(pool->counters().reused, 1u);
  pass(milliseconds(5));
  ASSERT_EQ(peers.size(), 2u);
  EXPECT_EQ(peers[1]->received, "GET /again HTTP/1.1\r\nHost: test\r\n\r\n");
  EXPECT_TRUE(log.events.empty());
  peers[1]->send(kOk);
  pass(milliseconds(5));
  EXPECT_EQ(log.events, (Events{"head:200", "end"}));
  EXPECT_TRUE(exchange.resent());
  EXPECT_FALSE(exchange.reused_connection());
  EXPECT_EQ(pool->counters().stale_retries, 1u);
}

TEST_F(PoolTest, SendsAgainOnceOnly) {
  make_pool();
  run(get());
  auto [log, exchange] = started(get());
  peer_closes(0);
  ASSERT_EQ(peers.size(), 2u);
  peer_closes(1);
  EXPECT_EQ(log.events, (Events{"error:disconnected:0"}));
  EXPECT_EQ(pool->counters().stale_retries, 1u);
}

TEST_F(PoolTest, DoesNotSendAgainWhatIsNotIdempotentUnlessToldTo) {
  make_pool();
  const auto body = std::make_shared<const std::string>("b");
  for (const bool told : {false, true}) {
    run(get());
    const std::size_t before = peers.size();
    auto [log, exchange] = started(
        post(1), body,
        {.resend = told ? ExchangeOptions::Resend::kAlways : ExchangeOptions::Resend::kByMethod});
    last_asked()->close();
    settle();
    if (told) {
      EXPECT_EQ(peers.size(), before + 1);
    } else {
      EXPECT_EQ(log.events, (Events{"error:disconnected:0"}));
      peers.clear();
    }
  }
}

TEST_F(PoolTest, DoesNotSendAgainOnceAByteOfTheResponseHasCome) {
  make_pool();
  run(get());
  auto [log, exchange] = started(get());
  peer_sends(0, "H");
  peer_closes(0);
  EXPECT_EQ(log.events, (Events{"error:disconnected:1"}));
  EXPECT_EQ(peers.size(), 1u);
}

TEST_F(PoolTest, DoesNotSendAgainAfterAFreshConnectionDied) {
  make_pool();
  auto [log, exchange] = started(get());
  peer_closes(0);
  EXPECT_EQ(log.events, (Events{"error:disconnected:0"}));
}

TEST_F(PoolTest, QueuesInOrderAtTheLimitAndRefusesBeyondTheQueue) {
  make_pool({.max_connections = 1, .max_waiting = 2});
  ExchangeLog log[4];
  std::deque<Exchange> exchanges;
  for (int i = 0; i < 4; ++i) {
    exchanges.emplace_back(*pool, log[i]).start(get("/" + std::to_string(i)));
  }
  EXPECT_EQ(pool->counters().waiting, 2u);
  EXPECT_TRUE(log[3].events.empty()) << "told inside the call";
  settle();
  EXPECT_EQ(log[3].events, (Events{"error:overloaded:0"}));
  EXPECT_EQ(pool->counters().limit_hits, 1u);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(peers[0]->received, "GET /" + std::to_string(i) + " HTTP/1.1\r\nHost: test\r\n\r\n");
    peers[0]->received.clear();
    peer_sends(0, kOk);
    EXPECT_EQ(log[i].events, (Events{"head:200", "end"}));
  }
  EXPECT_EQ(pool->counters().opened, 1u);
  EXPECT_EQ(pool->counters().queued, 2u);
}

TEST_F(PoolTest, AnExchangeThatWaitsCanBeCancelled) {
  make_pool({.max_connections = 1});
  ExchangeLog log[3];
  Exchange first(*pool, log[0]);
  std::optional<Exchange> second(std::in_place, *pool, log[1]);
  Exchange third(*pool, log[2]);
  first.start(get());
  second->start(get());
  third.start(get("/third"));
  settle();
  second.reset();
  EXPECT_EQ(pool->counters().waiting, 1u);
  EXPECT_EQ(pool->counters().cancelled, 1u);
  peers[0]->received.clear();
  peer_sends(0, kOk);
  EXPECT_EQ(peers[0]->received, "GET /third HTTP/1.1\r\nHost: test\r\n\r\n");
}

TEST_F(PoolTest, CancellingAConnectionGivesItsPlaceToTheNextInTheQueue) {
  make_pool({.max_connections = 1});
  ExchangeLog log[2];
  std::optional<Exchange> first(std::in_place, *pool, log[0]);
  Exchange second(*pool, log[1]);
  first->start(get());
  second.start(get());
  settle();
  first.reset();
  settle();
  ASSERT_EQ(peers.size(), 2u);
  EXPECT_TRUE(peers[0]->ended);
  peer_sends(1, kOk);
  EXPECT_EQ(log[1].events, (Events{"head:200", "end"}));
}

TEST_F(PoolTest, AHedgeNeitherWaitsNorTakesTheLastConnection) {
  make_pool({.max_connections = 2});
  ExchangeLog log[3];
  Exchange hedge_alone(*pool, log[0]);
  hedge_alone.start(get(), nullptr, {.hedge = true});
  settle();
  EXPECT_EQ(pool->counters().in_use, 1u);
  Exchange second_hedge(*pool, log[1]);
  second_hedge.start(get(), nullptr, {.hedge = true});
  settle();
  EXPECT_EQ(log[1].events, (Events{"error:overloaded:0"}));
  Exchange primary(*pool, log[2]);
  primary.start(get());
  settle();
  EXPECT_EQ(pool->counters().in_use, 2u);
  EXPECT_EQ(pool->counters().waiting, 0u);
}

TEST_F(PoolTest, AFreshConnectionIsOpenedBesideAnIdleOne) {
  make_pool({.max_connections = 1});
  run(get());
  auto [log, exchange] = started(get(), nullptr, {.fresh_connection = true});
  EXPECT_EQ(pool->counters().opened, 2u);
  EXPECT_EQ(pool->counters().idle, 0u) << "the idle one makes room at the limit";
  EXPECT_FALSE(exchange.reused_connection());
}

TEST_F(PoolTest, CancellingClosesAtOnceAndCounts) {
  make_pool();
  ExchangeLog log;
  {
    Exchange exchange(*pool, log);
    exchange.start(get());
    settle();
    peer_sends(0, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
  }
  settle();
  EXPECT_TRUE(peers[0]->ended);
  EXPECT_EQ(log.events, (Events{"head:200"}));
  EXPECT_EQ(pool->counters().cancelled, 1u);
  EXPECT_EQ(pool->counters().closed, 1u);
  EXPECT_EQ(pool->counters().in_use, 0u);
}

TEST_F(PoolTest, EveryEventMayDestroyTheExchange) {
  make_pool();
  for (const std::string_view at : {"head", "body", "end", "error"}) {
    ExchangeLog log;
    std::optional<Exchange> exchange(std::in_place, *pool, log);
    log.hook = [&](std::string_view event) {
      if (event == at) exchange.reset();
    };
    exchange->start(get());
    settle();
    RawPeer* const peer = last_asked();
    peer->received.clear();
    peer->send(at == "error" ? "nonsense\r\n\r\n" : kOk);
    settle();
    EXPECT_FALSE(exchange.has_value()) << at;
  }
  EXPECT_EQ(pool->counters().in_use, 0u);
}

// Goal: nothing is left behind, whatever an exchange was doing when it was given up.
TEST_F(PoolTest, TwoHundredCancelledExchangesLeaveNothingBehind) {
  make_pool({.max_connections = 8, .max_idle = 4});
  for (int round = 0; round < 200; ++round) {
    ExchangeLog log;
    std::deque<Exchange> others;
    Exchange exchange(*pool, log);
    exchange.start(get());
    if (round % 5 == 0) {
      for (int i = 0; i < 9; ++i) others.emplace_back(*pool, log).start(get());
    }
    if (round % 4 > 0) settle();
    RawPeer* const peer = last_asked();
    if (round % 4 > 1 && peer != nullptr) {
      peer->send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab");
      settle();
    }
    if (peer != nullptr) peer->received.clear();
  }
  settle();
  const PoolCounters& counters = pool->counters();
  EXPECT_EQ(counters.cancelled, 200u + 40u * 9u);
  EXPECT_EQ(counters.in_use + counters.connecting + counters.waiting + counters.idle, 0u);
  EXPECT_EQ(counters.opened, counters.closed);
  for (const auto& peer : peers) {
    EXPECT_TRUE(peer->ended);
    peer->close();
  }
  EXPECT_EQ(network.open_streams(), 0u);
}

TEST_F(PoolTest, FailsWhenNobodyListensOrTheConnectTakesTooLong) {
  make_pool({.connect_timeout = seconds(1)});
  faults.faults.refuse = true;
  ExchangeLog log[2];
  Exchange refused(*pool, log[0]);
  refused.start(get());
  settle();
  EXPECT_EQ(log[0].events, (Events{"error:disconnected:0"}));
  faults.faults = {.unanswered = true};
  Exchange unanswered(*pool, log[1]);
  unanswered.start(get());
  pass(seconds(1) - nanoseconds(1));
  EXPECT_TRUE(log[1].events.empty());
  pass(nanoseconds(1));
  EXPECT_EQ(log[1].events, (Events{"error:timed_out:0"}));
  EXPECT_EQ(pool->counters().connect_errors, 2u);
  EXPECT_EQ(pool->counters().connecting, 0u);
}

TEST_F(PoolTest, AMalformedResponseIsInvalid) {
  make_pool();
  auto [log, exchange] = started(get());
  peer_sends(0, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n");
  EXPECT_EQ(log.events, (Events{"error:invalid:1"}));
  EXPECT_EQ(pool->counters().idle, 0u);
}

TEST_F(PoolTest, ATruncatedResponseIsDisconnected) {
  make_pool();
  auto [log, exchange] = started(get());
  peer_sends(0, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
  peer_closes(0);
  EXPECT_EQ(log.events, (Events{"head:200", "error:disconnected:1"}));
  EXPECT_EQ(log.body, "half");
}

TEST_F(PoolTest, AResponseToHeadHasNoBody) {
  make_pool();
  EXPECT_EQ(run(get("/", "HEAD"), "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n"),
            (Events{"head:200", "end"}));
  EXPECT_EQ(pool->counters().idle, 1u);
}

TEST_F(PoolTest, APausedResponseHoldsUpTheServer) {
  make_pool({.read_buffer_bytes = 1024});
  ExchangeLog log;
  Exchange exchange(*pool, log);
  log.hook = [&](std::string_view event) {
    if (event == "head") exchange.pause();
  };
  exchange.start(get());
  settle();
  const std::string body(1'000'000, 'b');
  peer_sends(0, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + body);
  EXPECT_LE(log.body.size(), 1024u);
  pass(seconds(10));
  EXPECT_LE(log.body.size(), 1024u);
  log.hook = nullptr;
  const std::size_t before = log.body.size();
  exchange.resume();
  EXPECT_EQ(log.body.size(), before) << "told inside the call";
  settle();
  EXPECT_EQ(log.body, body);
  EXPECT_EQ(log.events, (Events{"head:200", "end"}));
}

TEST_F(PoolTest, StreamsABodyAsItComesAndHoldsUpTheWriter) {
  make_pool();
  ExchangeLog log;
  Exchange exchange(*pool, log);
  http::Request head = get("/up", "POST");
  head.body = http::BodyKind::kChunked;
  exchange.start_streaming(head);
  int written = 0;
  exchange.write(std::string_view("hello"),
                 [&](Result<void> result) { written += result.has_value(); });
  EXPECT_GT(exchange.buffered(), 0u);
  settle();
  EXPECT_EQ(written, 1);
  EXPECT_EQ(exchange.buffered(), 0u);
  EXPECT_EQ(peers[0]->received,
            "POST /up HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
  exchange.write(std::string_view(" world"));
  exchange.finish_body();
  settle();
  EXPECT_TRUE(peers[0]->received.ends_with("6\r\n world\r\n0\r\n\r\n"));
  peer_sends(0, kOk);
  EXPECT_EQ(log.events, (Events{"head:200", "end"}));
  EXPECT_EQ(pool->counters().idle, 1u);
}

TEST_F(PoolTest, AResponseBeforeTheBodysEndClosesTheConnection) {
  make_pool();
  ExchangeLog log;
  Exchange exchange(*pool, log);
  exchange.start_streaming(post(100));
  exchange.write(std::string_view("begin"));
  settle();
  peer_sends(0, "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(log.events, (Events{"head:413", "end"}));
  exchange.write(std::string_view("ignored"));
  settle();
  EXPECT_TRUE(peers[0]->ended);
  EXPECT_EQ(pool->counters().idle, 0u);
}

TEST_F(PoolTest, AWriteThatFailsEndsTheExchange) {
  make_pool();
  faults.faults.to_server.write_error_after = 10;
  auto [log, exchange] = started(get());
  EXPECT_TRUE(log.events.empty()) << "an answer may be under way";
  pass(milliseconds(50));
  EXPECT_EQ(log.events, (Events{"error:disconnected:0"}));
}

TEST_F(PoolTest, AnyResponseArrivesWholeInPiecesOfOneByte) {
  make_pool();
  faults.faults.to_client.slice = 1;
  faults.faults.to_server.slice = 1;
  for (int round = 0; round < 2; ++round) {
    auto [log, exchange] = started(get());
    ASSERT_EQ(peers.size(), 1u);
    EXPECT_EQ(peers[0]->received, "GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    peers[0]->received.clear();
    peer_sends(0,
               "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
               "3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\nT: r\r\n\r\n");
    EXPECT_EQ(log.events, (Events{"head:200", "end"}));
    EXPECT_EQ(log.body, "abcdefg");
  }
  EXPECT_EQ(pool->counters().reused, 1u);
}

}  // namespace
}  // namespace tailward::net
