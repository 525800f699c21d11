#include "io/memory_transport.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tailward::io {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using Log = std::vector<std::string>;

// What both transports have in common is tested in net/transport_test.cc; here are time and faults.
struct MemoryTransportTest : testing::Test {
  MemoryTransportTest() {
    listener = std::move(*network.listen(
        {"server", 80}, [this](std::unique_ptr<Stream> stream) { server = std::move(stream); }));
  }

  void settle() { timers.advance_to(timers.now()); }
  void pass(Duration time) { timers.advance_to(timers.now() + time); }

  void join() {
    connecting = network.connect({"server", 80}, [this](Result<std::unique_ptr<Stream>> stream) {
      log.push_back(stream ? "connected" : "failed:" + std::string(to_string(stream.error().kind)));
      if (stream) client = std::move(*stream);
    });
  }
  // Connected at once, with `path` on the way to the server.
  void join_with(const PathFaults& path) {
    faults.faults.to_server = path;
    join();
    settle();
    ASSERT_TRUE(client && server);
    log.clear();
    listen_to(*server, "server");
  }

  // Logs all that `stream` reads, with the time in ms since the start.
  void listen_to(Stream& stream, const std::string& name) {
    buffers.push_back(std::make_unique<std::string>(4096, '\0'));
    std::string& buffer = *buffers.back();
    stream.read(buffer, [this, &stream, &buffer, name](Result<std::size_t> got) {
      if (!got) return log.push_back(name + " error");
      if (*got == 0) return log.push_back(name + " end");
      log.push_back(name + " " + buffer.substr(0, *got) + at());
      listen_to(stream, name);
    });
  }
  void write(Stream& stream, std::string_view text) {
    stream.write(text, [this](Result<void> done) { log.push_back(done ? "written" : "refused"); });
  }
  std::string at() const {
    const auto passed = std::chrono::duration_cast<milliseconds>(timers.now() - start).count();
    return passed == 0 ? "" : " at " + std::to_string(passed);
  }

  Timers timers;
  TimePoint start = timers.now();
  FixedFaults faults;
  MemoryTransport network{timers, &faults, {.capacity = 1000}};
  std::unique_ptr<Listener> listener;
  std::unique_ptr<Connecting> connecting;
  std::vector<std::unique_ptr<std::string>> buffers;
  std::unique_ptr<Stream> client;
  std::unique_ptr<Stream> server;
  Log log;
};

TEST_F(MemoryTransportTest, ConnectsAfterItsDelayAndNotBefore) {
  faults.faults.connect_delay = milliseconds(5);
  join();
  pass(milliseconds(5) - nanoseconds(1));
  EXPECT_EQ(log, Log{});
  pass(nanoseconds(1));
  EXPECT_EQ(log, (Log{"connected"}));
  EXPECT_EQ(network.open_streams(), 2u);
}

TEST_F(MemoryTransportTest, RefusesOrLeavesUnanswered) {
  faults.faults.refuse = true;
  join();
  settle();
  EXPECT_EQ(log, (Log{"failed:disconnected"}));
  faults.faults = {.unanswered = true};
  join();
  pass(std::chrono::hours(1));
  EXPECT_EQ(log.size(), 1u);
  EXPECT_EQ(network.connects(), 2u);
}

TEST_F(MemoryTransportTest, DeliversEachPieceAfterTheDelayInOrder) {
  join_with({.delay = milliseconds(10)});
  write(*client, "a");
  pass(milliseconds(4));
  write(*client, "b");
  settle();
  EXPECT_EQ(log, (Log{"written", "written"}));
  pass(milliseconds(20));
  EXPECT_EQ(log, (Log{"written", "written", "server a at 10", "server b at 14"}));
}

TEST_F(MemoryTransportTest, AFullPipeHoldsUpTheWriterUntilTheReaderReads) {
  join();
  settle();
  log.clear();
  const std::string text(1500, 'x');
  write(*client, text);
  pass(milliseconds(1));
  EXPECT_EQ(log, Log{});
  listen_to(*server, "server");
  pass(milliseconds(1));
  EXPECT_EQ(log.size(), 3u);
  EXPECT_EQ(log.back(), "written");
}

