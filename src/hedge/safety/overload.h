// Is everything slow, or one host? Hedging helps against the second and harms in the first.
//
// Every host has a change detector (hedge/safety/change_detector.h), and the pool has one, too.
// They learn of each first attempt whether it is longer than limit(), as soon as that is known.
//
// The service is overloaded, and no hedge is allowed, while one of these holds:
//   - more than half of the hosts have shifted;
//   - the pool has shifted;
//   - more requests are in flight than the arrivals and the healthy latency account for (Little's
//     law: L = λW).
// When none of them holds any more, hedges come back in steps. When half of the hosts or fewer have
// shifted, those hosts are on probation (hedge/engine/hosts.h), and hedging goes on.
//
// The JSON output and the metrics call this a brown-out.
//
// Thread safety: one loop. Time is given. What is healthy is given too (hedge/safety/baseline.h);
// until it is known there is no overload.
#pragma once

#include <cstdint>

#include "base/rng.h"
#include "base/time.h"
#include "hedge/engine/hosts.h"
#include "hedge/safety/baseline.h"
#include "hedge/safety/change_detector.h"

namespace tailward::hedge {

struct OverloadConfig {
  bool enabled = true;
  // The share of a shifted host's first attempts that is longer than the limit, at least.
  double host_shifted = 0.6;
  // The pool as a whole: more than half of it slow, so that one slow host does not count as all.
  double pool_normal = 0.6;
  double pool_shifted = 0.9;
  // At most one false alarm in e^threshold samples (9 million).
  double threshold = 16;
  // Requests in flight: this multiple of what λW accounts for, plus a few that a burst may add.
  double in_flight_times = 4;
  double in_flight_more = 16;
  Duration step = std::chrono::milliseconds(500);  // of the way back: ¼, ½, all hedges
};

class Overload {
 public:
  enum class State { kClear, kOverloaded, kReturning };

  explicit Overload(const OverloadConfig& config)
      : config_(config), pool_scale_(config.pool_normal, config.pool_shifted, config.threshold) {}

  // A first attempt on `host` has lasted longer than limit(), or has ended before.
  void sample(Hosts& hosts, HostIndex host, bool longer, TimePoint now);
  // Follows the baseline; `arrived`: requests begun since the last call.
  void tick(Hosts& hosts, const Baseline& baseline, std::int64_t in_flight, std::uint64_t arrived,
            TimePoint now);

  // What separates long from usual; kForever until the baseline is known.
  [[nodiscard]] Duration limit() const { return limit_; }
  // Whether a hedge may be sent now.
  [[nodiscard]] bool allows_hedge(TimePoint now, Rng& rng);

  [[nodiscard]] State state() const { return state_; }
  // Requests a second, over about the last second.
  [[nodiscard]] double arrivals_per_s() const { return arrivals_per_s_; }
  [[nodiscard]] TimePoint since() const { return since_; }  // of the present state
  [[nodiscard]] std::uint64_t times() const { return times_; }

 private:
  void decide(Hosts& hosts, TimePoint now);

  OverloadConfig config_;
  ChangeScale host_scale_;
  ChangeScale pool_scale_;
  ChangeDetector pool_;
  State state_ = State::kClear;
  bool saturated_ = false;
  TimePoint since_{};
  TimePoint last_tick_{};
  Duration limit_ = kForever;
  double arrivals_per_s_ = 0;  // over about a second
  std::uint64_t times_ = 0;
};

std::string_view to_string(Overload::State state);

}  // namespace tailward::hedge
