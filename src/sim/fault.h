// What goes wrong with a host, and when.
//
// Thread safety: immutable once built.
#pragma once

#include <span>
#include <vector>

#include "base/time.h"
#include "hedge/engine/race.h"

namespace tailward::sim {

// One thing that is wrong with a host from `from` to `until`, counted from the start of the
// simulation. Faults may overlap: slow-downs multiply, a hang beats them.
struct Fault {
  Duration from{};
  Duration until = kForever;
  // What is under way goes on at 1/slow_by of its speed: work begun before the fault included.
  double slow_by = 1;
  // Nothing goes on, as in a stopped process; afterwards it goes on where it stood.
  bool hang = false;
  // Share of the attempts arriving meanwhile that end as `error`, after `error_after`, without
  // having waited for anything.
  double error_share = 0;
  Duration error_after = std::chrono::milliseconds(1);
  hedge::Outcome error = {.result = hedge::Outcome::Class::kBad};
};

// The faults of one host, made ready to be asked.
class FaultSchedule {
 public:
  // REQUIRES: slow_by > 0, 0 ≤ error_share ≤ 1.
  FaultSchedule(std::span<const Fault> faults, TimePoint origin);

  // When `work` that begins at `start` is done, its pace changing with the faults; kNever when it
  // hangs for ever.
  [[nodiscard]] TimePoint finish(TimePoint start, Duration work) const {
    return paces_.empty() ? start + work : finish_paced(start, work);
  }

  // The faults at `now` that make attempts fail.
  template <class F>
  void for_each_error(TimePoint now, F&& f) const {
    for (const Failing& failing : failing_) {
      if (now >= failing.from && now < failing.until) f(failing.fault);
    }
  }

 private:
  struct Pace {
    TimePoint from;
    double speed;  // work done per unit of time
  };
  struct Failing {
    TimePoint from;
    TimePoint until;
    Fault fault;
  };
  [[nodiscard]] TimePoint finish_paced(TimePoint start, Duration work) const;

  std::vector<Pace> paces_;  // in order of time; before the first the speed is 1
  std::vector<Failing> failing_;
};

}  // namespace tailward::sim
