// Stops hedging while requests fail: otherwise hedging speeds up the collapse. Never blocks a
// primary.
//
// closed → open when more than `error_rate` of the first attempts in the window failed (and there
// were enough of them) → half-open after `cool_down`: one hedge at a time is let through as a probe
// → closed when the probe is answered well and the error rate is down again, open once more
// otherwise, for twice as long, up to `cool_down_max`. Superseded attempts count as neither success
// nor failure.
//
// Thread safety: one loop. Time is given.
#pragma once

#include <cstdint>

#include "base/time.h"
#include "stats/window.h"

namespace tailward::hedge {

struct BreakerConfig {
  double error_rate = 0.10;
  std::uint64_t samples_min = 20;
  Duration window = std::chrono::seconds(10);
  Duration cool_down = std::chrono::seconds(1);
  Duration cool_down_max = std::chrono::seconds(30);
};

class Breaker {
 public:
  enum class State { kClosed, kOpen, kHalfOpen };

  explicit Breaker(const BreakerConfig& config);

  void first_attempt_ended(TimePoint now, bool failed);

  // True when a hedge may be sent now.
  [[nodiscard]] bool allows_hedge(TimePoint now);
  // A hedge that was allowed is sent. True: it is the probe, and its end must be told.
  [[nodiscard]] bool hedge_sent();
  void probe_ended(TimePoint now, bool failed);
  // The probe was superseded: it told nothing itself, the first attempts decide.
  void probe_withdrawn(TimePoint now);

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] double error_rate(TimePoint now) { return errors_.totals(now).share(); }
  [[nodiscard]] std::uint64_t times_opened() const { return times_opened_; }

 private:
  [[nodiscard]] bool failing(TimePoint now);
  void open(TimePoint now, Duration cool_down);
  void close();

  BreakerConfig config_;
  stats::WindowedShare errors_;
  State state_ = State::kClosed;
  TimePoint open_until_{};
  Duration cool_down_;
  bool probing_ = false;
  std::uint64_t times_opened_ = 0;
};

}  // namespace tailward::hedge
