#include "base/unique_function.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace tailward {
namespace {

// Counts the existing copies of itself and drags `Size` bytes along.
template <std::size_t Size>
struct Counted {
  explicit Counted(int* alive) : alive_(alive) { ++*alive_; }
  Counted(Counted&& other) noexcept
      : alive_(other.alive_), load_(other.load_), calls_(other.calls_) {
    ++*alive_;
  }
  ~Counted() { --*alive_; }
  int operator()(int x) { return x + static_cast<int>(load_[0]) + ++calls_; }

 private:
  int* alive_;
  std::array<unsigned char, Size> load_{};
  int calls_ = 0;
};

using Function = UniqueFunction<int(int)>;

TEST(UniqueFunctionTest, IsEmptyUntilGivenSomething) {
  Function function;
  EXPECT_FALSE(function);
  EXPECT_FALSE(Function(nullptr));
  function = [](int x) { return 2 * x; };
  EXPECT_TRUE(function);
  EXPECT_EQ(function(21), 42);
  function = nullptr;
  EXPECT_FALSE(function);
}

TEST(UniqueFunctionDeathTest, CallingAnEmptyOneIsABug) {
  Function function;
  EXPECT_DEATH(function(1), "bug");
}

TEST(UniqueFunctionTest, TakesFunctionPointersToo) {
  Function absolute = static_cast<int (*)(int)>([](int x) { return x < 0 ? -x : x; });
  EXPECT_EQ(absolute(-3), 3);
}

TEST(UniqueFunctionTest, TakesMembersToo) {
  UniqueFunction<std::size_t(const std::vector<int>&)> size = &std::vector<int>::size;
  EXPECT_EQ(size({1, 2, 3}), 3U);
}

TEST(UniqueFunctionTest, DropsAResultThatNobodyAskedFor) {
  int calls = 0;
  UniqueFunction<void()> function = [&calls] { return ++calls; };
  function();
  EXPECT_EQ(calls, 1);
}

TEST(UniqueFunctionTest, KeepsItsStateBetweenCalls) {
  Function counter = [n = 0](int by) mutable { return n += by; };
  counter(2);
  EXPECT_EQ(counter(3), 5);
}

TEST(UniqueFunctionTest, HoldsWhatCannotBeCopiedAndPassesItOn) {
  UniqueFunction<std::unique_ptr<int>(std::unique_ptr<int>)> add =
      [own = std::make_unique<int>(4)](std::unique_ptr<int> given) {
        *given += *own;
        return given;
      };
  EXPECT_EQ(*add(std::make_unique<int>(3)), 7);
}

TEST(UniqueFunctionTest, PassesReferencesWithoutCopies) {
  UniqueFunction<void(std::vector<int>&)> push = [](std::vector<int>& to) { to.push_back(1); };
  std::vector<int> numbers;
  push(numbers);
  EXPECT_EQ(numbers.size(), 1U);
}

template <std::size_t Size>
void expect_one_owner() {
  int alive = 0;
  {
    Function first = Counted<Size>(&alive);
    EXPECT_EQ(alive, 1);
    EXPECT_EQ(first(10), 11);
    Function second = std::move(first);
    EXPECT_EQ(alive, 1);
    EXPECT_FALSE(first);        // NOLINT(bugprone-use-after-move): that it is empty is the point
    EXPECT_EQ(second(10), 12);  // and the state has moved along
    Function third = Counted<Size>(&alive);
    EXPECT_EQ(alive, 2);
    third = std::move(second);  // destroys what third held
    EXPECT_EQ(alive, 1);
    EXPECT_EQ(third(10), 13);
    Function& same = third;
    third = std::move(same);
    EXPECT_EQ(alive, 1);
    EXPECT_EQ(third(10), 14);
    third = nullptr;
    EXPECT_EQ(alive, 0);
    third = Counted<Size>(&alive);
  }
  EXPECT_EQ(alive, 0);
}

TEST(UniqueFunctionTest, ASmallCallableHasOneOwnerAndIsDestroyedOnce) { expect_one_owner<8>(); }
TEST(UniqueFunctionTest, ALargeCallableHasOneOwnerAndIsDestroyedOnce) { expect_one_owner<200>(); }

TEST(UniqueFunctionTest, ASmallCallableMovesWithItsOwnerAndALargeOneStaysOnTheHeap) {
  struct Small {
    std::array<char, 48> room;
    const void* operator()() { return this; }
  };
  struct Large {
    std::array<char, 49> room;
    const void* operator()() { return this; }
  };
  const auto inside = [](const void* at, const auto& owner) {
    const auto from = reinterpret_cast<std::uintptr_t>(&owner);
    const auto here = reinterpret_cast<std::uintptr_t>(at);
    return here >= from && here < from + sizeof(owner);
  };
  UniqueFunction<const void*()> small = Small{};
  EXPECT_TRUE(inside(small(), small));
  UniqueFunction<const void*()> moved = std::move(small);
  EXPECT_TRUE(inside(moved(), moved));
  UniqueFunction<const void*()> large = Large{};
  const void* at = large();
  EXPECT_FALSE(inside(at, large));
  UniqueFunction<const void*()> large_moved = std::move(large);
  EXPECT_EQ(large_moved(), at);
}

TEST(UniqueFunctionTest, ACallableWhoseMoveMayThrowIsNotMoved) {
  struct Throwing {
    Throwing() = default;
    Throwing(Throwing&&) noexcept(false) {}
    const void* operator()() { return this; }
  };
  UniqueFunction<const void*()> first = Throwing();
  const void* at = first();
  UniqueFunction<const void*()> second = std::move(first);
  EXPECT_EQ(second(), at);
}

}  // namespace
}  // namespace tailward
