#include "io/timers.h"

#include <algorithm>

#include "base/check.h"

namespace tailward::io {

Timer::Timer(Timer&& other) noexcept
    : owner_(std::exchange(other.owner_, nullptr)),
      slot_(other.slot_),
      generation_(other.generation_) {}

Timer& Timer::operator=(Timer&& other) noexcept {
  if (this != &other) {
    cancel();
    owner_ = std::exchange(other.owner_, nullptr);
    slot_ = other.slot_;
    generation_ = other.generation_;
  }
  return *this;
}

Timer::~Timer() { cancel(); }

void Timer::cancel() {
  if (owner_ != nullptr) std::exchange(owner_, nullptr)->cancel(slot_, generation_);
}

bool Timer::armed() const { return owner_ != nullptr && owner_->armed(slot_, generation_); }

Timers::Timers(TimePoint start) : now_(start) {}
Timers::~Timers() = default;

Timer Timers::at(TimePoint when, Callback callback) {
  TAILWARD_CHECK(static_cast<bool>(callback));
  std::uint32_t index;
  if (free_.empty()) {
    index = static_cast<std::uint32_t>(slots_.size());
    slots_.emplace_back();
  } else {
    index = free_.back();
    free_.pop_back();
  }
  Slot& slot = slots_[index];
  slot.callback = std::move(callback);
  heap_.emplace_back();
  // A time in the past is due now. The order breaks ties: timers of one time fire as they were
  // armed.
  sift_up(heap_.size() - 1, Entry{std::max(when, now_), next_order_++, index});
  return Timer(this, index, slot.generation);
}

TimePoint Timers::next_event() const { return heap_.empty() ? kNever : heap_.front().when; }

std::size_t Timers::advance_to(TimePoint to) { return fire_until(to, true); }
std::size_t Timers::jump_to(TimePoint to) { return fire_until(to, false); }

void Timers::set_now(TimePoint now) {
  TAILWARD_CHECK(!firing_);
  TAILWARD_CHECK(now >= now_);
  now_ = now;
}

std::size_t Timers::fire_until(TimePoint to, bool step) {
  TAILWARD_CHECK(!firing_);
  TAILWARD_CHECK(to >= now_);
  firing_ = true;
  if (!step) now_ = to;
  // What a callback arms at or before `to` fires in the same call when stepping, as it would in
  // time. A jump fires only what was armed before it, so that a timer that re-arms itself cannot
  // hold the loop.
  const std::uint64_t armed_before = step ? UINT64_MAX : next_order_;
  std::size_t fired = 0;
  while (!heap_.empty() && heap_.front().when <= to && heap_.front().order < armed_before) {
    const Entry due = heap_.front();
    // Stepping shows each callback its own time, as a test with a manual clock wants it.
    if (step) now_ = std::max(now_, due.when);
    Callback callback = std::move(slots_[due.slot].callback);
    // Before the call: the callback may arm, cancel and destroy timers, its own included.
    remove(0);
    callback();
    ++fired;
  }
  now_ = to;
  firing_ = false;
  return fired;
}

void Timers::cancel(std::uint32_t slot, std::uint32_t generation) {
  if (armed(slot, generation)) remove(slots_[slot].heap_at);
}

bool Timers::armed(std::uint32_t slot, std::uint32_t generation) const {
  return slots_[slot].generation == generation && slots_[slot].heap_at != kIdle;
}

void Timers::place(std::size_t at, const Entry& entry) {
  heap_[at] = entry;
  slots_[entry.slot].heap_at = static_cast<std::uint32_t>(at);
}

void Timers::sift_up(std::size_t at, Entry entry) {
  while (at > 0) {
    const std::size_t parent = (at - 1) / 2;
    if (!entry.before(heap_[parent])) break;
    place(at, heap_[parent]);
    at = parent;
  }
  place(at, entry);
}

void Timers::sift_down(std::size_t at, Entry entry) {
  for (;;) {
    std::size_t child = 2 * at + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && heap_[child + 1].before(heap_[child])) ++child;
    if (!heap_[child].before(entry)) break;
    place(at, heap_[child]);
    at = child;
  }
  place(at, entry);
}

// Takes the entry at `at` out of the heap and frees its slot.
void Timers::remove(std::size_t at) {
  const std::uint32_t index = heap_[at].slot;
  const Entry last = heap_.back();
  heap_.pop_back();
  if (at < heap_.size()) {
    // The last entry takes the free place, which may be in another branch: it can belong above as
    // well as below.
    if (at > 0 && last.before(heap_[(at - 1) / 2])) {
      sift_up(at, last);
    } else {
      sift_down(at, last);
    }
  }
  Slot& slot = slots_[index];
  // The callback may own things whose destructors come back to this queue: empty the slot first.
  const Callback dropped = std::move(slot.callback);
  slot.heap_at = kIdle;
  ++slot.generation;
  free_.push_back(index);
}

}  // namespace tailward::io
