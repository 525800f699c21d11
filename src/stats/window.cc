#include "stats/window.h"

#include <algorithm>

#include "base/check.h"

namespace tailward::stats {
namespace detail {

Turns::Turns(Duration length) : length_(length) { TAILWARD_CHECK(length > Duration{0}); }

std::int64_t Turns::advance(TimePoint now) {
  const std::int64_t time = now.time_since_epoch().count();
  std::int64_t turn = time / length_.count();
  if (time % length_.count() < 0) --turn;  // down, not towards zero
  if (!started_) {
    started_ = true;
    current_ = turn;
    return 0;
  }
  if (turn <= current_) return 0;
  // Unsigned, for the difference of two far ends does not fit.
  const std::uint64_t ahead =
      static_cast<std::uint64_t>(turn) - static_cast<std::uint64_t>(current_);
  current_ = turn;
  return static_cast<std::int64_t>(std::min<std::uint64_t>(ahead, INT64_MAX));
}

}  // namespace detail

namespace {

Duration part(Duration window, int parts) {
  TAILWARD_CHECK(window > Duration{0});
  return std::max(window / parts, Duration{1});
}

}  // namespace

double WindowedShare::Totals::share() const {
  return trials == 0 ? 0 : static_cast<double>(successes) / static_cast<double>(trials);
}

WindowedShare::WindowedShare(Duration window) : turns_(part(window, kSlices)) {}

void WindowedShare::record(TimePoint now, bool success, std::uint32_t times) {
  advance(now);
  for (Totals* totals : {&sum_, &slices_[static_cast<std::size_t>(at_)]}) {
    totals->trials += times;
    if (success) totals->successes += times;
  }
}

WindowedShare::Totals WindowedShare::totals(TimePoint now) {
  advance(now);
  return sum_;
}

void WindowedShare::clear() {
  slices_ = {};
  sum_ = {};
}

void WindowedShare::advance(TimePoint now) {
  const std::int64_t ahead = turns_.advance(now);
  if (ahead >= kSlices) {
    clear();
    return;
  }
  for (std::int64_t i = 0; i < ahead; ++i) {
    at_ = (at_ + 1) % kSlices;
    Totals& oldest = slices_[static_cast<std::size_t>(at_)];
    sum_.successes -= oldest.successes;
    sum_.trials -= oldest.trials;
    oldest = {};
  }
}

WindowedHistogram::WindowedHistogram(Duration window) : turns_(part(window, 2)) {}

void WindowedHistogram::record(TimePoint now, Duration latency, std::uint64_t times) {
  advance(now);
  halves_[static_cast<std::size_t>(at_)].record(latency, times);
}

std::uint64_t WindowedHistogram::count(TimePoint now) {
  advance(now);
  return halves_[0].count() + halves_[1].count();
}

Histogram WindowedHistogram::merged(TimePoint now) {
  advance(now);
  Histogram both = halves_[0];
  both.merge(halves_[1]);
  return both;
}

void WindowedHistogram::clear() {
  for (Histogram& half : halves_) half.clear();
}

void WindowedHistogram::advance(TimePoint now) {
  const std::int64_t ahead = turns_.advance(now);
  if (ahead >= 2) {
    clear();
  } else if (ahead == 1) {
    at_ = 1 - at_;
    halves_[static_cast<std::size_t>(at_)].clear();
  }
}

}  // namespace tailward::stats
