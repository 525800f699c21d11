#include "sync/profiled_mutex.h"

#include <algorithm>

#include "base/check.h"

namespace tailward::sync {
namespace {

// Unsigned, because sums of many times wrap around and their differences must still be right.
std::uint64_t ticks(TimePoint time) {
  return static_cast<std::uint64_t>(time.time_since_epoch().count());
}

}  // namespace

ProfiledMutex::~ProfiledMutex() { TAILWARD_CHECK(state_.load(std::memory_order_relaxed) == kFree); }

TimePoint ProfiledMutex::now() const { return profile_ != nullptr ? profile_->now() : stamp(); }

void ProfiledMutex::enter(Waiter& self) {
  self.next = arrivals_.load(std::memory_order_relaxed);
  while (!arrivals_.compare_exchange_weak(self.next, &self, std::memory_order_release,
                                          std::memory_order_relaxed)) {
  }
}

void ProfiledMutex::take_in_arrivals() {
  Waiter* waiter = arrivals_.exchange(nullptr, std::memory_order_acquire);
  for (; waiter != nullptr; waiter = waiter->next) {
    waiter->charges_before = charges_;
    ++waiting_;
    marks_ += ticks(waiter->arrived);
    first_arrival_ = std::min(first_arrival_, waiter->arrived);
  }
}

void ProfiledMutex::leave(const Waiter& self) {
  take_in_arrivals();  // the caller itself, where no holder has done it yet
  const TimePoint mark = self.charges_before < charges_ ? last_charge_ : self.arrived;
  --waiting_;
  marks_ -= ticks(mark);
  held_since_ = now();
  counters_.wait_ended(held_since_ - self.arrived, held_since_ - mark);
  if (profile_ != nullptr) {
    profile_->counters().wait_ended(held_since_ - self.arrived, held_since_ - mark);
  }
}

[[gnu::noinline]] void ProfiledMutex::lock_slow() {
  Waiter self{now()};
  enter(self);
  bool owned = state_.exchange(kContended, std::memory_order_acquire) == kFree;
  const bool blocks = !owned;
  if (blocks) blocked_.fetch_add(1, std::memory_order_release);
  // Before blocking, where it delays nobody.
  StackRow* row = nullptr;
  if (profile_ != nullptr) {
    row = profile_->sample(ContentionView::kWaiters, __builtin_return_address(0));
  }
  while (!owned) {
    state_.wait(kContended, std::memory_order_relaxed);
    owned = state_.exchange(kContended, std::memory_order_acquire) == kFree;
  }
  if (blocks) blocked_.fetch_sub(1, std::memory_order_relaxed);
  leave(self);
  if (row != nullptr) row->add(held_since_ - self.arrived);
}

[[gnu::noinline]] void ProfiledMutex::unlock_slow() {
  TAILWARD_CHECK(state_.load(std::memory_order_relaxed) == kContended);
  const bool inherited = waiting_ > 0;
  take_in_arrivals();
  const TimePoint released = now();  // after taking them in: no arrival is later
  const bool contended = waiting_ > 0;
  const Duration charge{static_cast<std::int64_t>(waiting_ * ticks(released) - marks_)};
  if (contended) {
    const TimePoint since = held_since_ != TimePoint{} ? held_since_
                            : inherited                ? last_charge_
                                                       : first_arrival_;
    counters_.hold_ended(released - since, charge);
    if (profile_ != nullptr) profile_->counters().hold_ended(released - since, charge);
    marks_ = waiting_ * ticks(released);
    last_charge_ = released;
    ++charges_;
  }
  held_since_ = {};
  first_arrival_ = kNever;
  ContentionProfile* const profile = contended ? profile_ : nullptr;

  // From here on the mutex may be locked, unlocked and destroyed by others: only its address is
  // used. Sequentially consistent, because notify_one() looks for waiters and must not look before
  // the release.
  state_.exchange(kFree, std::memory_order_seq_cst);
  state_.notify_one();
  if (profile == nullptr) return;
  StackRow* const row = profile->sample(ContentionView::kHolders, __builtin_return_address(0));
  if (row != nullptr) row->add(charge);
}

}  // namespace tailward::sync
