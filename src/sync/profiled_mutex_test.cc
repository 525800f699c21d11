#include "sync/profiled_mutex.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <latch>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace tailward::sync {
namespace {

// Time as the test says. A stamp source is a plain function, so the hand of the clock is a static.
class HandClock {
 public:
  HandClock() { set(0); }
  static void set(std::int64_t ns) {
    hands().now.store(ns);
    hands().after.store(ns);
  }
  // The next reading is still of now; the ones after it are `ns`.
  static void jump_after_next_read(std::int64_t ns) { hands().after.store(ns); }
  static TimePoint read() {
    const std::int64_t now = hands().now.exchange(hands().after.load());
    return TimePoint{Duration{now}};
  }

 private:
  struct Hands {
    std::atomic<std::int64_t> now{0};
    std::atomic<std::int64_t> after{0};
  };
  static Hands& hands() {
    static Hands hands;
    return hands;
  }
};

void await_blocked(const ProfiledMutex& mutex, std::uint32_t count) {
  while (mutex.blocked() != count) std::this_thread::yield();
}

class ProfiledMutexTest : public testing::Test {
 protected:
  // A thread that asks for the lock at `ns`, is known to be blocked when this returns, and has
  // `use` done when it has the lock.
  [[nodiscard]] std::thread blocked_from(
      std::int64_t ns, std::function<void()> use = [] {}) {
    const std::uint32_t others = mutex_.blocked();
    HandClock::set(ns);
    std::thread thread([this, use = std::move(use)] {
      const std::lock_guard lock(mutex_);
      use();
    });
    await_blocked(mutex_, others + 1);
    return thread;
  }