TEST_F(MemoryTransportTest, StalledBytesVanishAndSoDoesTheEnd) {
  join_with({.stall_after = 3});
  write(*client, "abcdef");
  settle();
  client.reset();
  pass(std::chrono::hours(1));
  EXPECT_EQ(log, (Log{"server abc", "written"}));
}

TEST_F(MemoryTransportTest, AResetReachesBothEndsAfterTheBytesBeforeIt) {
  join_with({.reset_after = 3});
  listen_to(*client, "client");
  write(*client, "abcdef");
  settle();
  EXPECT_EQ(log, (Log{"refused", "server abc", "client error", "server error"}));
}

TEST_F(MemoryTransportTest, AHalfCloseEndsTheReaderAndDoesNotTellTheWriter) {
  join_with({.finish_after = 3});
  listen_to(*client, "client");
  write(*client, "abcdef");
  settle();
  write(*server, "still here");
  settle();
  EXPECT_EQ(log, (Log{"server abc", "written", "server end", "client still here", "written"}));
}

TEST_F(MemoryTransportTest, AWriteErrorIsTheWritersAlone) {
  join_with({.write_error_after = 3});
  write(*client, "abc");
  settle();
  write(*client, "d");
  settle();
  EXPECT_EQ(log, (Log{"server abc", "written", "refused"}));
}

TEST_F(MemoryTransportTest, SlicesWhatIsRead) {
  join_with({.slice = 2});
  write(*client, "abcde");
  settle();
  EXPECT_EQ(log, (Log{"server ab", "written", "server cd", "server e"}));
}

TEST_F(MemoryTransportTest, AFaultAtNoughtHitsTheFirstByte) {
  for (const PathFaults& path :
       {PathFaults{.stall_after = 0}, PathFaults{.reset_after = 0}, PathFaults{.finish_after = 0},
        PathFaults{.write_error_after = 0}}) {
    join_with(path);
    write(*client, "a");
    settle();
    for (const std::string& line : log) EXPECT_NE(line, "server a");
    EXPECT_FALSE(log.empty());
    client.reset();
    server.reset();
  }
}

TEST_F(MemoryTransportTest, ClosingDuringADelayArrivesAfterTheBytes) {
  join_with({.delay = milliseconds(10)});
  write(*client, "last");
  settle();
  client.reset();
  pass(milliseconds(10));
  EXPECT_EQ(log, (Log{"written", "server last at 10", "server end"}));
}

TEST_F(MemoryTransportTest, ListenersHaveTheirPortsToThemselvesAndGiveThemBack) {
  auto any = network.listen({"", 0}, [](std::unique_ptr<Stream>) {});
  ASSERT_TRUE(any);
  const HostPort local = (*any)->local();
  EXPECT_EQ(local.host, "127.0.0.1");
  EXPECT_NE(local.port, 0);
  EXPECT_FALSE(network.listen({"localhost", local.port}, [](std::unique_ptr<Stream>) {}));
  any->reset();
  EXPECT_TRUE(network.listen(local, [](std::unique_ptr<Stream>) {}));
}

TEST(RandomFaultsTest, TheSameSeedGivesTheSameFaults) {
  const RandomFaults::Odds odds{.refuse = 0.5,
                                .stall = 0.5,
                                .reset = 0.5,
                                .finish = 0.5,
                                .write_error = 0.5,
                                .slice = 0.5,
                                .delay_max = milliseconds(10)};
  RandomFaults first(Rng(42), odds);
  RandomFaults second(Rng(42), odds);
  int refused = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const ConnectionFaults a = first.on_connect({"h", 1}, i);
    const ConnectionFaults b = second.on_connect({"h", 1}, i);
    ASSERT_EQ(a.refuse, b.refuse);
    ASSERT_EQ(a.connect_delay, b.connect_delay);
    ASSERT_EQ(a.to_server.reset_after, b.to_server.reset_after);
    ASSERT_EQ(a.to_client.slice, b.to_client.slice);
    ASSERT_GE(a.to_client.slice, 1u);
    refused += a.refuse ? 1 : 0;
  }
  EXPECT_NEAR(refused, 500, 100);
}

}  // namespace
}  // namespace tailward::io
