#include "sockets/render.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "report/terminal.h"
#include "report/text.h"
#include "sockets/testing.h"

namespace tailward::sockets {
namespace {

std::string text_of(const Snapshot& snapshot, const View& view = {}) {
  return report::to_terminal(to_report(snapshot, report::RunInfo{}, view));
}

// Wherever the lines are broken.
bool has(std::string text, const std::string& part) {
  for (char& c : text) c = c == '\n' ? ' ' : c;
  return text.find(part) != std::string::npos;
}

int widest_line(const std::string& text) {
  int widest = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    widest = std::max(widest, report::display_width(line));
  }
  return widest;
}

TEST(SocketsRenderTest, AFewConnectionsStandOneByOne) {
  const std::string text = text_of(snapshot_of(service(3)));
  EXPECT_TRUE(has(text, "app (pid 100, Go): 1 listener, 3 connections (3 in, 0 out; ESTABLISHED)"))
      << text;
  EXPECT_TRUE(has(text, "Nothing to remark.")) << text;
  EXPECT_TRUE(has(text, "10.0.0.1:8080")) << text;
  EXPECT_TRUE(has(text, "from 10.0.0.2:40010 ")) << text;
  EXPECT_TRUE(has(text, "nodelay keepalive=15s")) << text;
}

TEST(SocketsRenderTest, ManyConnectionsAreASummaryUnlessAllAreAskedFor) {
  const Snapshot snapshot = snapshot_of(service(10'000));
  const std::string text = text_of(snapshot);
  EXPECT_TRUE(has(text, "from 10.0.0.2 ")) << text;
  EXPECT_TRUE(has(text, "2,000")) << text;
  EXPECT_TRUE(has(text, "15 of 10,000: --all shows every one")) << text;
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 60);
  const std::string all = text_of(snapshot, {.all = true});
  EXPECT_GT(std::count(all.begin(), all.end(), '\n'), 10'000);
}

TEST(SocketsRenderTest, OfTwoServicesTheOneThatWasCalledIsNamed) {
  probe::SocketList list = service(1);
  list.sockets.push_back(listener_facts(9090, 2));
  EXPECT_TRUE(has(text_of(snapshot_of(std::move(list))), "from 10.0.0.2:40010 on :8080"));
}

TEST(SocketsRenderTest, ManyPeersLeaveARest) {
  probe::SocketList list = service(0);
  for (int i = 0; i < 100; ++i) {
    list.sockets.push_back(connection_facts(10 + i, static_cast<std::uint8_t>(i)));
  }
  const std::string text = text_of(snapshot_of(std::move(list)), {.top = 20});
  EXPECT_TRUE(has(text, "80 peers more with 80 connections: --top N shows more")) << text;
}

TEST(SocketsRenderTest, FitsInto80ColumnsWithLongAddressesAndManyOptions) {
  probe::SocketList list = service(3);
  for (tcp::SocketFacts& facts : list.sockets) {
    facts.remote.address.bytes = {0x20, 0x01, 0x0d, 0xb8, 0x12, 0x34, 0x56, 0x78,
                                  0x9a, 0xbc, 0xde, 0xf0, 0x12, 0x34, 0x56, 0x78};
    facts.options.cork = true;
    facts.options.linger_s = 0;
    facts.options.sndbuf_locked = facts.options.rcvbuf_locked = true;
    facts.options.user_timeout_ms = 30'000;
    facts.options.reuseport = true;
  }
  list.sockets[2].state = tcp::TcpState::kCloseWait;
  EXPECT_LE(widest_line(text_of(snapshot_of(list))), 80);
  EXPECT_LE(widest_line(text_of(snapshot_of(service(100)))), 80);
}

TEST(SocketsRenderTest, ASharedSocketStandsOnce) {
  probe::SocketList list = service(1);
  list.sockets.push_back(list.sockets[0]);
  list.sockets.back().pid = 101;
  list.pids = {100, 101};
  const Snapshot snapshot = judge(std::move(list), {{100, "nginx", tcp::Runtime::kNginx},
                                                    {101, "nginx", tcp::Runtime::kNginx}});
  const std::string text = text_of(snapshot);
  EXPECT_TRUE(has(text, "1 listener, 1 connection ")) << text;
  EXPECT_TRUE(has(text, "1 more descriptor")) << text;
  EXPECT_TRUE(has(text, "100/3")) << text;
}

TEST(SocketsRenderTest, ARemarkNamesItsSocketsAndTheSentenceIsOfTheWorst) {
  probe::SocketList list = service(4);
  list.sockets[1].options.linger_s = 5;
  list.sockets[3].options.linger_s = 0;
  list.sockets[4].state = tcp::TcpState::kListen;
  list.sockets[4].recv_queue = list.sockets[4].send_queue = 5;
  const std::string text = text_of(snapshot_of(std::move(list)));
  EXPECT_TRUE(has(text, "not-default (fd 10, 12): 2 sockets")) << text;
  EXPECT_TRUE(has(text, "listen-queue-full (fd 13)")) << text;
  EXPECT_LT(text.find("listen-queue-full (fd"), text.find("not-default (fd"));
}

TEST(SocketsRenderTest, SaysWhatCouldNotBeRead) {
  probe::SocketList list = service(1);
  list.sockets[1].options = {};
  list.denied = 1;
  list.why_denied = Error{ErrorKind::kDenied, "Yama forbids it", "run as root"};
  list.vanished = 2;
  list.unix_sockets = 3;
  const std::string text = text_of(snapshot_of(std::move(list)));
  EXPECT_TRUE(has(text, "not readable")) << text;
  EXPECT_TRUE(has(text, "the options of 1 socket could not be read: Yama forbids it. run as root"))
      << text;
  EXPECT_TRUE(has(text, "2 sockets closed while they were looked at")) << text;
  EXPECT_TRUE(has(text, "3 Unix")) << text;
}

TEST(SocketsRenderTest, DirectionIsToldByListenersOrElseByPorts) {
  const Snapshot snapshot = snapshot_of(service(0));
  const Directions directions(snapshot);
  tcp::SocketFacts facts = connection_facts(9, 2);
  EXPECT_TRUE(directions.inbound(facts));
  facts.local.port = 45'000;
  facts.remote.port = 5432;
  EXPECT_FALSE(directions.inbound(facts));
  facts.local.port = 5432;  // a forked server has no listener of its own
  facts.remote.port = 45'000;
  EXPECT_TRUE(directions.inbound(facts));
}

TEST(SocketsRenderTest, ActivityIsPerSecondAndTheBusiestComesFirst) {
  const Snapshot earlier = snapshot_of(service(3));
  probe::SocketList list = service(3);
  list.sockets[2].tcp.bytes_sent = 2'048 + 4'096;
  list.sockets[3].tcp.bytes_sent = 2'048 + 20'480;
  list.sockets[3].tcp.total_retrans = 4;
  Snapshot now = snapshot_of(std::move(list));
  now.sockets[3].facts.tcp.total_retrans = 4;
  Snapshot before = earlier;
  before.sockets[3].facts.tcp.total_retrans = 0;
  compare(now, before, std::chrono::seconds(2));
  std::string text;
  for (const report::Block& block : to_activity(now, {})) text += report::to_terminal(block);
  EXPECT_TRUE(has(text, "2 active. 12 KiB/s out, 0 B/s in, 2.0 segments/s sent again")) << text;
  EXPECT_LT(text.find("10.0.0.4:40012"), text.find("10.0.0.3:40011")) << text;
  EXPECT_LT(text.find("10.0.0.3:40011"), text.find("10.0.0.2:40010")) << text;
  EXPECT_LE(widest_line(text), 80);
}

TEST(SnapshotTest, ASocketWithTheDescriptorOfAnotherOneHasNoRates) {
  Snapshot earlier = snapshot_of(service(1));
  Snapshot now = snapshot_of(service(1));
  earlier.sockets[1].facts.inode = 77;
  compare(now, earlier, std::chrono::seconds(1));
  EXPECT_TRUE(now.sockets[0].rates);
  EXPECT_FALSE(now.sockets[1].rates);
}

TEST(SnapshotTest, CountersThatRanBackwardsGiveNoRate) {
  Snapshot earlier = snapshot_of(service(1));
  Snapshot now = snapshot_of(service(1));
  earlier.sockets[1].facts.tcp.bytes_sent = 1'000'000;
  compare(now, earlier, std::chrono::seconds(1));
  ASSERT_TRUE(now.sockets[1].rates);
  EXPECT_EQ(now.sockets[1].rates->sent_bytes, 0);
}

}  // namespace
}  // namespace tailward::sockets
