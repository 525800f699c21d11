#include "sync/stack_table.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/rng.h"

namespace tailward::sync {
namespace {

constexpr std::size_t kStacksLimit = std::size_t{1}
                                     << 24;  // a slot has 32 bits, and 5 GB is enough

std::uint64_t hash_of(const Stack& stack) {
  std::uint64_t hash = stack.depth;
  for (const std::uintptr_t address : stack.view()) hash = mix64(hash ^ address);
  return hash;
}

}  // namespace

StackTable::StackTable(std::size_t stacks_max)
    : stacks_max_(std::min(stacks_max, kStacksLimit)),
      mask_(std::bit_ceil(2 * stacks_max_ + 1) - 1),
      rows_(std::make_unique<StackRow[]>(stacks_max_)),
      slots_(mask_ + 1) {}

StackRow& StackTable::intern(const Stack& stack) {
  TAILWARD_CHECK(stack.depth <= kFramesMax);
  if (stack.truncated) truncated_.fetch_add(1, std::memory_order_relaxed);
  std::size_t slot = hash_of(stack) & mask_;
  const std::lock_guard lock(mutex_);
  // At most half of the slots are taken: a free one ends the search.
  for (; slots_[slot] != 0; slot = (slot + 1) & mask_) {
    StackRow& row = rows_[slots_[slot] - 1];
    if (std::ranges::equal(row.stack_.view(), stack.view())) return row;
  }
  if (used_ == stacks_max_) return lost_;
  StackRow& row = rows_[used_++];
  row.stack_ = stack;
  slots_[slot] = static_cast<std::uint32_t>(used_);
  return row;
}

std::vector<const StackRow*> StackTable::rows() const {
  const std::lock_guard lock(mutex_);
  std::vector<const StackRow*> rows;
  rows.reserve(used_);
  for (std::size_t i = 0; i < used_; ++i) rows.push_back(&rows_[i]);
  return rows;
}

}  // namespace tailward::sync
