#include "net/loop.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "net/socket_transport.h"

namespace tailward::net {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

void spin_until(const Loop& loop, TimePoint time) {
  while (loop.precise_now() < time) {
  }
}

TEST(LoopTest, RunsTimersAtTheirTime) {
  Loop loop;
  std::vector<Duration> late;
  io::Timer timer;
  std::function<void(TimePoint)> arm = [&](TimePoint when) {
    timer = loop.timers().at(when, [&, when] {
      late.push_back(loop.precise_now() - when);
      if (late.size() < 200) arm(loop.precise_now() + microseconds(1500));
    });
  };
  arm(loop.precise_now() + milliseconds(1));
  ASSERT_TRUE(loop.run_until([&] { return late.size() == 200; }, seconds(20)));
  std::sort(late.begin(), late.end());
  EXPECT_GE(late.front(), Duration{0});
  RecordProperty("median_late_ns", std::to_string(late[100].count()));
  // The machine that tests run on is not idle; the promise of 100 µs is for one that is.
  EXPECT_LT(late[100], milliseconds(1));
}

TEST(LoopTest, ShowsOneTimeForTheWholeTurn) {
  Loop loop;
  TimePoint first{};
  TimePoint second{};
  loop.post([&] {
    first = loop.now();
    spin_until(loop, loop.precise_now() + microseconds(200));
    EXPECT_EQ(loop.now(), first);
  });
  loop.post([&] { second = loop.now(); });
  ASSERT_TRUE(loop.run_until([&] { return second != TimePoint{}; }, seconds(5)));
  EXPECT_EQ(first, second);
  EXPECT_GT(loop.precise_now(), first);
}

TEST(LoopTest, HandlesWhatIsReadyBeforeTimersOfTheSameTurn) {
  Loop loop;
  SocketTransport transport(loop);
  std::unique_ptr<io::Stream> server;
  std::unique_ptr<io::Stream> client;
  auto listener =
      transport.listen({"", 0}, [&](std::unique_ptr<io::Stream> s) { server = std::move(s); });
  ASSERT_TRUE(listener);
  auto connecting =
      transport.connect((*listener)->local(), [&](auto stream) { client = std::move(*stream); });
  ASSERT_TRUE(loop.run_until([&] { return server && client; }, seconds(5)));

  std::vector<std::string> log;
  std::string buffer(16, '\0');
  server->read(buffer, [&](Result<std::size_t> got) {
    EXPECT_EQ(*got, 0u);
    log.push_back("the caller is gone");
  });
  io::Timer timer;
  loop.post([&] {
    timer = loop.timers().after(milliseconds(1), [&] { log.push_back("the timer fires"); });
    client.reset();
    spin_until(loop, loop.now() + milliseconds(2));
  });
  ASSERT_TRUE(loop.run_until([&] { return log.size() == 2; }, seconds(5)));
  EXPECT_EQ(log, (std::vector<std::string>{"the caller is gone", "the timer fires"}));
}

TEST(LoopTest, RunsPostedTasksOfEveryThreadInTheirOrder) {
  Loop loop;
  constexpr int kThreads = 4;
  constexpr int kTasks = 2'000;
  std::vector<int> next(kThreads, 0);
  int done = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kTasks; ++i) {
        loop.post([&, t, i] {
          EXPECT_EQ(next[static_cast<std::size_t>(t)]++, i);
          if (++done == kThreads * kTasks) loop.stop();
        });
      }
    });
  }
  loop.run();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(done, kThreads * kTasks);
}

TEST(LoopTest, APostWakesALoopThatWaits) {
  Loop loop;
  std::atomic<bool> waiting{false};
  bool posted = false;
  std::thread poster([&] {
    while (!waiting) std::this_thread::yield();
    loop.post([&] {
      posted = true;
      loop.stop();
    });
  });
  loop.post([&] { waiting = true; });
  loop.run();
  poster.join();
  EXPECT_TRUE(posted);
}

TEST(LoopTest, StopEndsTheRunFromAnyThreadAndItMayRunAgain) {
  Loop loop;
  int runs_ended = 0;
  for (int i = 0; i < 3; ++i) {
    std::thread stopper([&] { loop.stop(); });
    loop.run();
    ++runs_ended;
    stopper.join();
  }
  EXPECT_EQ(runs_ended, 3);
}

TEST(LoopTest, DropsTasksThatItNeverRan) {
  const auto token = std::make_shared<int>(1);
  {
    Loop loop;
    loop.post([token] { FAIL(); });
  }
  EXPECT_EQ(token.use_count(), 1);
}

TEST(LoopTest, TellsSignalsOnTheLoopUntilTheWatchEnds) {
  Loop loop;
  std::vector<int> seen;
  auto watch = loop.on_signals({SIGUSR1, SIGUSR2}, [&](int number) { seen.push_back(number); });
  ::kill(::getpid(), SIGUSR1);
  ASSERT_TRUE(loop.run_until([&] { return seen.size() == 1; }, seconds(5)));
  ::kill(::getpid(), SIGUSR2);
  ASSERT_TRUE(loop.run_until([&] { return seen.size() == 2; }, seconds(5)));
  EXPECT_EQ(seen, (std::vector<int>{SIGUSR1, SIGUSR2}));
  watch.reset();
}

// Goal: a server that has run out of descriptors waits instead of spinning, and goes on when there
// are some.
TEST(LoopTest, AListenerOutOfDescriptorsPausesAndRecovers) {
  Loop loop;
  SocketTransport transport(loop);
  std::vector<std::unique_ptr<io::Stream>> accepted;
  std::vector<std::unique_ptr<io::Stream>> clients;
  auto listener = transport.listen(
      {"", 0}, [&](std::unique_ptr<io::Stream> s) { accepted.push_back(std::move(s)); });
  ASSERT_TRUE(listener);
  const auto connect = [&] {
    return transport.connect((*listener)->local(), [&](auto stream) {
      ASSERT_TRUE(stream);
      clients.push_back(std::move(*stream));
    });
  };
  auto warm = connect();
  ASSERT_TRUE(loop.run_until([&] { return accepted.size() == 1; }, seconds(5)));

  // Looked up now: without a descriptor, UBSan cannot check what a call of it would be made on.
  const SocketCounters& counters = transport.counters();
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  auto starved = connect();  // takes the last descriptor that the limit below leaves
  rlimit tight = before;
  const int lowest_free = ::dup(0);
  ::close(lowest_free);
  tight.rlim_cur = static_cast<rlim_t>(lowest_free);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &tight), 0);
  const bool paused = loop.run_until([&] { return counters.accept_pauses >= 2; }, seconds(5));
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(paused);
  EXPECT_LE(counters.accept_errors, 4u);
  EXPECT_EQ(accepted.size(), 1u);
  EXPECT_TRUE(loop.run_until([&] { return accepted.size() == 2; }, seconds(5)));
}

}  // namespace
}  // namespace tailward::net
