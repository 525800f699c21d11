// Time and timers, as one object that is handed to whoever needs them.
//
// Thread safety: everything here belongs to one loop, that is to one thread.
//
// A Clock's now() is the same for the whole of one loop turn, so that pacing, deadlines and budgets
// agree with each other; precise_now() takes a fresh reading and is for send and receive stamps
// only.
#pragma once

#include <cstdint>
#include <vector>

#include "base/time.h"
#include "base/unique_function.h"

namespace tailward::io {

class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual TimePoint now() const = 0;
  [[nodiscard]] virtual TimePoint precise_now() const = 0;
};

class Timers;

// An armed timer. Destroying or resetting it cancels it: its callback then never runs. Move-only.
// REQUIRES: the Timers it came from outlives it.
class Timer {
 public:
  Timer() = default;
  Timer(Timer&& other) noexcept;
  Timer& operator=(Timer&& other) noexcept;
  ~Timer();

  void cancel();
  // False once it has fired or was cancelled.
  [[nodiscard]] bool armed() const;

 private:
  friend class Timers;
  Timer(Timers* owner, std::uint32_t slot, std::uint32_t generation)
      : owner_(owner), slot_(slot), generation_(generation) {}

  Timers* owner_ = nullptr;
  std::uint32_t slot_ = 0;
  std::uint32_t generation_ = 0;
};

// A passive queue of timers with the clock they go by. It never waits and never reads a clock: its
// driver moves it, a real loop (net/loop.h) by the machine's clock, a test or a simulation by hand.
//
// Timers due at the same time fire in the order in which they were armed. A callback may arm,
// cancel and destroy timers, its own included. Arming and cancelling are O(log n); slots are
// reused, so that a steady state allocates nothing.
class Timers : public Clock {
 public:
  using Callback = UniqueFunction<void()>;

  // Time starts at one second, not at zero, so that a zero is always an unset value.
  explicit Timers(TimePoint start = TimePoint{std::chrono::seconds(1)});
  ~Timers() override;
  Timers(const Timers&) = delete;
  Timers& operator=(const Timers&) = delete;

  [[nodiscard]] TimePoint now() const override { return now_; }
  [[nodiscard]] TimePoint precise_now() const override { return now_; }

  // Runs `callback` once, at `when` or as soon after it as the driver gets there. A `when` in the
  // past fires at the next advance_to(), never inside this call.
  [[nodiscard]] Timer at(TimePoint when, Callback callback);
  [[nodiscard]] Timer after(Duration delay, Callback callback) {
    return at(now_ + delay, std::move(callback));
  }

  // When the earliest armed timer is due; kNever when none is armed.
  [[nodiscard]] TimePoint next_event() const;

  // Moves now() to `to`, firing what is due in order; now() stands at each timer's own time while a
  // manual queue fires it (see `jump` for a real loop). Returns how many fired.
  // REQUIRES: to >= now(); not called from a callback.
  std::size_t advance_to(TimePoint to);

  // Like advance_to(), but now() is `to` before the first callback runs, as in a loop turn that
  // woke late: a real loop must not hand out times that are over.
  std::size_t jump_to(TimePoint to);

  [[nodiscard]] std::size_t armed_count() const { return heap_.size(); }

 protected:
  // Moves now() without firing what is due: for a loop that handles what else is ready first and
  // calls jump_to() later in the same turn. REQUIRES: not called from a callback.
  void set_now(TimePoint now);

 private:
  friend class Timer;

  struct Slot {
    Callback callback;
    std::uint32_t generation = 0;
    std::uint32_t heap_at = 0;  // kIdle when not armed
  };
  struct Entry {
    TimePoint when;
    std::uint64_t order;
    std::uint32_t slot;
    [[nodiscard]] bool before(const Entry& other) const {
      return when != other.when ? when < other.when : order < other.order;
    }
  };
  static constexpr std::uint32_t kIdle = UINT32_MAX;

  void cancel(std::uint32_t slot, std::uint32_t generation);
  [[nodiscard]] bool armed(std::uint32_t slot, std::uint32_t generation) const;
  void place(std::size_t at, const Entry& entry);
  void sift_up(std::size_t at, Entry entry);
  void sift_down(std::size_t at, Entry entry);
  void remove(std::size_t at);
  std::size_t fire_until(TimePoint to, bool step);

  TimePoint now_;
  std::uint64_t next_order_ = 0;
  std::vector<Entry> heap_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
  bool firing_ = false;
};

}  // namespace tailward::io
