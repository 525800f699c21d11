#include "sync/sharded_mutex.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace tailward::sync {
namespace {

TEST(ShardedMutexTest, TakesIntegralKeysModuloN) {
  using Mutex = ShardedMutex<16>;
  for (int key = 0; key < 100; ++key) {
    EXPECT_EQ(Mutex::index_of(key), static_cast<std::size_t>(key % 16));
  }
  EXPECT_EQ(Mutex::index_of(std::uint64_t{UINT64_MAX}), 15U);
  EXPECT_EQ(Mutex::index_of(-1), 15U);
  EXPECT_EQ(Mutex::index_of(std::int64_t{-16}), 0U);
}

TEST(ShardedMutexTest, SpreadsOtherKeysEvenly) {
  using Mutex = ShardedMutex<16>;
  constexpr int kKeys = 16'000;
  std::array<int, 16> found{};
  for (int i = 0; i < kKeys; ++i) ++found[Mutex::index_of("order-" + std::to_string(i))];
  for (const int count : found) EXPECT_NEAR(count, 1'000, 160);  // five standard deviations
}

TEST(ShardedMutexTest, HashesTextByItsCharacters) {
  using Mutex = ShardedMutex<1'009>;
  const std::string text = "order-42";
  EXPECT_EQ(Mutex::index_of(text), Mutex::index_of("order-42"));
  EXPECT_EQ(Mutex::index_of(text), Mutex::index_of(text.c_str()));
}

TEST(ShardedMutexTest, KeepsShardsOnTheirOwnCacheLines) {
  ShardedMutex<4> mutex;
  for (std::size_t i = 0; i + 1 < ShardedMutex<4>::size(); ++i) {
    const auto here = reinterpret_cast<std::uintptr_t>(&mutex.shard(i));
    const auto next = reinterpret_cast<std::uintptr_t>(&mutex.shard(i + 1));
    EXPECT_EQ(here % kCacheLine, 0U);
    EXPECT_GE(next - here, sizeof(ProfiledMutex));
  }
}

TEST(ShardedMutexTest, LocksOnlyTheShardOfTheKey) {
  ShardedMutex<4> mutex;
  const auto guard = mutex.lock_for(6);
  std::thread([&] {
    for (std::size_t i = 0; i < 4; ++i) {
      const bool free = mutex.shard(i).try_lock();
      EXPECT_EQ(free, i != 2) << i;
      if (free) mutex.shard(i).unlock();
    }
  }).join();
}

TEST(ShardedMutexTest, LocksAllForAWholeOperation) {
  ShardedMutex<4> mutex;
  {
    const auto guard = mutex.lock_all();
    std::thread([&] {
      for (std::size_t i = 0; i < 4; ++i) EXPECT_FALSE(mutex.shard(i).try_lock());
    }).join();
  }
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(mutex.shard(i).try_lock());
    mutex.shard(i).unlock();
  }
}

TEST(ShardedMutexTest, ReportsEveryShardToOneProfile) {
  ContentionProfile profile;
  ShardedMutex<2> mutex(profile);
  for (std::size_t i = 0; i < 2; ++i) {
    auto guard = mutex.lock_for(i);
    std::thread waiter([&] { const auto again = mutex.lock_for(i); });
    while (mutex.shard(i).blocked() == 0) std::this_thread::yield();
    guard.unlock();
    waiter.join();
  }
  EXPECT_EQ(mutex.shard(0).totals().contentions, 1U);
  EXPECT_EQ(mutex.shard(1).totals().contentions, 1U);
  EXPECT_EQ(profile.totals().contentions, 2U);
  EXPECT_EQ(profile.wait_total(), mutex.shard(0).totals().wait + mutex.shard(1).totals().wait);
}

TEST(ShardedMutexTest, NeverBlocksForEverWhenSomeLockAllAndOthersOne) {
  constexpr int kRounds = 2'000;
  ContentionProfile profile;
  ShardedMutex<8> mutex(profile);
  std::array<int, 8> values{};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRounds; ++i) {
        if (i % 8 == t) {
          const auto all = mutex.lock_all();
          for (int& value : values) ++value;
        } else {
          const auto one = mutex.lock_for(i);
          ++values[static_cast<std::size_t>(i) % 8];
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  int sum = 0;
  for (const int value : values) sum += value;
  // An eighth of each thread's rounds adds to all eight values, the others to one.
  EXPECT_EQ(sum, 4 * (kRounds / 8 * 8 + kRounds / 8 * 7));
}

}  // namespace
}  // namespace tailward::sync