  HandClock clock_;
  ContentionProfile profile_{{.sample_every = 1, .stamp = HandClock::read}};
  ProfiledMutex mutex_{profile_};
};

TEST_F(ProfiledMutexTest, CountsNothingWithoutContention) {
  for (int i = 0; i < 100; ++i) {
    const std::lock_guard lock(mutex_);
    HandClock::set(i);
  }
  EXPECT_EQ(profile_.totals().contentions, 0U);
  EXPECT_EQ(profile_.totals().contended_holds, 0U);
  EXPECT_EQ(profile_.wait_total(), Duration::zero());
}

TEST_F(ProfiledMutexTest, TriesWithoutWaiting) {
  ASSERT_TRUE(mutex_.try_lock());
  std::thread([this] { EXPECT_FALSE(mutex_.try_lock()); }).join();
  mutex_.unlock();
  ASSERT_TRUE(mutex_.try_lock());
  mutex_.unlock();
  EXPECT_EQ(profile_.totals().contentions, 0U);
}

TEST_F(ProfiledMutexTest, ChargesTheHolderWithTheWaitersTime) {
  mutex_.lock();
  std::thread waiter = blocked_from(100);
  HandClock::set(350);
  mutex_.unlock();
  waiter.join();
  const ContentionTotals totals = profile_.totals();
  EXPECT_EQ(totals.contentions, 1U);
  EXPECT_EQ(totals.wait, Duration{250});
  EXPECT_EQ(totals.wait_max, Duration{250});
  EXPECT_EQ(totals.charged, Duration{250});
  EXPECT_EQ(totals.handover, Duration::zero());
  EXPECT_EQ(totals.contended_holds, 1U);
  EXPECT_EQ(totals.hold,
            Duration{250});  // from the first waiter's arrival: the holder took no stamp
  EXPECT_EQ(mutex_.totals().wait, Duration{250});
  EXPECT_EQ(profile_.wait_total(), Duration{250});
}

TEST_F(ProfiledMutexTest, ChargesEachHoldWithItsOwnShareOfEveryWait) {
  // Whichever of the two comes first keeps the lock until 400, so that the other one waits for it
  // as well.
  bool first = true;
  const auto use = [&] {
    if (first) HandClock::set(400);
    first = false;
  };
  mutex_.lock();
  std::thread one = blocked_from(100, use);
  std::thread two = blocked_from(200, use);
  HandClock::set(300);
  mutex_.unlock();
  one.join();
  two.join();
  const ContentionTotals totals = profile_.totals();
  EXPECT_EQ(totals.contentions, 2U);
  EXPECT_EQ(totals.contended_holds, 2U);
  EXPECT_EQ(totals.charged, Duration{200 + 100 + 100});
  EXPECT_EQ(totals.wait, totals.charged);
  EXPECT_EQ(totals.hold, Duration{200 + 100});  // the second holder has a stamp: 300 to 400
  EXPECT_EQ(totals.hold_max, Duration{200});
  // The first hold, which is the longer one, answers for 300 of the 400.
  const auto holders = profile_.snapshot().holders.rows;
  ASSERT_EQ(holders.size(), 2U);
  EXPECT_EQ(holders[0].wait, Duration{300});
  EXPECT_EQ(holders[1].wait, Duration{100});
}

TEST_F(ProfiledMutexTest, SumsTheHandoverApart) {
  mutex_.lock();
  std::thread waiter = blocked_from(100);
  HandClock::set(300);
  HandClock::jump_after_next_read(330);  // the unlock reads 300, the waiter then 330
  mutex_.unlock();
  waiter.join();
  const ContentionTotals totals = profile_.totals();
  EXPECT_EQ(totals.charged, Duration{200});
  EXPECT_EQ(totals.handover, Duration{30});
  EXPECT_EQ(totals.wait, Duration{230});
}

TEST_F(ProfiledMutexTest, KeepsTheStacksOfWaiterAndHolder) {
  mutex_.lock();
  std::thread waiter = blocked_from(100);
  HandClock::set(350);
  mutex_.unlock();
  waiter.join();
  const ContentionSnapshot snapshot = profile_.snapshot();
  ASSERT_EQ(snapshot.holders.rows.size(), 1U);
  ASSERT_EQ(snapshot.waiters.rows.size(), 1U);
  EXPECT_EQ(snapshot.holders.rows[0].wait, Duration{250});
  EXPECT_EQ(snapshot.waiters.rows[0].wait, Duration{250});
  EXPECT_GT(snapshot.holders.rows[0].stack.size(), 2U);
  EXPECT_GT(snapshot.waiters.rows[0].stack.size(), 2U);
  EXPECT_NE(snapshot.holders.rows[0].stack, snapshot.waiters.rows[0].stack);
}

TEST_F(ProfiledMutexTest, IsExclusiveAndLosesNoUpdate) {
  constexpr int kThreads = 8;
  constexpr int kRounds = 3'000;
  ContentionProfile profile({.sample_every = 3, .stacks_max = 4});
  ProfiledMutex mutex(profile);
  int counter = 0;  // guarded by mutex; a race would be seen by the thread sanitizer
  std::latch start(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      start.arrive_and_wait();
      for (int i = 0; i < kRounds; ++i) {
        const std::lock_guard lock(mutex);
        if (++counter % 16 == 0) std::this_thread::yield();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counter, kThreads * kRounds);
  EXPECT_EQ(mutex.blocked(), 0U);
  const ContentionTotals totals = profile.totals();
  EXPECT_GT(totals.contentions, 0U);
  EXPECT_EQ(totals.wait, totals.charged + totals.handover);
  EXPECT_LE(totals.wait_max, totals.wait);
  EXPECT_EQ(mutex.totals().contentions, totals.contentions);
  EXPECT_EQ(mutex.totals().wait, totals.wait);
}

TEST_F(ProfiledMutexTest, CountsExactlyWhateverTheSampling) {
  constexpr int kWaits = 50;
  ContentionProfile profile({.sample_every = 10, .stamp = HandClock::read});
  ProfiledMutex mutex(profile);
  for (int i = 0; i < kWaits; ++i) {
    HandClock::set(1'000 * i);
    mutex.lock();
    std::thread waiter([&] { const std::lock_guard lock(mutex); });
    await_blocked(mutex, 1);
    HandClock::set(1'000 * i + 10 + i);
    mutex.unlock();
    waiter.join();
  }
  const ContentionTotals totals = profile.totals();
  EXPECT_EQ(totals.contentions, std::uint64_t{kWaits});
  EXPECT_EQ(totals.contended_holds, std::uint64_t{kWaits});
  EXPECT_EQ(totals.wait, Duration{kWaits * 10 + kWaits * (kWaits - 1) / 2});
  EXPECT_EQ(totals.wait_max, Duration{10 + kWaits - 1});
  EXPECT_EQ(totals.hold, totals.wait);
}

TEST_F(ProfiledMutexTest, WorksWithAConditionVariable) {
  std::condition_variable_any changed;
  int turn = 0;
  std::thread other([&] {
    std::unique_lock lock(mutex_);
    for (int i = 1; i < 200; i += 2) {
      changed.wait(lock, [&] { return turn == i; });
      ++turn;
      changed.notify_all();
    }
  });
  {
    std::unique_lock lock(mutex_);
    for (int i = 0; i < 200; i += 2) {
      changed.wait(lock, [&] { return turn == i; });
      ++turn;
      changed.notify_all();
    }
  }
  other.join();
  EXPECT_EQ(turn, 200);
}

// What std::mutex allows: the last user destroys it, though the unlock before may not have returned
// yet.
TEST_F(ProfiledMutexTest, MayBeDestroyedByTheNextOwner) {
  for (int i = 0; i < 300; ++i) {
    auto mutex = std::make_unique<ProfiledMutex>(profile_);
    mutex->lock();
    std::thread waiter([&] {
      mutex->lock();
      mutex->unlock();
      mutex.reset();
    });
    ProfiledMutex* const raw = mutex.get();
    await_blocked(*raw, 1);
    raw->unlock();
    waiter.join();
  }
  EXPECT_EQ(profile_.totals().contentions, 300U);
}

TEST(ProfiledMutexDeathTest, RefusesToUnlockWhatIsFree) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  ProfiledMutex mutex;
  EXPECT_DEATH(mutex.unlock(), "kContended");
}

TEST(ProfiledMutexDeathTest, RefusesToBeDestroyedWhileHeld) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(
      {
        ProfiledMutex mutex;
        mutex.lock();
      },
      "kFree");
}

TEST_F(ProfiledMutexTest, KeepsItsOwnTotalsWithoutAProfile) {
  ProfiledMutex mutex;
  mutex.lock();
  std::thread waiter([&] { const std::lock_guard lock(mutex); });
  await_blocked(mutex, 1);
  mutex.unlock();
  waiter.join();
  const ContentionTotals totals = mutex.totals();
  EXPECT_EQ(totals.contentions, 1U);
  EXPECT_GT(totals.wait, Duration::zero());
  EXPECT_EQ(totals.wait, totals.charged + totals.handover);
}

}  // namespace
}  // namespace tailward::sync
