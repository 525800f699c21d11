#include "net/blocking_socket.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace tailward::net {
namespace {

using namespace std::chrono_literals;

struct Pair {
  BlockingSocket client;
  BlockingSocket server;
};

Pair connect_pair(const BlockingOptions& options = {}, const std::string& host = "127.0.0.1") {
  Result<BlockingSocket> listener = BlockingSocket::listen({host, 0}, options);
  EXPECT_TRUE(listener) << listener.error().message;
  Result<BlockingSocket> client = BlockingSocket::connect(listener->local(), options);
  EXPECT_TRUE(client) << client.error().message;
  Result<BlockingSocket> server = listener->accept();
  EXPECT_TRUE(server) << server.error().message;
  return {std::move(*client), std::move(*server)};
}

std::string read_text(BlockingSocket& socket, std::size_t size) {
  std::string text(size, '\0');
  const Result<void> read = socket.read_exact(text);
  return read ? text : read.error().message;
}

class BlockingSocketTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const Result<BlockingSocket> listener = BlockingSocket::listen({GetParam(), 0});
    if (!listener) GTEST_SKIP() << "no such loopback here: " << listener.error().message;
  }
};

TEST_P(BlockingSocketTest, CarriesBytesBothWaysAndCountsItsCalls) {
  Pair pair = connect_pair({}, GetParam());
  EXPECT_EQ(pair.client.local(), pair.server.peer());
  EXPECT_EQ(pair.client.peer(), pair.server.local());
  const std::string_view ab = "ab";
  const std::string_view cd = "cd";
  EXPECT_EQ(*pair.client.write(ab), 2U);
  EXPECT_EQ(*pair.client.write(std::string_view("abcd")), 4U);
  EXPECT_EQ(read_text(pair.server, 6), "ababcd");
  EXPECT_EQ(pair.client.write_calls(), 2U);
  EXPECT_GE(pair.server.read_calls(), 1U);
  ASSERT_TRUE(pair.server.write_all(cd));
  EXPECT_EQ(read_text(pair.client, 2), "cd");
}

TEST_P(BlockingSocketTest, SaysThatTheDataHasEnded) {
  Pair pair = connect_pair({}, GetParam());
  ASSERT_TRUE(pair.client.write(std::string_view("x")));
  pair.client.shutdown_write();
  std::array<char, 8> buffer{};
  EXPECT_EQ(*pair.server.read_some(buffer), 1U);
  EXPECT_EQ(*pair.server.read_some(buffer), 0U);
  const Result<void> more = pair.server.read_exact(buffer);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().kind, ErrorKind::kDisconnected);
}

INSTANTIATE_TEST_SUITE_P(Families, BlockingSocketTest, ::testing::Values("127.0.0.1", "::1"),
                         [](const auto& each) {
                           return each.param == std::string_view("::1") ? "V6" : "V4";
                         });

TEST(BlockingSocketErrorTest, NothingWaitsLongerThanItsTimeout) {
  Result<BlockingSocket> listener = BlockingSocket::listen({"", 0}, {.timeout = 20ms});
  ASSERT_TRUE(listener);
  EXPECT_EQ(listener->accept().error().kind, ErrorKind::kTimedOut);
  Pair pair = connect_pair({.timeout = 20ms});
  std::array<char, 8> buffer{};
  EXPECT_EQ(pair.client.read_some(buffer).error().kind, ErrorKind::kTimedOut);
  // Nobody reads, so there comes a write that finds no room.
  const std::vector<char> much(1 << 20);
  Result<std::size_t> written = std::size_t{0};
  for (int i = 0; i < 100 && written; ++i) written = pair.client.write(much);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().kind, ErrorKind::kTimedOut);
}

TEST(BlockingSocketErrorTest, AConnectGoesOnForAsLongAsItIsToldTo) {
  const Result<BlockingSocket> listener = BlockingSocket::listen({"127.0.0.1", 0}, {}, 0);
  ASSERT_TRUE(listener);
  const Result<BlockingSocket> first = BlockingSocket::connect(listener->local());
  ASSERT_TRUE(first);
  int asked = 0;
  const Result<BlockingSocket> second = BlockingSocket::connect(
      listener->local(), {.timeout = 20ms, .keep_connecting = [&asked] { return ++asked < 4; }});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind, ErrorKind::kTimedOut);
  EXPECT_EQ(asked, 4);
}

