// One body of tests for everything that calls itself a transport: memory and sockets.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/memory_transport.h"
#include "net/loop.h"
#include "net/socket_transport.h"

namespace tailward::net {
namespace {

using std::chrono::milliseconds;
using StreamPtr = std::unique_ptr<io::Stream>;

struct MemoryWorld {
  io::Timers timers;
  io::MemoryTransport transport{timers};

  bool run_until(const std::function<bool()>& done, Duration at_most = std::chrono::seconds(5)) {
    const TimePoint end = timers.now() + at_most;
    while (!done()) {
      if (timers.next_event() > end) return false;
      timers.advance_to(timers.next_event());
    }
    return true;
  }
  std::size_t open_streams() const { return transport.open_streams(); }
};

struct SocketWorld {
  Loop loop;
  SocketTransport transport{loop};

  bool run_until(const std::function<bool()>& done, Duration at_most = std::chrono::seconds(5)) {
    return loop.run_until(done, at_most);
  }
  std::size_t open_streams() const { return transport.counters().open_streams; }
};

template <class World>
class TransportTest : public testing::Test {
 protected:
  void listen() {
    Result<std::unique_ptr<io::Listener>> made = world.transport.listen(
        {"127.0.0.1", 0}, [this](StreamPtr stream) { accepted.push_back(std::move(stream)); });
    ASSERT_TRUE(made) << made.error().message;
    listener = std::move(*made);
  }

  // A connected pair.
  void join() {
    if (listener == nullptr) listen();
    const std::size_t before = accepted.size();
    std::unique_ptr<io::Connecting> connecting =
        world.transport.connect(listener->local(), [this](Result<StreamPtr> stream) {
          ASSERT_TRUE(stream) << stream.error().message;
          client = std::move(*stream);
        });
    ASSERT_TRUE(world.run_until([&] { return client != nullptr && accepted.size() > before; }));
    server = std::move(accepted.back());
    accepted.pop_back();
  }

  std::string read_some(io::Stream& stream, std::size_t most = 4096) {
    std::string buffer(most, '\0');
    std::optional<Result<std::size_t>> got;
    stream.read(buffer, [&](Result<std::size_t> result) { got = std::move(result); });
    EXPECT_FALSE(got.has_value()) << "called back inside the call";
    EXPECT_TRUE(world.run_until([&] { return got.has_value(); }));
    if (!got || !*got) return "error";
    return buffer.substr(0, **got);
  }

  bool write(io::Stream& stream, std::string_view first, std::string_view second = {}) {
    std::optional<Result<void>> done;
    stream.write(first, second, [&](Result<void> result) { done = std::move(result); });
    EXPECT_FALSE(done.has_value()) << "called back inside the call";
    EXPECT_TRUE(world.run_until([&] { return done.has_value(); }));
    return done && *done;
  }

