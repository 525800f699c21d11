// Sums by stack, in memory that is fixed at construction.
//
// Thread-safe. intern() takes a short lock; add() is two relaxed additions. Rows live as long as
// the table.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/time.h"
#include "sync/stack.h"

namespace tailward::sync {

class StackRow {
 public:
  void add(Duration wait) {
    samples_.fetch_add(1, std::memory_order_relaxed);
    wait_ns_.fetch_add(wait.count(), std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t samples() const { return samples_.load(std::memory_order_relaxed); }
  [[nodiscard]] Duration wait() const { return Duration{wait_ns_.load(std::memory_order_relaxed)}; }
  [[nodiscard]] const Stack& stack() const { return stack_; }

 private:
  friend class StackTable;
  Stack stack_;
  std::atomic<std::uint64_t> samples_{0};
  std::atomic<std::int64_t> wait_ns_{0};
};

class StackTable {
 public:
  // Room for `stacks_max` different stacks, about 300 bytes each.
  explicit StackTable(std::size_t stacks_max);

  // The row of this stack, new or known. When the table is full, a new stack gets the row lost().
  StackRow& intern(const Stack& stack);

  // What could not be told apart for want of room: its samples are the count of hits of the limit.
  [[nodiscard]] const StackRow& lost() const { return lost_; }
  // How many times intern() was given a stack deeper than kFramesMax.
  [[nodiscard]] std::uint64_t truncated() const {
    return truncated_.load(std::memory_order_relaxed);
  }
  // Every row so far but lost(). The pointers stay good; the sums go on moving.
  [[nodiscard]] std::vector<const StackRow*> rows() const;

 private:
  const std::size_t stacks_max_;
  const std::size_t mask_;
  mutable std::mutex mutex_;  // of used_, the stacks in rows_, and slots_
  std::size_t used_ = 0;
  std::unique_ptr<StackRow[]> rows_;
  std::vector<std::uint32_t> slots_;  // open addressing: 0 for free, or a row's index plus one
  StackRow lost_;
  std::atomic<std::uint64_t> truncated_{0};
};

}  // namespace tailward::sync
