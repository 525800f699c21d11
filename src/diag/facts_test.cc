// What sockets, listeners and counters say by themselves, and the names that scripts rely on.

#include "diag/facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "diag/testing.h"

namespace tailward::diag::testing {
namespace {

using Listener = NetworkEvidence::ListenerWatch;

tcp::SocketFacts socket_of_server() {
  tcp::SocketFacts socket;
  socket.fd = 7;
  socket.pid = 42;
  socket.inode = 1;
  socket.state = tcp::TcpState::kEstablished;
  socket.local = address(2, 80);
  socket.remote = address(1, 40'000);
  return socket;
}

TEST(FindingTest, CausesHaveTheNamesOfTheContract) {
  const std::pair<Cause, std::string_view> kNames[] = {
      {Cause::kNone, "none"},
      {Cause::kNagleDelayedAck, "nagle-delayed-ack"},
      {Cause::kSmallWrites, "small-writes"},
      {Cause::kCorked, "corked"},
      {Cause::kSmallSendBuffer, "small-send-buffer"},
      {Cause::kSmallReceiveWindow, "small-receive-window"},
      {Cause::kPacketLoss, "packet-loss"},
      {Cause::kSynLoss, "syn-loss"},
      {Cause::kListenOverflow, "listen-overflow"},
      {Cause::kSlowAccept, "slow-accept"},
      {Cause::kSlowReader, "slow-reader"},
      {Cause::kWireLatency, "wire-latency"},
      {Cause::kConnectionRefused, "connection-refused"}};
  for (const auto& [cause, name] : kNames) EXPECT_EQ(to_string(cause), name);
}

TEST(FactsTest, NoEvidenceIsNoFinding) {
  const auto diagnosis = diagnose_network({});
  EXPECT_TRUE(diagnosis.findings.empty());
  EXPECT_FALSE(diagnosis.sentence.empty());
}

TEST(FactsTest, AFullListenerAndTheHostsCounterAreAnOverflow) {
  const std::array<Listener, 1> listeners{Listener{.local = address(2, 80),
                                                   .queue_max = 5,
                                                   .backlog = 4,
                                                   .looks = 100,
                                                   .looks_waiting = 90,
                                                   .looks_full = 80}};
  const auto diagnosis = diagnose_network(
      {.listeners = listeners, .counters = tcp::HostCounters{.listen_overflows = 3}});
  ASSERT_EQ(names(diagnosis), "listen-overflow");
  EXPECT_EQ(diagnosis.findings[0].certainty, Certainty::kProven);
}

TEST(FactsTest, ConnectionsThatWaitAreSlowAccept) {
  const std::array<Listener, 1> listeners{Listener{
      .local = address(2, 80), .queue_max = 9, .backlog = 128, .looks = 100, .looks_waiting = 60}};
  const auto diagnosis = diagnose_network({.listeners = listeners});
  ASSERT_EQ(names(diagnosis), "slow-accept");
  EXPECT_EQ(diagnosis.findings[0].certainty, Certainty::kProven);
}

TEST(FactsTest, AListenerThatIsEmptyWheneverOneLooksIsNone) {
  const std::array<Listener, 1> listeners{Listener{
      .local = address(2, 80), .queue_max = 1, .backlog = 128, .looks = 100, .looks_waiting = 2}};
  EXPECT_EQ(names(diagnose_network({.listeners = listeners})), "");
}

TEST(FactsTest, APinnedBufferThatLimitsIsProvenByTheSocketAndMeasuredAsADifference) {
  tcp::SocketFacts now = socket_of_server(), before = now;
  now.options.sndbuf_locked = true;
  now.options.sndbuf = 16'384;
  before.tcp.busy_us = 9'000'000;
  before.tcp.sndbuf_limited_us = 100'000;
  now.tcp.busy_us = 10'000'000;
  now.tcp.sndbuf_limited_us = 900'000;
  const std::array<tcp::SocketFacts, 1> sockets{now}, earlier{before};
  const auto diagnosis = diagnose_network({.sockets = sockets, .earlier = earlier});
  ASSERT_EQ(names(diagnosis), "small-send-buffer");
  EXPECT_EQ(diagnosis.findings[0].cost, 800ms);
  // Over its whole life the same socket was hardly limited.
  EXPECT_EQ(names(diagnose_network({.sockets = sockets})), "");
}

TEST(FactsTest, ACorkThatIsSetIsProof) {
  Capture capture;
  Talk talk(capture, kAtServer);
  talk.opens();
  for (int i = 0; i < 3; ++i) {
    talk.after(5ms).client().sends(200);
    talk.answer(204ms).server().sends(300);
    talk.answer().client().acks();
  }
  const auto analysis = capture.analyse();
  EXPECT_EQ(names(diagnose_network({.packets = &analysis})), "");  // as a sleep of 204 ms would
  tcp::SocketFacts socket = socket_of_server();
  socket.options.cork = true;
  const std::array<tcp::SocketFacts, 1> sockets{socket};
  const auto diagnosis = diagnose_network({.packets = &analysis, .sockets = sockets});
  ASSERT_EQ(names(diagnosis), "corked");
  EXPECT_EQ(diagnosis.findings[0].certainty, Certainty::kProven);
}

// nginx corks around each answer, and sends at once.
TEST(FactsTest, ACorkThatWasSeenSetProvesNothingOfOneWaitAmongMany) {
  Capture capture;
  Talk talk(capture, kAtServer);
  talk.opens();
  for (int i = 0; i < 30; ++i) {
    talk.after(5ms).client().sends(200);
    talk.answer(i == 15 ? 204ms : 50ms).server().sends(300);
    talk.answer().client().acks();
  }
  const auto analysis = capture.analyse();
  tcp::SocketFacts socket = socket_of_server();
  socket.options.cork = true;
  const std::array<tcp::SocketFacts, 1> sockets{socket};
  EXPECT_EQ(names(diagnose_network({.packets = &analysis, .sockets = sockets})), "");
}

TEST(FactsTest, ThousandsOfPinnedSocketsAreJudgedAtOnce) {
  std::vector<tcp::SocketFacts> sockets;
  for (std::uint32_t i = 0; i < 20'000; ++i) {
    tcp::SocketFacts socket = socket_of_server();
    socket.inode = i;
    socket.remote.port = static_cast<std::uint16_t>(i);
    socket.options.sndbuf_locked = true;
    socket.tcp.busy_us = 1000;
    socket.tcp.sndbuf_limited_us = 900;
    sockets.push_back(socket);
  }
  // Squared, this would take minutes.
  EXPECT_EQ(names(diagnose_network({.sockets = sockets, .earlier = sockets})), "");
  EXPECT_EQ(names(diagnose_network({.sockets = sockets})), "small-send-buffer");
}

TEST(FactsTest, ThousandsOfAClientsPinnedSocketsAreOneFinding) {
  std::vector<tcp::SocketFacts> sockets;
  for (std::uint32_t i = 0; i < 20'000; ++i) {
    tcp::SocketFacts socket = socket_of_server();
    std::swap(socket.local, socket.remote);
    socket.inode = i;
    socket.local.port = static_cast<std::uint16_t>(20'000 + i);
    socket.options.sndbuf_locked = true;
    socket.tcp.busy_us = 1000;
    socket.tcp.sndbuf_limited_us = 900;
    sockets.push_back(socket);
  }
  const NetworkDiagnosis diagnosis = diagnose_network({.sockets = sockets});
  EXPECT_EQ(names(diagnosis), "small-send-buffer");
  ASSERT_EQ(diagnosis.findings.size(), 1u);
  EXPECT_EQ(diagnosis.findings[0].sentence.find("sockets to "), 0u)
      << diagnosis.findings[0].sentence;
  EXPECT_EQ(names(diagnose_network({.sockets = sockets, .earlier = sockets})), "");
}

TEST(FactsTest, ABufferIsSizedByASocketThatHasIt) {
  std::vector<tcp::SocketFacts> sockets;
  for (std::uint32_t i = 0; i < 2; ++i) {
    tcp::SocketFacts socket = socket_of_server();
    socket.inode = i;
    socket.remote.port = static_cast<std::uint16_t>(40'000 + i);
    socket.options.sndbuf_locked = i == 1;
    socket.tcp.busy_us = 1000;
    socket.tcp.sndbuf_limited_us = 900;
    socket.tcp.rtt_us = 10'000;
    socket.tcp.delivery_bytes_per_s = i == 1 ? 1'000'000 : 500'000'000;
    sockets.push_back(socket);
  }
  const NetworkDiagnosis diagnosis = diagnose_network({.sockets = sockets});
  ASSERT_EQ(names(diagnosis), "small-send-buffer");
  ASSERT_EQ(diagnosis.findings[0].evidence.size(), 2u);
  EXPECT_EQ(diagnosis.findings[0].evidence[1].text,
            "twice bandwidth × round-trip time, as measured now: 20,000 bytes");
}

TEST(FactsTest, SocketsOfBothEndsAreToldApart) {
  tcp::SocketFacts server = socket_of_server();
  server.options.nodelay = true;
  tcp::SocketFacts client = socket_of_server();
  std::swap(client.local, client.remote);
  client.options.nodelay = false;
  const std::array<tcp::SocketFacts, 2> sockets{server, client};
  const NetworkEvidence evidence{.sockets = sockets};
  EXPECT_EQ(facts_of(evidence, address(2, 80), false).nodelay.yes, 1u);
  EXPECT_EQ(facts_of(evidence, address(2, 80), false).nodelay.no, 0u);
  EXPECT_EQ(facts_of(evidence, address(2, 80), true).nodelay.no, 1u);
}

}  // namespace
}  // namespace tailward::diag::testing
