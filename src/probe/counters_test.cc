#include "probe/counters.h"

#include <gtest/gtest.h>

#include "probe/sockets_testing.h"

namespace tailward::probe {
namespace {

TEST(CountersTest, TakesNamedOnesFromTheirTable) {
  tcp::HostCounters counters;
  parse_counters(
      "TcpExt: SyncookiesSent ListenOverflows DelayedACKs RetransSegs\n"
      "TcpExt: 1 2 3 4\n"
      "Tcp: RtoAlgorithm MaxConn RetransSegs\n"
      "Tcp: 1 -1 70\n",
      counters);
  EXPECT_EQ(counters.listen_overflows, 2U);
  EXPECT_EQ(counters.delayed_acks, 3U);
  EXPECT_EQ(counters.retrans_segs, 70U);
  EXPECT_EQ(counters.tcp_timeouts, 0U);
}

TEST(CountersTest, SurviveTextThatIsCutAnywhere) {
  const std::string whole = "TcpExt: A ListenDrops\nTcpExt: 1 2222\nTcp: RetransSegs\nTcp: 5\n";
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    tcp::HostCounters counters;
    parse_counters(std::string_view(whole).substr(0, size), counters);
    EXPECT_LE(counters.listen_drops, 2222U);
  }
  tcp::HostCounters counters;
  parse_counters("TcpExt: ListenDrops\nIpExt: 7\n", counters);
  EXPECT_EQ(counters.listen_drops, 0U);
}

TEST(CountersTest, CountADroppedConnectionOfThisNamespace) {
  const Descriptor listener = listen_on_loopback(AF_INET, 0);
  const Result<tcp::HostCounters> before = read_counters();
  ASSERT_TRUE(before) << before.error().message;
  // Room for one; what comes after the second is dropped.
  std::vector<Descriptor> clients;
  for (int i = 0; i < 4; ++i) {
    Descriptor client(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(port_of(listener));
    static_cast<void>(::connect(client.get(), reinterpret_cast<sockaddr*>(&to), sizeof to));
    clients.push_back(std::move(client));
  }
  const Result<tcp::HostCounters> after = read_counters();
  ASSERT_TRUE(after);
  EXPECT_GT(after->listen_overflows, before->listen_overflows);
}

}  // namespace
}  // namespace tailward::probe
