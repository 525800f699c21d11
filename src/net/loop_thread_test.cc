#include "net/loop_thread.h"

#include <gtest/gtest.h>

#include <csignal>
#include <optional>
#include <string>
#include <thread>

namespace tailward::net {
namespace {

TEST(LoopThreadTest, RunsTasksOnItsOwnThreadAndWaitsForThem) {
  Loop loop;
  LoopThread thread(loop);
  std::thread::id where;
  bool current = false;
  thread.run([&] {
    where = std::this_thread::get_id();
    current = thread.is_current();
  });
  EXPECT_NE(where, std::this_thread::get_id());
  EXPECT_TRUE(current);
  EXPECT_FALSE(thread.is_current());
}

TEST(LoopThreadTest, RunsATaskAtOnceWhenItIsGivenOneOnItsOwnThread) {
  Loop loop;
  LoopThread thread(loop);
  std::string order;
  thread.run([&] {
    order += "outer ";
    thread.run([&] { order += "inner "; });
    order += "end";
  });
  EXPECT_EQ(order, "outer inner end");
}

TEST(LoopThreadTest, IsNoThreadForTheProgramsSignals) {
  Loop loop;
  LoopThread thread(loop);
  sigset_t on_loop;
  sigemptyset(&on_loop);
  thread.run([&] { pthread_sigmask(SIG_SETMASK, nullptr, &on_loop); });
  EXPECT_EQ(sigismember(&on_loop, SIGTERM), 1);
  sigset_t here;
  pthread_sigmask(SIG_SETMASK, nullptr, &here);
  EXPECT_EQ(sigismember(&here, SIGTERM), 0);
}

TEST(LoopThreadTest, EndsWithItsLoopReadyToBeRunAgain) {
  Loop loop;
  std::optional<LoopThread> thread(loop);
  thread->run([] {});
  thread.reset();
  bool ran = false;
  loop.post([&] { ran = true; });
  EXPECT_TRUE(loop.run_until([&] { return ran; }, std::chrono::seconds(10)));
}

}  // namespace
}  // namespace tailward::net
