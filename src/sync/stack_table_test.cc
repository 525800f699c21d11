#include "sync/stack_table.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace tailward::sync {
namespace {

using std::chrono::milliseconds;

Stack stack_of(std::initializer_list<std::uintptr_t> addresses) {
  Stack stack;
  for (const std::uintptr_t address : addresses) stack.frames[stack.depth++] = address;
  return stack;
}

TEST(StackTableTest, SumsEqualStacksInOneRow) {
  StackTable table(8);
  table.intern(stack_of({1, 2})).add(milliseconds(3));
  table.intern(stack_of({1, 2})).add(milliseconds(4));
  table.intern(stack_of({1, 3})).add(milliseconds(5));
  const auto rows = table.rows();
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0]->samples(), 2U);
  EXPECT_EQ(rows[0]->wait(), milliseconds(7));
  EXPECT_EQ(rows[1]->wait(), milliseconds(5));
}

TEST(StackTableTest, TellsAStackFromItsBeginning) {
  StackTable table(8);
  EXPECT_NE(&table.intern(stack_of({1, 2})), &table.intern(stack_of({1})));
  EXPECT_NE(&table.intern(stack_of({})), &table.intern(stack_of({0})));
  EXPECT_EQ(table.rows().size(), 4U);
}

TEST(StackTableTest, CountsWhatDoesNotFitAsLost) {
  constexpr std::uintptr_t kStacks = 10'000;
  StackTable table(1'000);
  for (int round = 0; round < 2; ++round) {
    for (std::uintptr_t i = 0; i < kStacks; ++i) table.intern(stack_of({i, 7})).add(Duration{1});
  }
  EXPECT_EQ(table.rows().size(), 1'000U);
  for (const StackRow* row : table.rows()) EXPECT_EQ(row->samples(), 2U);
  EXPECT_EQ(table.lost().samples(), 18'000U);
  EXPECT_EQ(table.lost().wait(), Duration{18'000});
}

TEST(StackTableTest, LosesEverythingWithoutRoom) {
  StackTable table(0);
  table.intern(stack_of({1})).add(Duration{5});
  EXPECT_TRUE(table.rows().empty());
  EXPECT_EQ(table.lost().wait(), Duration{5});
}

TEST(StackTableTest, AddsUpAcrossThreads) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 2'000;
  StackTable table(16);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&table] {
      for (std::uintptr_t i = 0; i < kRounds; ++i)
        table.intern(stack_of({i % 20})).add(Duration{1});
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::uint64_t samples = table.lost().samples();
  for (const StackRow* row : table.rows()) samples += row->samples();
  EXPECT_EQ(table.rows().size(), 16U);
  EXPECT_EQ(samples, std::uint64_t{kThreads} * kRounds);
}

[[gnu::noinline]] void capture_here(Stack& stack) {
  capture_stack(stack, __builtin_return_address(0));
  asm volatile("");  // not a tail call
}

[[gnu::noinline]] void capture_below(int depth, Stack& stack) {
  if (depth == 0) {
    capture_here(stack);
  } else {
    capture_below(depth - 1, stack);
  }
  asm volatile("");
}

TEST(StackTest, BeginsWithTheCallerAskedFor) {
  Stack one;
  Stack two;
  capture_below(0, one);
  capture_below(1, two);
  ASSERT_GT(one.depth, 2U);
  EXPECT_EQ(one.frames[0], two.frames[0]);
  EXPECT_FALSE(one.truncated);
}

TEST(StackTest, KeepsTheInnermostFramesOfADeepStack) {
  Stack stack;
  capture_below(100, stack);
  EXPECT_EQ(stack.depth, kFramesMax);
  EXPECT_TRUE(stack.truncated);
  EXPECT_EQ(stack.frames[5], stack.frames[6]);  // the recursion

  StackTable table(4);
  table.intern(stack);
  EXPECT_EQ(table.truncated(), 1U);
}

TEST(StackTest, TakesAllFramesWhenTheCallerIsNotAmongThem) {
  Stack stack;
  capture_stack(stack, nullptr);
  EXPECT_GT(stack.depth, 2U);
}

}  // namespace
}  // namespace tailward::sync
