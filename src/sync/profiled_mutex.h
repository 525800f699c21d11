// A std::mutex that knows what waiting for it costs.
//
// Works wherever std::mutex does: std::lock_guard, std::unique_lock, std::scoped_lock, and
// std::condition_variable_any. Not recursive, not fair: like std::mutex, the next to ask may get
// it. Uncontended, lock() and unlock() are one compare-and-swap each; clocks, stacks and sums are
// for contended calls alone. The lock is the one with three states of Drepper, "Futexes Are Tricky"
// (2011), mutex 2.
//
// Thread-safe as a mutex is; the profile, if any, must outlive the mutex and every call of
// unlock().
#pragma once

#include <atomic>
#include <cstdint>

#include "base/time.h"
#include "sync/contention_profile.h"

namespace tailward::sync {

class ProfiledMutex {
 public:
  // Keeps its own totals() and belongs to no profile.
  ProfiledMutex() = default;
  explicit ProfiledMutex(ContentionProfile& profile) : profile_(&profile) {}
  ~ProfiledMutex();  // REQUIRES: unlocked
  ProfiledMutex(const ProfiledMutex&) = delete;
  ProfiledMutex& operator=(const ProfiledMutex&) = delete;

  void lock() {
    if (!try_lock()) [[unlikely]] {
      lock_slow();
    }
  }
  // A refusal is no contention: nobody waits.
  [[nodiscard]] bool try_lock() noexcept {
    std::uint32_t free = kFree;
    return state_.compare_exchange_strong(free, kHeld, std::memory_order_acquire,
                                          std::memory_order_relaxed);
  }
  void unlock() {
    std::uint32_t held = kHeld;
    if (!state_.compare_exchange_strong(held, kFree, std::memory_order_release,
                                        std::memory_order_relaxed)) [[unlikely]] {
      unlock_slow();
    }
  }

  [[nodiscard]] ContentionTotals totals() const { return counters_.totals(); }
  // How many threads are blocked now. Whoever is counted here will find itself in the sums.
  [[nodiscard]] std::uint32_t blocked() const { return blocked_.load(std::memory_order_acquire); }

 private:
  static constexpr std::uint32_t kFree = 0;
  static constexpr std::uint32_t kHeld = 1;
  static constexpr std::uint32_t kContended = 2;  // held, and somebody may be blocked

  // A waiting thread, on its own stack.
  struct Waiter {
    TimePoint arrived;
    Waiter* next = nullptr;
    std::uint64_t charges_before = 0;  // written by the holder that takes it in
  };

  void lock_slow();
  void unlock_slow();
  void enter(Waiter& self);
  void take_in_arrivals();
  void leave(const Waiter& self);
  [[nodiscard]] TimePoint now() const;

  std::atomic<std::uint32_t> state_{kFree};
  std::atomic<std::uint32_t> blocked_{0};
  std::atomic<Waiter*> arrivals_{nullptr};  // pushed by waiters, taken as a whole by the holder
  ContentionProfile* const profile_ = nullptr;

  // Only the holder touches these. What all waiters together have waited since their last charge is
  // waiting_ × now − marks_, modulo 2^64; a waiter's mark is its arrival or, if that was later, the
  // last charge.
  std::uint64_t waiting_ = 0;
  std::uint64_t marks_ = 0;
  std::uint64_t charges_ = 0;  // unlocks that charged
  TimePoint last_charge_{};
  TimePoint held_since_{};            // zero: by a thread that did not wait
  TimePoint first_arrival_ = kNever;  // since the last charge

  ContentionCounters counters_;
};

}  // namespace tailward::sync
