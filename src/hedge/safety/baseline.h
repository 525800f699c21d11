// What first attempts were like while the service was healthy.
//
// A delay that follows a quantile pins the trigger rate: q95 fires on 5 % whatever happens to the
// service. So the rate is also computed against a delay that does not follow: the quantile as it
// was learned while healthy. Its share of first attempts that last longer is the trigger rate at
// the baseline.
//
// Learned from the first `samples_min` first attempts, and anew whenever their number has doubled,
// until there are `samples_enough`: a share of 10 % from 200 samples may well be one of 15 %, which
// is the limit between healthy and not. It is learned anew only while what it says can be the noise
// of its few samples; a slow-down is no noise. Otherwise it moves towards what is measured, upwards
// with the time constant `adapt`, downwards ten times as fast (not at once: a minimum of noisy
// readings would be too low), and only while the rate at the baseline is healthy.
//
// Two things must not carry it along. Hedging itself makes servers slower: so it rises only on what
// was measured while hedging was off. And a slow ramp looks healthy at every step: so it rises by
// no more than `rise_max` above the lowest value of the day. A service that was sick from the start
// has a sick baseline: then the trigger rate itself, the switchback and the server's own evidence
// must tell (hedge/proof/verdict.h).
//
// Thread safety: one loop.
#pragma once

#include <cstdint>
#include <optional>

#include "base/time.h"
#include "stats/survival.h"

namespace tailward::hedge {

class Baseline {
 public:
  struct Config {
    double quantile = 0.95;
    double samples_min = 200;
    double samples_enough = 1000;
    Duration adapt = std::chrono::minutes(10);
    double healthy_rate = 0.15;
    double rise_max = 1.25;
    Duration day = std::chrono::hours(24);
    // The limit of hedge/safety/overload.h: this multiple of the median, and at least the upper
    // quartile.
    double limit_times = 2;
  };
  explicit Baseline(const Config& config) : config_(config) {}

  // `first_attempts` as measured now, `elapsed` since the last call. `unhedged`: they were measured
  // while hedging was off. `unfinished`: first attempts under way, which are the long ones: while
  // they are more than a twentieth of those measured, what is measured is too short to be learned.
  void update(const stats::Survival& first_attempts, Duration elapsed, bool unhedged,
              std::int64_t unfinished = 0);
  // Learns from scratch: the service has changed for good.
  void forget() { *this = Baseline(config_); }

  [[nodiscard]] bool learned() const { return levels_.has_value(); }
  [[nodiscard]] std::optional<Duration> delay() const;
  [[nodiscard]] std::optional<Duration> median() const;
  // Share of first attempts that last longer than delay(); 0 until learned.
  [[nodiscard]] double trigger_rate() const { return rate_; }

  // REQUIRES (of the three): learned().
  [[nodiscard]] Duration mean() const;
  [[nodiscard]] Duration limit() const;
  // The share of first attempts longer than limit() that is usual, 0.02…0.25.
  [[nodiscard]] double above_limit() const { return above_limit_; }

 private:
  struct Levels {  // ns: it moves by less than one
    double delay = 0;
    double median = 0;
    double mean = 0;
    double limit = 0;
  };
  [[nodiscard]] std::optional<Levels> measured(const stats::Survival& first_attempts) const;
  void learn(const stats::Survival& first_attempts, std::int64_t unfinished);
  void follow(const stats::Survival& first_attempts, Duration elapsed, bool unhedged);
  void set_above_limit(const stats::Survival& first_attempts);

  Config config_;
  std::optional<Levels> levels_;
  Levels lowest_;  // of the day
  Duration lowest_since_{};
  double above_limit_ = 0;
  double rate_ = 0;
  double learned_from_ = 0;  // samples, decayed
};

}  // namespace tailward::hedge
