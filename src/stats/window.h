// Rates and latencies over the recent past.
//
// Thread safety: one thread. No allocation. Time is given, never read. A clock that jumps far ahead
// empties a window; one that goes back is taken as standing still until it has caught up.
#pragma once

#include <array>
#include <cstdint>

#include "base/time.h"
#include "stats/histogram.h"

namespace tailward::stats {

namespace detail {

// Time in turns of equal length, counted from the clock's zero.
class Turns {
 public:
  // REQUIRES: length > 0.
  explicit Turns(Duration length);
  // Moves to the turn of `now` and says how many turns that is ahead; 0 when it is not ahead. The
  // first call is 0 ahead.
  std::int64_t advance(TimePoint now);

 private:
  Duration length_;
  std::int64_t current_ = 0;
  bool started_ = false;
};

}  // namespace detail

// Successes and trials over a sliding window made of kSlices slices; memory fixed, O(1) amortised.
// It covers the slice under way and the kSlices − 1 before it: more than 9/10 of the window, and at
// most the whole of it.
class WindowedShare {
 public:
  static constexpr int kSlices = 10;
  // REQUIRES: window > 0.
  explicit WindowedShare(Duration window);
  void record(TimePoint now, bool success, std::uint32_t times = 1);
  struct Totals {
    std::uint64_t successes = 0;
    std::uint64_t trials = 0;
    [[nodiscard]] double share() const;  // 0 when there were no trials
  };
  [[nodiscard]] Totals totals(TimePoint now);
  void clear();

 private:
  void advance(TimePoint now);

  detail::Turns turns_;
  int at_ = 0;
  Totals sum_;
  std::array<Totals, kSlices> slices_{};
};

// A histogram of the recent past, in two halves that take turns. At `now` it covers the half window
// under way and the whole half before it. The halves are counted from the clock's zero: with h =
// window ÷ 2, it covers all since (⌊now ÷ h⌋ − 1) × h, that is half the window just after a turn
// and the whole of it just before the next. Memory fixed: two histograms, 18 KiB.
class WindowedHistogram {
 public:
  // REQUIRES: window > 0.
  explicit WindowedHistogram(Duration window);
  void record(TimePoint now, Duration latency, std::uint64_t times = 1);
  [[nodiscard]] std::uint64_t count(TimePoint now);
  // Both halves merged: a copy of 9 KiB, to ask many things of.
  [[nodiscard]] Histogram merged(TimePoint now);
  void clear();

 private:
  void advance(TimePoint now);

  detail::Turns turns_;
  int at_ = 0;
  std::array<Histogram, 2> halves_{};
};

}  // namespace tailward::stats
