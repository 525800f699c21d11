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
// readings would be too low), and only while the rate at the baseline is healthy. A service that
// was sick from the start has a sick baseline: then the trigger rate itself and the server's own
// evidence must tell (hedge/verdict.h).
//
// Thread safety: one loop.
#pragma once

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
  };
  explicit Baseline(const Config& config) : config_(config) {}

  // `first_attempts` as measured now, `elapsed` since the last call.
  void update(const stats::Survival& first_attempts, Duration elapsed);

  [[nodiscard]] bool learned() const { return delay_.has_value(); }
  [[nodiscard]] std::optional<Duration> delay() const { return delay_; }
  [[nodiscard]] std::optional<Duration> median() const { return median_; }
  // Share of first attempts that last longer than delay(); 0 until learned.
  [[nodiscard]] double trigger_rate() const { return rate_; }

 private:
  void learn(const stats::Survival& first_attempts);

  Config config_;
  std::optional<Duration> delay_;
  std::optional<Duration> median_;
  double rate_ = 0;
  double learned_from_ = 0;  // samples, decayed
};

}  // namespace tailward::hedge