  World world;
  std::unique_ptr<io::Listener> listener;
  std::vector<StreamPtr> accepted;
  StreamPtr client;
  StreamPtr server;
};

using Worlds = testing::Types<MemoryWorld, SocketWorld>;
TYPED_TEST_SUITE(TransportTest, Worlds);

TYPED_TEST(TransportTest, CarriesBytesBothWays) {
  this->join();
  EXPECT_TRUE(this->write(*this->client, "hello ", "world"));
  std::string got;
  while (got.size() < 11) got += this->read_some(*this->server);
  EXPECT_EQ(got, "hello world");
  EXPECT_TRUE(this->write(*this->server, "back"));
  EXPECT_EQ(this->read_some(*this->client), "back");
}

TYPED_TEST(TransportTest, TellsBothPeersAddresses) {
  this->join();
  EXPECT_EQ(this->client->peer(), this->listener->local());
  EXPECT_EQ(this->server->peer().host, "127.0.0.1");
  EXPECT_NE(this->server->peer().port, 0);
}

TYPED_TEST(TransportTest, ReadsNoMoreThanAskedAndLosesNothing) {
  this->join();
  EXPECT_TRUE(this->write(*this->client, "abcdef"));
  EXPECT_EQ(this->read_some(*this->server, 4), "abcd");
  EXPECT_EQ(this->read_some(*this->server, 4), "ef");
}

TYPED_TEST(TransportTest, FinishingToWriteEndsOneDirectionOnly) {
  this->join();
  EXPECT_TRUE(this->write(*this->client, "last"));
  this->client->finish_writing();
  EXPECT_EQ(this->read_some(*this->server), "last");
  EXPECT_EQ(this->read_some(*this->server), "");
  EXPECT_TRUE(this->write(*this->server, "answer"));
  EXPECT_EQ(this->read_some(*this->client), "answer");
}

TYPED_TEST(TransportTest, KeepsTheOrderOfALargeTransferAndHoldsUpTheWriter) {
  this->join();
  std::string sent(16 * 1024 * 1024, '\0');
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<char>(i * 2654435761u >> 13);
  const std::string_view all = sent;
  bool written = false;
  this->client->write(all.substr(0, 5'345'678), all.substr(5'345'678),
                      [&](Result<void> result) { written = result.has_value(); });
  EXPECT_FALSE(this->world.run_until([&] { return written; }, milliseconds(30)));
  std::string buffer(64 * 1024, '\0');
  std::size_t at = 0;
  bool same = true;
  std::function<void()> read = [&] {
    this->server->read(buffer, [&](Result<std::size_t> got) {
      ASSERT_TRUE(got);
      same = same && all.substr(at, *got) == std::string_view(buffer).substr(0, *got);
      at += *got;
      if (at < sent.size()) read();
    });
  };
  read();
  EXPECT_TRUE(this->world.run_until([&] { return written && at == sent.size(); },
                                    std::chrono::seconds(20)));
  EXPECT_TRUE(same);
}

TYPED_TEST(TransportTest, AConnectThatNobodyListensForIsDisconnected) {
  this->listen();
  const io::HostPort gone = this->listener->local();
  this->listener.reset();
  std::optional<Result<StreamPtr>> got;
  const auto connecting = this->world.transport.connect(
      gone, [&](Result<StreamPtr> stream) { got = std::move(stream); });
  EXPECT_FALSE(got.has_value());
  ASSERT_TRUE(this->world.run_until([&] { return got.has_value(); }));
  ASSERT_FALSE(*got);
  EXPECT_EQ(got->error().kind, ErrorKind::kDisconnected);
}

TYPED_TEST(TransportTest, AConnectThatIsGivenUpNeverCallsBack) {
  this->listen();
  bool called = false;
  {
    const auto connecting =
        this->world.transport.connect(this->listener->local(), [&](auto) { called = true; });
  }
  this->world.run_until([&] { return called; }, milliseconds(20));
  EXPECT_FALSE(called);
  this->accepted.clear();
  EXPECT_EQ(this->world.open_streams(), 0u);
}

TYPED_TEST(TransportTest, ADestroyedStreamNeverCallsBack) {
  this->join();
  std::string buffer(16, '\0');
  std::string large(16 * 1024 * 1024, 'x');
  const auto token = std::make_shared<int>(0);
  bool called = false;
  this->client->read(buffer, [&called, token](auto) { called = true; });
  this->client->write(large, [&called, token](auto) { called = true; });
  this->server->write(std::string_view("too late"), [](Result<void>) {});
  this->client.reset();
  EXPECT_EQ(token.use_count(), 1) << "the callbacks are gone, and what they own";
  this->world.run_until([] { return false; }, milliseconds(20));
  EXPECT_FALSE(called);
}

TYPED_TEST(TransportTest, ACallbackMayDestroyItsStream) {
  this->join();
  std::string buffer(16, '\0');
  bool called = false;
  this->server->read(buffer, [&](Result<std::size_t> got) {
    EXPECT_TRUE(got);
    this->server.reset();
    called = true;
  });
  this->client->write(std::string_view("x"), [&](Result<void>) { this->client.reset(); });
  EXPECT_TRUE(this->world.run_until([&] { return called && this->client == nullptr; }));
  EXPECT_EQ(this->world.open_streams(), 0u);
}

TYPED_TEST(TransportTest, AReaderLearnsThatItsPeerIsGone) {
  this->join();
  EXPECT_TRUE(this->write(*this->client, "bye"));
  this->client.reset();
  EXPECT_EQ(this->read_some(*this->server), "bye");
  EXPECT_EQ(this->read_some(*this->server), "");
}

TYPED_TEST(TransportTest, APeerThatLeavesBytesUnreadResets) {
  this->join();
  EXPECT_TRUE(this->write(*this->client, "unread"));
  this->world.run_until([] { return false; }, milliseconds(5));
  std::string buffer(16, '\0');
  std::optional<Result<std::size_t>> got;
  this->client->read(buffer, [&](Result<std::size_t> result) { got = std::move(result); });
  this->server.reset();
  ASSERT_TRUE(this->world.run_until([&] { return got.has_value(); }));
  ASSERT_FALSE(*got);
  EXPECT_EQ(got->error().kind, ErrorKind::kDisconnected);
}

TYPED_TEST(TransportTest, WritingToAPeerThatIsGoneFailsInTheEnd) {
  this->join();
  this->server.reset();
  bool failed = false;
  for (int i = 0; i < 10 && !failed; ++i) {
    failed = !this->write(*this->client, "anyone there?");
    this->world.run_until([] { return false; }, milliseconds(2));
  }
  EXPECT_TRUE(failed);
}

TYPED_TEST(TransportTest, APortInUseIsInvalidWithAHint) {
  this->listen();
  const auto second = this->world.transport.listen(this->listener->local(), [](StreamPtr) {});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind, ErrorKind::kInvalid);
  EXPECT_FALSE(second.error().hint.empty());
}

TYPED_TEST(TransportTest, AcceptsAHundredConnectionsAtOnce) {
  this->listen();
  std::vector<std::unique_ptr<io::Connecting>> connecting;
  std::vector<StreamPtr> clients;
  for (int i = 0; i < 100; ++i) {
    connecting.push_back(
        this->world.transport.connect(this->listener->local(), [&](Result<StreamPtr> stream) {
          ASSERT_TRUE(stream);
          clients.push_back(std::move(*stream));
        }));
  }
  EXPECT_TRUE(
      this->world.run_until([&] { return clients.size() == 100 && this->accepted.size() == 100; }));
  clients.clear();
  this->accepted.clear();
  EXPECT_EQ(this->world.open_streams(), 0u);
}

TYPED_TEST(TransportTest, TheAcceptCallbackMayDestroyItsListener) {
  std::unique_ptr<io::Listener> own;
  bool called = false;
  auto made = this->world.transport.listen({"", 0}, [&](StreamPtr) {
    own.reset();
    called = true;
  });
  ASSERT_TRUE(made);
  own = std::move(*made);
  const auto connecting = this->world.transport.connect(own->local(), [](Result<StreamPtr>) {});
  EXPECT_TRUE(this->world.run_until([&] { return called; }));
}

TEST(SocketTransportTest, ReachesIpv6AndNamesWithoutHoldingUpTheLoop) {
  SocketWorld world;
  std::vector<StreamPtr> accepted;
  auto listener = world.transport.listen(
      {"::1", 0}, [&](StreamPtr stream) { accepted.push_back(std::move(stream)); });
  if (!listener) GTEST_SKIP() << "no IPv6 here: " << listener.error().message;
  StreamPtr client;
  auto connecting = world.transport.connect({"localhost", (*listener)->local().port},
                                            [&](Result<StreamPtr> stream) {
                                              ASSERT_TRUE(stream) << stream.error().message;
                                              client = std::move(*stream);
                                            });
  EXPECT_TRUE(world.run_until([&] { return client != nullptr && !accepted.empty(); }));
  EXPECT_EQ(accepted.front()->peer().host, "::1");
}

TEST(SocketTransportTest, ANameThatDoesNotResolveIsInvalid) {
  SocketWorld world;
  std::optional<Result<StreamPtr>> got;
  auto connecting = world.transport.connect(
      {"no-such-host.invalid", 80}, [&](Result<StreamPtr> stream) { got = std::move(stream); });
  ASSERT_TRUE(world.run_until([&] { return got.has_value(); }, std::chrono::seconds(60)));
  ASSERT_FALSE(*got);
  EXPECT_EQ(got->error().kind, ErrorKind::kInvalid);
  EXPECT_EQ(world.transport.counters().connect_errors, 1u);
}

}  // namespace
}  // namespace tailward::net