TEST(BlockingSocketErrorTest, AConnectThatNobodyAnswersEndsInTime) {
  // One connection waits to be accepted, and that is as many as may.
  Result<BlockingSocket> listener = BlockingSocket::listen({"", 0}, {}, 0);
  ASSERT_TRUE(listener);
  const Result<BlockingSocket> first = BlockingSocket::connect(listener->local());
  ASSERT_TRUE(first);
  const Result<BlockingSocket> second =
      BlockingSocket::connect(listener->local(), {.timeout = 50ms});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind, ErrorKind::kTimedOut);
}

TEST(BlockingSocketErrorTest, SaysWhoRefused) {
  io::HostPort nobody;
  {
    Result<BlockingSocket> listener = BlockingSocket::listen({"", 0});
    ASSERT_TRUE(listener);
    nobody = listener->local();
  }
  const Result<BlockingSocket> refused = BlockingSocket::connect(nobody);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kDisconnected);
  EXPECT_NE(refused.error().message.find(io::to_string(nobody)), std::string::npos);
  EXPECT_EQ(BlockingSocket::connect({"no-such-name", 1}).error().kind, ErrorKind::kInvalid);
  // TEST-NET-1: an address that is not ours.
  EXPECT_EQ(BlockingSocket::listen({"192.0.2.1", 0}).error().kind, ErrorKind::kInvalid);
}

TEST(BlockingSocketErrorTest, AResetIsTold) {
  Pair pair = connect_pair();
  pair.client.reset();
  EXPECT_FALSE(pair.client.open());
  std::array<char, 8> buffer{};
  EXPECT_EQ(pair.server.read_some(buffer).error().kind, ErrorKind::kDisconnected);
}

TEST(BlockingSocketErrorTest, AnInterruptEndsTheCallsOfAnotherThread) {
  Result<BlockingSocket> listener = BlockingSocket::listen({"", 0});
  ASSERT_TRUE(listener);
  Result<BlockingSocket> accepted = fail(ErrorKind::kInternal, "");
  std::thread waiting([&] { accepted = listener->accept(); });
  listener->interrupt();
  waiting.join();
  ASSERT_FALSE(accepted);
  EXPECT_EQ(accepted.error().kind, ErrorKind::kCancelled);
}

TEST(BlockingSocketOptionTest, OptionsAreSetAndInherited) {
  const BlockingOptions options{.nodelay = true, .send_buffer = 20'000, .receive_buffer = 30'000};
  Pair pair = connect_pair(options);
  for (const BlockingSocket* socket : {&pair.client, &pair.server}) {
    EXPECT_EQ(socket->send_buffer(), 40'000);
    EXPECT_EQ(socket->receive_buffer(), 60'000);
  }
}

TEST(BlockingSocketOptionTest, ACorkedSocketKeepsASmallWriteUntilItIsPulled) {
  Pair pair = connect_pair({.cork = true, .timeout = 30ms});
  ASSERT_TRUE(pair.client.write(std::string_view("held")));
  std::array<char, 8> buffer{};
  EXPECT_EQ(pair.server.read_some(buffer).error().kind, ErrorKind::kTimedOut);
  pair.client.set_cork(false);
  EXPECT_EQ(*pair.server.read_some(buffer), 4U);
}

TEST(BlockingSocketOptionTest, TheKernelsFiguresAreRead) {
  Pair pair = connect_pair({.nodelay = true});
  ASSERT_TRUE(pair.client.write(std::string_view("abc")));
  EXPECT_EQ(read_text(pair.server, 3), "abc");
  EXPECT_EQ(pair.client.figures().data_segments_out, 1U);
  EXPECT_EQ(pair.server.figures().data_segments_in, 1U);
  EXPECT_EQ(pair.server.figures().bytes_received, 3U);
  EXPECT_GT(pair.client.figures().mss, 1000U);
}

}  // namespace
}  // namespace tailward::net
