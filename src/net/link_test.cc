// The link with the kernel's own TCP over it. Needs the right to make network namespaces; the times
// are a machine's that may be busy, so their tolerance is wide: link_queue_test.cc has the exact
// ones.
#include "net/link.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "net/blocking_socket.h"
#include "net/real_clock.h"

namespace tailward::net {
namespace {

using namespace std::chrono_literals;
using End = Link::End;

constexpr std::uint64_t kSeed = 5;

#define LINK_OR_SKIP(link, shape)                                         \
  Result<std::unique_ptr<Link>> link##_made = Link::create(shape, kSeed); \
  if (!link##_made && link##_made.error().kind != ErrorKind::kInternal) { \
    GTEST_SKIP() << link##_made.error().message;                          \
  }                                                                       \
  ASSERT_TRUE(link##_made) << link##_made.error().message;                \
  Link& link = **link##_made

// Both ends of a connection over the link, made by threads that are inside it.
struct Ends {
  Result<BlockingSocket> client = fail(ErrorKind::kInternal, "");
  Result<BlockingSocket> server = fail(ErrorKind::kInternal, "");
};

BlockingSocket listen_inside(Link& link, const BlockingOptions& options = {}) {
  Result<BlockingSocket> listener = fail(ErrorKind::kInternal, "");
  const Result<void> entered = link.run_inside(End::kServer, [&] {
    listener = BlockingSocket::listen({Link::address(End::kServer), 0}, options);
  });
  EXPECT_TRUE(entered && listener);
  return std::move(*listener);
}

Ends connect_over(Link& link, const BlockingOptions& options = {.nodelay = true}) {
  BlockingSocket listener = listen_inside(link, options);
  Ends ends;
  const Result<void> entered = link.run_inside(
      End::kClient, [&] { ends.client = BlockingSocket::connect(listener.local(), options); });
  EXPECT_TRUE(entered && ends.client);
  ends.server = listener.accept();
  EXPECT_TRUE(ends.server);
  return ends;
}

// The median time of `rounds` exchanges of one byte.
Duration median_round_trip(Link& link, int rounds) {
  Ends ends = connect_over(link);
  std::thread echo([&] {
    std::array<char, 1> byte{};
    while (ends.server->read_exact(byte) && ends.server->write(byte)) {
    }
  });
  std::vector<Duration> times;
  std::array<char, 1> byte{'x'};
  for (int i = 0; i < rounds; ++i) {
    const TimePoint began = real_now();
    EXPECT_TRUE(ends.client->write(byte) && ends.client->read_exact(byte));
    times.push_back(real_now() - began);
  }
  ends.client->close();
  echo.join();
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

// `bytes` bytes from the client to the server, all of which arrive.
void transfer(Ends& ends, std::size_t bytes) {
  std::thread writer([&] {
    const std::vector<char> data(bytes);
    static_cast<void>(ends.client->write_all(data));
  });
  std::vector<char> got(bytes);
  EXPECT_TRUE(ends.server->read_exact(got));
  writer.join();
}

TEST(LinkTest, ARoundTripTakesTwiceTheDelay) {
  for (const Duration rtt : {0ms, 1ms, 10ms}) {
    LINK_OR_SKIP(link, (LinkShape{.delay = rtt / 2}));
    const Duration median = median_round_trip(link, rtt < 5ms ? 200 : 50);
    EXPECT_GE(median, rtt);
    EXPECT_LE(median, rtt + 3ms);
    std::printf("RTT %g ms: measured %.3f ms\n", to_ms(rtt), to_ms(median));
  }
}

TEST(LinkTest, AShapeCanBeChangedWhileItRuns) {
  LINK_OR_SKIP(link, LinkShape{});
  const Duration fast = median_round_trip(link, 20);
  link.shape(End::kClient, {.delay = 20ms});  // one way only
  EXPECT_GE(median_round_trip(link, 10), 20ms);
  EXPECT_LT(fast, 20ms);
}

TEST(LinkTest, BytesFlowAsFastAsTheRateAllows) {
  constexpr std::size_t kBytes = 500'000;
  LINK_OR_SKIP(link, (LinkShape{.bits_per_s = 16e6}));
  Ends ends = connect_over(link);
  std::thread writer([&] {
    const std::vector<char> data(kBytes);
    static_cast<void>(ends.client->write_all(data));
  });
  std::vector<char> got(kBytes);
  const TimePoint began = real_now();
  EXPECT_TRUE(ends.server->read_exact(got));
  const Duration took = real_now() - began;
  writer.join();
  // 2 MB/s, and 40 bytes of headers in 1,500; the first segments came before the clock.
  EXPECT_GE(took, 230ms);
  EXPECT_LE(took, 600ms);
}

TEST(LinkTest, LosesPacketsAndTcpSendsThemAgain) {
  LINK_OR_SKIP(link, (LinkShape{.delay = 1ms, .loss = 0.02}));
  Ends ends = connect_over(link);
  transfer(ends, 1'000'000);
  const LinkCounters counters = link.counters(End::kClient);
  const double share =
      static_cast<double>(counters.lost) / static_cast<double>(counters.lost + counters.forwarded);
  EXPECT_GT(share, 0.005);
  EXPECT_LT(share, 0.05);
  EXPECT_GE(ends.client->figures().retransmissions, counters.lost / 2);
}

TEST(LinkTest, DropsWhatDoesNotFitIntoTheQueue) {
  LINK_OR_SKIP(link, (LinkShape{.delay = 5ms, .bits_per_s = 20e6, .queue_packets = 5}));
  Ends ends = connect_over(link);
  transfer(ends, 300'000);
  EXPECT_GT(link.counters(End::kClient).queue_drops, 0U);
  EXPECT_EQ(link.counters(End::kClient).lost, 0U);
}

TEST(LinkTest, ALostSynDelaysTheConnectionByItsTimer) {
  LINK_OR_SKIP(link, LinkShape{});
  BlockingSocket listener = listen_inside(link);
  link.shape(End::kClient, {.syn_loss = 1});
  Result<BlockingSocket> client = fail(ErrorKind::kInternal, "");
  ASSERT_TRUE(link.run_inside(End::kClient, [&] {
    client = BlockingSocket::connect(listener.local(), {.timeout = 100ms});
  }));
  ASSERT_FALSE(client);
  EXPECT_EQ(client.error().kind, ErrorKind::kTimedOut);
  EXPECT_EQ(link.counters(End::kClient).syns_lost, 1U);

  // The kernel sends the next SYN a second after the first; nothing is in its way then.
  const TimePoint began = real_now();
  std::thread heal([&] {
    while (link.counters(End::kClient).syns_lost < 2) std::this_thread::yield();
    link.shape(End::kClient, {});
  });
  ASSERT_TRUE(
      link.run_inside(End::kClient, [&] { client = BlockingSocket::connect(listener.local()); }));
  heal.join();
  EXPECT_TRUE(client);
  EXPECT_GE(real_now() - began, 950ms);
}

TEST(LinkTest, SegmentsAreNoLargerThanTheMtuAllows) {
  LINK_OR_SKIP(link, (LinkShape{.mtu = 1000}));
  Ends ends = connect_over(link);
  EXPECT_LE(ends.client->figures().mss, 960U);
  EXPECT_GE(ends.client->figures().mss, 900U);
  EXPECT_EQ(Link::create({.mtu = 100}, kSeed).error().kind, ErrorKind::kInvalid);
}

TEST(LinkTest, WithOffloadLargeSegmentsCrossUncutAndArriveWhole) {
  LINK_OR_SKIP(link, (LinkShape{.delay = 500us, .offload = true}));
  Ends ends = connect_over(link);
  std::vector<char> data(3'000'000);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>(i * 7 + i / 4096);
  std::thread writer([&] { static_cast<void>(ends.client->write_all(data)); });
  std::vector<char> got(data.size());
  EXPECT_TRUE(ends.server->read_exact(got));
  writer.join();
  EXPECT_EQ(got, data);
  EXPECT_LE(ends.client->figures().mss, 1460U);
  // 2,055 segments of that size, had they been cut.
  EXPECT_LT(link.counters(End::kClient).forwarded, 1200U);
}

TEST(LinkTest, NeitherEndSeesTheMachinesNetwork) {
  LINK_OR_SKIP(link, LinkShape{});
  Result<BlockingSocket> outside = BlockingSocket::listen({"127.0.0.1", 0});
  ASSERT_TRUE(outside);
  for (const End end : {End::kClient, End::kServer}) {
    Result<BlockingSocket> client = fail(ErrorKind::kInternal, "");
    ASSERT_TRUE(link.run_inside(end, [&] { client = BlockingSocket::connect(outside->local()); }));
    EXPECT_EQ(client.error().kind, ErrorKind::kDisconnected);
  }
  std::ifstream interfaces("/proc/self/net/dev");
  const std::string text((std::istreambuf_iterator<char>(interfaces)), {});
  EXPECT_EQ(text.find(Link::interface_name() + ":"), std::string::npos);
}

// Every place below /proc that holds one of these network namespaces open.
std::vector<std::string> holders(const std::set<std::string>& spaces) {
  std::vector<std::string> found;
  std::error_code gone;
  namespace fs = std::filesystem;
  const auto look_at = [&](const fs::path& link) {
    const std::string target = fs::read_symlink(link, gone).string();
    if (spaces.contains(target)) found.push_back(link.string());
  };
  for (const auto& process : fs::directory_iterator("/proc", gone)) {
    if (process.path().filename().string().find_first_not_of("0123456789") != std::string::npos) {
      continue;
    }
    for (const auto& fd : fs::directory_iterator(process.path() / "fd", gone)) look_at(fd.path());
    for (const auto& task : fs::directory_iterator(process.path() / "task", gone)) {
      look_at(task.path() / "ns/net");
    }
  }
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    for (const std::string& space : spaces) {
      if (line.find(space) != std::string::npos) found.push_back(line);
    }
  }
  return found;
}

// In a process of its own: makes a link, has a thread in each end, and tells their names.
[[noreturn]] void hold_a_link(int tell) {
  const Result<std::unique_ptr<Link>> link = Link::create({}, kSeed);
  std::string names;
  if (link) {
    for (const End end : {End::kClient, End::kServer}) {
      names += std::filesystem::read_symlink((*link)->namespace_path(end)).string() + "\n";
    }
  }
  names += ".";
  static_cast<void>(::write(tell, names.data(), names.size()) > 0);
  for (;;) ::pause();
}

TEST(LinkTest, NothingIsLeftOfItWhenItsOwnerIsKilled) {
  {
    LINK_OR_SKIP(link, LinkShape{});
    static_cast<void>(link);
  }
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const pid_t child = ::fork();
  if (child == 0) hold_a_link(ends[1]);
  ::close(ends[1]);
  std::string names;
  for (char byte = 0; ::read(ends[0], &byte, 1) == 1 && byte != '.';) names.push_back(byte);
  ::close(ends[0]);
  std::set<std::string> spaces;
  for (std::size_t at = 0; at < names.size();) {
    const std::size_t end = names.find('\n', at);
    spaces.insert(names.substr(at, end - at));
    at = end + 1;
  }
  ASSERT_EQ(spaces.size(), 2U) << names;
  EXPECT_GE(holders(spaces).size(), 2U);  // so that the look after it means something
  ::kill(child, SIGKILL);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_EQ(holders(spaces), std::vector<std::string>{});
}

TEST(LinkTest, DestroyingItEndsConnectionsAndThreads) {
  std::set<std::string> spaces;
  {
    LINK_OR_SKIP(link, LinkShape{});
    for (const End end : {End::kClient, End::kServer}) {
      spaces.insert(std::filesystem::read_symlink(link.namespace_path(end)).string());
    }
    EXPECT_GE(holders(spaces).size(), 2U);
  }
  EXPECT_EQ(holders(spaces), std::vector<std::string>{});
}

// How it went without privileges, in a process of its own: 'l'ink, 'd'enied with a hint, or '?'.
char unprivileged(bool second_thread) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return '?';
  const pid_t child = ::fork();
  if (child == 0) {
    constexpr int kNobody = 65534;
    if (::setgid(kNobody) != 0 || ::setuid(kNobody) != 0) ::_exit(1);
    std::thread other;
    if (second_thread) other = std::thread([] { ::pause(); });
    const Result<std::unique_ptr<Link>> link = Link::create({}, kSeed);
    const bool denied =
        !link && link.error().kind == ErrorKind::kDenied && !link.error().hint.empty();
    const char told = link ? 'l' : denied ? 'd' : '?';
    static_cast<void>(::write(ends[1], &told, 1) == 1);
    ::_exit(0);
  }
  ::close(ends[1]);
  char told = '?';
  if (::read(ends[0], &told, 1) != 1) told = '?';
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  return told;
}

TEST(LinkTest, WithoutPrivilegesItSaysWhatIsMissing) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to give its privileges up";
  EXPECT_EQ(unprivileged(true), 'd');  // several threads: no user namespace can be entered
  const char alone = unprivileged(false);
  EXPECT_TRUE(alone == 'l' || alone == 'd') << alone;
}

}  // namespace
}  // namespace tailward::net
