// Where threads wait for locks, and who makes them wait.
//
// A ContentionProfile belongs to the program; the mutexes to be watched are given it when they are
// made. Two kinds of figures:
// - totals: every contention is counted and every wait is timed, whatever the sampling;
// - stacks: of one contention in `sample_every`, drawn at random (from the seed), the stack is
//   kept. Each stands for `sample_every` of them, so that the sums are right on average for every
//   stack.
// And two views of the stacks:
// - waiters: who waited, from asking for the lock to having it;
// - holders: who is to blame. The one who unlocks while others wait is charged with what all of
//   them waited since the previous unlock (Go's mutex profile charges the unlocker likewise). What
//   then passes until a waiter runs with the lock is nobody's hold: it is the hand-over, summed
//   apart. Over finished waits: wait = charged + handover, to the nanosecond.
//
// Thread-safe. The profile must outlive its mutexes and every call of their unlock().
// Memory is fixed at construction, about 600 bytes for each of `stacks_max`.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/time.h"
#include "sync/stack.h"
#include "sync/stack_table.h"
#include "sync/stamp.h"

namespace tailward::sync {

struct ContentionTotals {
  std::uint64_t contentions = 0;  // lock() calls that found the lock taken, and have it now
  Duration wait{};                // what they waited
  Duration wait_max{};
  Duration handover{};                // the part of `wait` after the last unlock
  std::uint64_t contended_holds = 0;  // unlock() calls that found others waiting
  // How long those holds lasted. A holder that did not wait itself took no stamp: its hold is
  // counted from the first moment another thread waited during it.
  Duration hold{};
  Duration hold_max{};
  Duration charged{};  // what others waited during them; a wait still going on is charged, not yet
                       // in `wait`
};

// The sums above, kept by many threads.
class ContentionCounters {
 public:
  void wait_ended(Duration wait, Duration handover);
  void hold_ended(Duration hold, Duration charged);
  [[nodiscard]] ContentionTotals totals() const;
  [[nodiscard]] Duration wait() const { return Duration{wait_ns_.load(std::memory_order_relaxed)}; }

 private:
  std::atomic<std::uint64_t> contentions_{0};
  std::atomic<std::int64_t> wait_ns_{0};
  std::atomic<std::int64_t> wait_max_ns_{0};
  std::atomic<std::int64_t> handover_ns_{0};
  std::atomic<std::uint64_t> contended_holds_{0};
  std::atomic<std::int64_t> hold_ns_{0};
  std::atomic<std::int64_t> hold_max_ns_{0};
  std::atomic<std::int64_t> charged_ns_{0};
};

enum class ContentionView { kHolders, kWaiters };

struct ContentionOptions {
  std::uint32_t sample_every = 10;  // 1: every stack; 0: no stacks, only totals
  std::size_t stacks_max = 1024;    // in each view; what does not fit is summed as lost
  std::uint64_t seed = 1;           // of the choice of samples
  StampSource stamp = sync::stamp;
};

struct ContentionRow {
  std::vector<std::uintptr_t> stack;  // return addresses, the innermost first; empty where unknown
  std::uint64_t samples = 0;          // how many were kept
  std::uint64_t contentions = 0;      // how many they stand for: samples × sample_every
  Duration wait{};                    // likewise
};

struct ContentionRows {
  std::vector<ContentionRow> rows;  // the longest wait first
  ContentionRow lost;               // stacks that came when stacks_max were known
  std::uint64_t truncated = 0;      // samples whose stack was deeper than kFramesMax
};

struct ContentionSnapshot {
  ContentionTotals totals;
  ContentionRows holders;
  ContentionRows waiters;
  std::uint32_t sample_every = 0;
  Duration covered{};  // from the profile's construction to now
  std::int64_t taken_unix_ns = 0;

  [[nodiscard]] const ContentionRows& rows(ContentionView view) const {
    return view == ContentionView::kHolders ? holders : waiters;
  }
};

class ContentionProfile {
 public:
  explicit ContentionProfile(const ContentionOptions& options = {});
  ContentionProfile(const ContentionProfile&) = delete;
  ContentionProfile& operator=(const ContentionProfile&) = delete;

  // Over all mutexes of this profile, those that are gone included. One load: fit for a /stats
  // page.
  [[nodiscard]] Duration wait_total() const { return counters_.wait(); }
  [[nodiscard]] ContentionTotals totals() const { return counters_.totals(); }
  // Everything. While locks are in use, sums that belong together may differ by what is under way.
  [[nodiscard]] ContentionSnapshot snapshot() const;

  // For the locks.
  [[nodiscard]] TimePoint now() const { return options_.stamp(); }
  [[nodiscard]] ContentionCounters& counters() { return counters_; }
  // One contention more. Where it is drawn, the row to add its wait to; otherwise null. The stack
  // is the calling thread's, from `return_address` outwards (sync/stack.h).
  [[nodiscard]] StackRow* sample(ContentionView view, const void* return_address);
  // The same with a stack that the caller has.
  [[nodiscard]] StackRow* sample(ContentionView view, const Stack& stack);

 private:
  struct View {
    explicit View(std::size_t stacks_max) : table(stacks_max) {}
    StackTable table;
    std::atomic<std::uint64_t> events{0};
  };

  [[nodiscard]] View& view(ContentionView which) {
    return which == ContentionView::kHolders ? holders_ : waiters_;
  }
  [[nodiscard]] bool drawn(ContentionView which);
  [[nodiscard]] ContentionRow row_of(const StackRow& row) const;
  [[nodiscard]] ContentionRows rows_of(const View& view) const;

  const ContentionOptions options_;
  const TimePoint created_;
  ContentionCounters counters_;
  View holders_;
  View waiters_;
};

}  // namespace tailward::sync
