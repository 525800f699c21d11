#include "diag/socket_remarks.h"

#include <gtest/gtest.h>

#include <string>

namespace tailward::diag {
namespace {

using std::chrono::seconds;

tcp::SocketAddress at(std::uint8_t last, std::uint16_t port) {
  tcp::SocketAddress address;
  address.address.bytes = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, last};
  address.port = port;
  return address;
}

// A connection with nothing to remark: small messages both ways, Nagle off, nothing pinned.
tcp::SocketFacts healthy() {
  tcp::SocketFacts facts;
  facts.fd = 7;
  facts.state = tcp::TcpState::kEstablished;
  facts.local = at(1, 8080);
  facts.remote = at(2, 50'000);
  facts.options.nodelay = true;
  facts.options.cork = false;
  facts.options.sndbuf = 87'040;
  facts.options.rcvbuf = 131'072;
  facts.options.sndbuf_locked = false;
  facts.options.rcvbuf_locked = false;
  facts.options.keepalive = false;
  facts.options.linger_s = -1;
  facts.options.user_timeout_ms = 0;
  tcp::TcpInfo& tcp = facts.tcp;
  tcp.snd_mss = 1'448;
  tcp.rcv_mss = 536;
  tcp.rtt_us = 1'200;
  tcp.min_rtt_us = 1'000;
  tcp.data_segs_out = 1'000;
  tcp.data_segs_in = 1'000;
  tcp.bytes_sent = 200'000;
  tcp.bytes_received = 100'000;
  tcp.delivery_bytes_per_s = 1'000'000;
  tcp.busy_us = 1'000'000;
  tcp.rwnd_limited_us = 0;
  tcp.sndbuf_limited_us = 0;
  tcp.total_retrans = 0;
  tcp.notsent_bytes = 0;
  tcp.unacked = 0;
  tcp.last_data_sent_ms = 500;
  tcp.last_data_recv_ms = 500;
  tcp.last_ack_recv_ms = 500;
  return facts;
}

tcp::SocketFacts listener(std::uint32_t waiting, std::uint32_t backlog) {
  tcp::SocketFacts facts;
  facts.state = tcp::TcpState::kListen;
  facts.recv_queue = waiting;
  facts.send_queue = backlog;
  return facts;
}

// The codes, in order.
std::string codes(const std::vector<SocketRemark>& remarks) {
  std::string text;
  for (const SocketRemark& remark : remarks)
    text += (text.empty() ? "" : " ") + std::string(remark.code);
  return text;
}
std::string codes(const tcp::SocketFacts& facts, tcp::Runtime runtime = tcp::Runtime::kUnknown) {
  return codes(socket_remarks(facts, runtime));
}

TEST(SocketRemarksTest, AHealthyConnectionGetsNone) {
  EXPECT_EQ(codes(healthy()), "");
  EXPECT_EQ(codes(listener(3, 511)), "");
  EXPECT_EQ(codes(tcp::SocketFacts{}), "");
}

TEST(SocketRemarksTest, NagleIsRemarkedInAConversationOfSmallMessages) {
  tcp::SocketFacts facts = healthy();
  facts.options.nodelay = false;
  const auto remarks = socket_remarks(facts, tcp::Runtime::kUnknown);
  EXPECT_EQ(codes(remarks), "nagle");
  EXPECT_EQ(remarks[0].severity, Severity::kNote);
  EXPECT_NE(remarks[0].sentence.find("200 B out, 100 B in"), std::string::npos);

  facts.tcp.data_segs_out = 2'000;  // two for each that comes
  EXPECT_EQ(socket_remarks(facts, tcp::Runtime::kUnknown)[0].severity, Severity::kWarning);
}

TEST(SocketRemarksTest, NagleIsNotRemarkedWhereItDoesGood) {
  tcp::SocketFacts bulk = healthy();
  bulk.options.nodelay = false;
  bulk.tcp.bytes_sent = 1'448'000;
  EXPECT_EQ(codes(bulk), "") << "full segments";

  tcp::SocketFacts one_way = healthy();
  one_way.options.nodelay = false;
  one_way.tcp.data_segs_in = 2;
  EXPECT_EQ(codes(one_way), "") << "a stream of small writes";
  one_way.tcp.data_segs_in = 100;
  EXPECT_EQ(codes(one_way), "") << "ten segments out for each in";

  tcp::SocketFacts young = healthy();
  young.options.nodelay = false;
  young.tcp.data_segs_out = 7;
  EXPECT_EQ(codes(young), "") << "too few to tell";

  tcp::SocketFacts unknown = healthy();
  unknown.options.nodelay = std::nullopt;
  EXPECT_EQ(codes(unknown), "") << "not readable";

  tcp::SocketFacts loopback = healthy();
  loopback.options.nodelay = false;
  loopback.tcp.snd_mss = loopback.tcp.rcv_mss = 65'483;
  loopback.tcp.bytes_sent = 2'000'000;
  EXPECT_EQ(codes(loopback), "") << "2 KB in a segment is no small message, whatever the MSS";
}

TEST(SocketRemarksTest, ALaterLookCountsWhatHappenedSinceTheEarlierOne) {
  tcp::SocketFacts earlier = healthy();
  earlier.options.nodelay = false;
  tcp::SocketFacts now = earlier;
  EXPECT_EQ(codes(socket_remarks(now, tcp::Runtime::kUnknown, &earlier, seconds(1))), "");
  now.tcp.data_segs_out = 1'020;
  now.tcp.data_segs_in = 1'020;
  now.tcp.bytes_sent = 204'000;
  now.tcp.bytes_received = 102'000;
  EXPECT_EQ(codes(socket_remarks(now, tcp::Runtime::kUnknown, &earlier, seconds(1))), "nagle");

  tcp::SocketFacts lossy = healthy();
  lossy.tcp.total_retrans = 500;
  EXPECT_EQ(codes(lossy), "retransmissions");
  EXPECT_EQ(codes(socket_remarks(lossy, tcp::Runtime::kUnknown, &lossy, seconds(1))), "");
}

TEST(SocketRemarksTest, APinnedSendBufferIsComparedWithTwiceBandwidthTimesRoundTrip) {
  tcp::SocketFacts facts = healthy();
  facts.options.sndbuf_locked = true;
  facts.options.sndbuf = 20'000;
  facts.tcp.delivery_bytes_per_s = 10'000'000;
  facts.tcp.min_rtt_us = 1'000;  // 2 × 10 MB/s × 1 ms = 20,000
  EXPECT_EQ(codes(facts), "not-default") << "exactly enough";
  facts.tcp.min_rtt_us = 1'001;
  const auto remarks = socket_remarks(facts, tcp::Runtime::kUnknown);
  EXPECT_EQ(codes(remarks), "small-send-buffer not-default");
  EXPECT_NE(remarks[0].sentence.find("SO_SNDBUF 10 KiB"), std::string::npos) << remarks[0].sentence;
  EXPECT_NE(remarks[0].sentence.find("need 20 KiB"), std::string::npos) << remarks[0].sentence;

  facts.options.sndbuf_locked = false;
  EXPECT_EQ(codes(facts), "") << "the kernel will let it grow";
}

TEST(SocketRemarksTest, APinnedSendBufferIsRemarkedWhenTheKernelCountedWaits) {
  tcp::SocketFacts facts = healthy();
  facts.options.sndbuf_locked = true;
  facts.options.sndbuf = 16'384;
  facts.tcp.sndbuf_limited_us = 99'999;
  EXPECT_EQ(codes(facts), "not-default") << "under a tenth of the busy time";
  facts.tcp.sndbuf_limited_us = 100'000;
  EXPECT_EQ(codes(facts), "small-send-buffer not-default");
  facts.options.sndbuf_locked = false;
  EXPECT_EQ(codes(facts), "sndbuf-limited");
}

TEST(SocketRemarksTest, APinnedReceiveBufferIsComparedWithWhatArrivesInARoundTrip) {
  tcp::SocketFacts facts = healthy();
  facts.options.rcvbuf_locked = true;
  facts.options.rcvbuf = 40'000;
  facts.tcp.bytes_received = 10'000'000;
  facts.tcp.rcv_rtt_us = 20'000;
  facts.tcp.rcv_space = 20'000;
  EXPECT_EQ(codes(facts), "not-default");
  facts.tcp.rcv_space = 20'001;
  EXPECT_EQ(codes(facts), "small-receive-buffer not-default");

  const tcp::SocketFacts earlier = healthy();  // 100,000 bytes; then 9.9 MB in 1 s × 20 ms
  const auto remarks = socket_remarks(facts, tcp::Runtime::kUnknown, &earlier, seconds(1));
  ASSERT_EQ(codes(remarks), "small-receive-buffer not-default");
  EXPECT_NE(remarks[0].sentence.find("need 387 KiB"), std::string::npos) << remarks[0].sentence;
}

TEST(SocketRemarksTest, APinnedReceiveBufferOfLessThanTwoSegmentsIsTooSmall) {
  tcp::SocketFacts facts = healthy();
  facts.options.rcvbuf_locked = true;
  facts.options.rcvbuf = 16'384;
  facts.tcp.rcv_mss = 65'483;  // loopback
  EXPECT_EQ(codes(facts), "small-receive-buffer not-default");
  facts.tcp.bytes_received = 100;
  EXPECT_EQ(codes(facts), "not-default") << "hardly anything was received";
}

TEST(SocketRemarksTest, AFullListenQueueIsAFaultAndASmallOneIsNoted) {
  const auto full = socket_remarks(listener(511, 511), tcp::Runtime::kUnknown);
  EXPECT_EQ(codes(full), "listen-queue-full");
  EXPECT_EQ(full[0].severity, Severity::kFault);
  EXPECT_EQ(codes(listener(510, 511)), "");
  EXPECT_EQ(codes(listener(0, 128)), "");
  EXPECT_EQ(codes(listener(0, 127)), "small-backlog");
  EXPECT_EQ(codes(listener(0, 0)), "small-backlog") << "nobody waits: not full";
  EXPECT_EQ(codes(listener(1, 0)), "listen-queue-full");
}

TEST(SocketRemarksTest, CorkIsRemarkedOnlyWhereItStaysOn) {
  tcp::SocketFacts facts = healthy();
  facts.options.cork = true;
  facts.tcp.last_data_sent_ms = 199;
  EXPECT_EQ(codes(facts), "") << "in the middle of an answer";
  facts.tcp.last_data_sent_ms = 200;
  EXPECT_EQ(socket_remarks(facts, tcp::Runtime::kUnknown)[0].severity, Severity::kWarning);
  facts.tcp.notsent_bytes = 300;
  const auto remarks = socket_remarks(facts, tcp::Runtime::kUnknown);
  EXPECT_EQ(codes(remarks), "cork");
  EXPECT_EQ(remarks[0].severity, Severity::kFault);
  EXPECT_NE(remarks[0].sentence.find("300 B"), std::string::npos);
}

TEST(SocketRemarksTest, ALongSendQueueIsTimed) {
  tcp::SocketFacts facts = healthy();
  facts.tcp.notsent_bytes = 1'000'000;
  facts.tcp.delivery_bytes_per_s = 500'000;
  const auto remarks = socket_remarks(facts, tcp::Runtime::kUnknown);
  EXPECT_EQ(codes(remarks), "not-sent");
  EXPECT_NE(remarks[0].sentence.find("2.00 s"), std::string::npos) << remarks[0].sentence;
  facts.tcp.delivery_bytes_per_s = 100'000'000;
  EXPECT_EQ(codes(facts), "") << "10 ms of it";
}

TEST(SocketRemarksTest, DataThatNobodyReadsAreTold) {
  tcp::SocketFacts facts = healthy();
  facts.recv_queue = 65'536;
  facts.tcp.last_data_recv_ms = 99;
  EXPECT_EQ(codes(facts), "") << "just arrived";
  facts.tcp.last_data_recv_ms = 100;
  EXPECT_EQ(codes(facts), "unread");
  facts.recv_queue = 65'535;
  EXPECT_EQ(codes(facts), "");
}

TEST(SocketRemarksTest, RetransmissionsNeedAShareAndANumber) {
  tcp::SocketFacts facts = healthy();
  facts.tcp.total_retrans = 9;
  EXPECT_EQ(codes(facts), "") << "0.9 %";
  facts.tcp.total_retrans = 10;
  EXPECT_EQ(codes(facts), "retransmissions");
  facts.tcp.data_segs_out = 20;
  facts.tcp.total_retrans = 2;
  EXPECT_EQ(codes(facts), "") << "two may be chance";
}

TEST(SocketRemarksTest, ABackedOffTimerAndAClosedWindowAreTold) {
  tcp::SocketFacts facts = healthy();
  facts.tcp.backoff = 3;
  facts.tcp.unacked = 1;
  facts.tcp.rto_us = 1'600'000;
  EXPECT_EQ(codes(facts), "retransmitting");
  facts.tcp.unacked = 0;
  facts.tcp.probes = 3;
  facts.tcp.notsent_bytes = 100;
  EXPECT_EQ(codes(facts), "zero-window");
}

TEST(SocketRemarksTest, TimeInThePeersWindowIsAShareOfTheBusyTime) {
  tcp::SocketFacts facts = healthy();
  facts.tcp.rwnd_limited_us = 99'000;
  EXPECT_EQ(codes(facts), "");
  facts.tcp.rwnd_limited_us = 100'000;
  const auto remarks = socket_remarks(facts, tcp::Runtime::kUnknown);
  EXPECT_EQ(codes(remarks), "rwnd-limited");
  EXPECT_NE(remarks[0].sentence.find("10.0 %"), std::string::npos) << remarks[0].sentence;
  facts.tcp.busy_us = 20'000;
  facts.tcp.rwnd_limited_us = 9'000;
  EXPECT_EQ(codes(facts), "") << "9 ms are not worth a word";
}

TEST(SocketRemarksTest, KeepaliveIsMissedOnLongIdleConnectionsToOtherMachines) {
  tcp::SocketFacts facts = healthy();
  constexpr std::uint32_t kTenMinutes = 600'000;
  facts.tcp.last_data_sent_ms = facts.tcp.last_data_recv_ms = facts.tcp.last_ack_recv_ms =
      kTenMinutes;
  EXPECT_EQ(codes(facts), "no-keepalive");
  facts.tcp.last_ack_recv_ms = kTenMinutes - 1;
  EXPECT_EQ(codes(facts), "");
  facts.tcp.last_ack_recv_ms = kTenMinutes;
  facts.options.keepalive = true;
  EXPECT_EQ(codes(facts), "");
  facts.options.keepalive = false;
  facts.options.user_timeout_ms = 5'000;
  EXPECT_EQ(codes(facts), "");
  facts.options.user_timeout_ms = 0;
  facts.remote.address.bytes[12] = 127;
  EXPECT_EQ(codes(facts), "") << "loopback";
}

TEST(SocketRemarksTest, WhatARuntimeWouldHaveSetIsCompared) {
  tcp::SocketFacts facts = healthy();
  EXPECT_EQ(codes(facts, tcp::Runtime::kGo), "not-default") << "Go switches keep-alive on";
  facts.options.keepalive = true;
  EXPECT_EQ(codes(facts, tcp::Runtime::kGo), "");
  facts.options.nodelay = false;
  const auto remarks = socket_remarks(facts, tcp::Runtime::kGo);
  EXPECT_EQ(codes(remarks), "nagle not-default");
  EXPECT_EQ(remarks[1].sentence, "the application set: TCP_NODELAY off; Go by itself does not");
  EXPECT_EQ(codes(facts, tcp::Runtime::kJava), "nagle") << "Java leaves it to the application";

  tcp::SocketFacts reset = healthy();
  reset.options.linger_s = 0;
  EXPECT_EQ(codes(reset, tcp::Runtime::kNode), "not-default");
  EXPECT_NE(socket_remarks(reset, tcp::Runtime::kNode)[0].sentence.find("close sends a reset"),
            std::string::npos);
}

TEST(SocketRemarksTest, TheGravestComeFirst) {
  tcp::SocketFacts facts = healthy();
  facts.options.linger_s = 0;
  facts.tcp.total_retrans = 100;
  facts.tcp.backoff = 1;
  facts.tcp.unacked = 1;
  EXPECT_EQ(codes(facts), "retransmitting retransmissions not-default");
}

}  // namespace
}  // namespace tailward::diag
