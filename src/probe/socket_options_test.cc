#include <sys/utsname.h>

#include "probe/sockets_testing.h"

namespace tailward::probe {
namespace {

TEST(SocketOptionsTest, ReadsBackWhatWasSet) {
  const Connection connection;
  const Descriptor& socket = connection.client;
  set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set(socket, IPPROTO_TCP, TCP_CORK, 1);
  set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPIDLE, 15);
  set(socket, IPPROTO_TCP, TCP_KEEPINTVL, 16);
  set(socket, IPPROTO_TCP, TCP_KEEPCNT, 9);
  set(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, 1234);
  set(socket, IPPROTO_TCP, TCP_NOTSENT_LOWAT, 16384);
  set(socket, SOL_SOCKET, SO_REUSEADDR, 1);
  set(socket, SOL_SOCKET, SO_REUSEPORT, 1);
  set(socket, IPPROTO_IP, IP_TOS, 0x10);
  const linger how{1, 7};
  ASSERT_EQ(::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &how, sizeof how), 0);

  const tcp::SocketOptions options = read_options(socket.get());
  EXPECT_EQ(options.nodelay, true);
  EXPECT_EQ(options.cork, true);
  EXPECT_EQ(options.keepalive, true);
  EXPECT_EQ(options.keepidle_s, 15);
  EXPECT_EQ(options.keepintvl_s, 16);
  EXPECT_EQ(options.keepcnt, 9);
  EXPECT_EQ(options.user_timeout_ms, 1234);
  EXPECT_EQ(options.notsent_lowat, 16384U);
  EXPECT_EQ(options.reuseaddr, true);
  EXPECT_EQ(options.reuseport, true);
  EXPECT_EQ(options.tos, 0x10);
  EXPECT_EQ(options.linger_s, 7);
  EXPECT_EQ(options.v6only, std::nullopt);
  EXPECT_TRUE(options.congestion && !options.congestion->empty());
}

TEST(SocketOptionsTest, ReadsWhatASocketIsBornWith) {
  const Connection connection;
  const tcp::SocketOptions options = read_options(connection.server.get());
  EXPECT_EQ(options.nodelay, false);
  EXPECT_EQ(options.cork, false);
  EXPECT_EQ(options.keepalive, false);
  EXPECT_EQ(options.linger_s, -1);
  EXPECT_EQ(options.user_timeout_ms, 0);
  EXPECT_EQ(options.reuseaddr, false);
  EXPECT_GT(options.sndbuf.value_or(0), 0);
  EXPECT_GT(options.rcvbuf.value_or(0), 0);
}

TEST(SocketOptionsTest, KnowsWhichBufferTheApplicationHasSet) {
  const Connection connection;
  set(connection.client, SOL_SOCKET, SO_SNDBUF, 10'000);
  set(connection.server, SOL_SOCKET, SO_RCVBUF, 20'000);
  const tcp::SocketOptions client = read_options(connection.client.get());
  if (!client.sndbuf_locked) GTEST_SKIP() << "this kernel has no SO_BUF_LOCK";
  EXPECT_EQ(client.sndbuf_locked, true);
  EXPECT_EQ(client.rcvbuf_locked, false);
  EXPECT_EQ(client.sndbuf, 20'000);  // the kernel doubles it
  const tcp::SocketOptions server = read_options(connection.server.get());
  EXPECT_EQ(server.sndbuf_locked, false);
  EXPECT_EQ(server.rcvbuf_locked, true);
  EXPECT_EQ(server.rcvbuf, 40'000);
}

TEST(SocketOptionsTest, ReadsAListenersOptions) {
  const Descriptor listener = listen_on_loopback(AF_INET6);
  set(listener, IPPROTO_TCP, TCP_DEFER_ACCEPT, 3);
  set(listener, IPPROTO_TCP, TCP_FASTOPEN, 5);
  const tcp::SocketOptions options = read_options(listener.get());
  EXPECT_GE(options.defer_accept_s.value_or(0), 3);
  EXPECT_EQ(options.fastopen_queue, 5);
  EXPECT_EQ(options.v6only, false);
  EXPECT_EQ(options.tos, 0);
}

TEST(SocketOptionsTest, ADescriptorThatIsNoSocketHasNoOptions) {
  const Descriptor other(::dup(0));
  const tcp::SocketOptions options = read_options(other.get());
  EXPECT_EQ(options.nodelay, std::nullopt);
  EXPECT_EQ(options.sndbuf, std::nullopt);
  EXPECT_EQ(options.congestion, std::nullopt);
}

}  // namespace
}  // namespace tailward::probe
