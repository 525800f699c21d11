// A route: what all requests of one kind share. Its policy, its hosts, what it has learned, what it
// may spend, and what came of it.
//
// The engine does no I/O, owns no thread and reads no clock: a driver (client/, sim/) runs races
// (hedge/race.h) on a route and calls tick() about every config().tick.
//
// Thread safety: one loop; plan_board() may be read from any thread. Memory: the hosts'
// (hedge/hosts.h) and about 130 KiB; nothing grows with the number of requests.
#pragma once

#include <cstdint>
#include <string>

#include "hedge/baseline.h"
#include "hedge/breaker.h"
#include "hedge/brownout.h"
#include "hedge/budget.h"
#include "hedge/decisions.h"
#include "hedge/hosts.h"
#include "hedge/planner.h"
#include "hedge/policy.h"
#include "hedge/proof.h"
#include "hedge/verdict.h"
#include "stats/histogram.h"
#include "stats/survival.h"
#include "stats/window.h"

namespace tailward::hedge {

struct RouteConfig {
  std::string name = "default";
  Policy policy;
  BudgetConfig budget;
  BreakerConfig breaker;
  HostsConfig hosts;
  VerdictLimits limits;
  // Of the adaptive policy only: the others do what they say and nothing else.
  BrownoutConfig brownout;
  ProofConfig proof;
  // When the verdict is *cause* because hedging does harm, hedging goes off by itself, and is tried
  // again after `retrial`, twice as long each time, up to `retrial_max`.
  bool auto_off = true;
  Duration retrial = std::chrono::minutes(5);
  Duration retrial_max = std::chrono::hours(1);
  // Everything is decided and counted, nothing is sent (any policy).
  bool dry_run = false;
  // Latencies and rates that are shown cover the last `window`.
  Duration window = std::chrono::seconds(60);
  Duration tick = std::chrono::milliseconds(100);
  // Samples of the estimators lose half their weight in so long.
  Duration half_life = std::chrono::seconds(30);
  // Nothing is hedged by a learned delay before so many first attempts have finished; more where
  // the quantile asks for it (ten samples beyond it).
  double samples_min = 100;
  // How long a race with nothing alive waits for a server that asked to be tried again later.
  Duration pushback_wait_max = std::chrono::seconds(1);
  std::uint64_t seed = 1;
};

// Why a hedge that was due was not sent. Each is counted once per stage of a request.
enum class Denied : std::uint8_t {
  kBudget,
  kNoOtherHost,
  kNotIdempotent,
  kBreaker,
  kBrownout,       // everything is slow (hedge/brownout.h)
  kNested,         // the request is itself a hedge
  kDeadline,       // what remains is too short for a fresh attempt
  kPushback,       // a server asked for none
  kNotReplayable,  // its body is too long to be kept
  kProbability,    // the plan's draw said no
  kDryRun,         // it would have been sent
};
inline constexpr std::size_t kDeniedCount = 11;
std::string_view to_string(Denied denied);

// Since the route began. Invariant, at every instant:
//   attempts = requests + hedges
//   attempts = succeeded + failed + superseded + cancelled + not sent + in flight
struct Counters {
  std::uint64_t requests = 0;
  // Could be hedged: idempotent, replayable, not itself a hedge, hedging on; the control group and
  // the switchback's slices without hedging are left out.
  std::uint64_t eligible = 0;
  std::uint64_t attempts = 0;
  std::uint64_t hedges = 0;
  std::uint64_t hedges_after_delay = 0;
  std::uint64_t hedges_after_failure = 0;
  std::uint64_t hedged_requests = 0;  // got a hedge because a delay had passed
  std::uint64_t due_requests = 0;     // the plan asked for a hedge, whether or not it was sent
  std::uint64_t hedge_wins = 0;
  std::array<std::uint64_t, kDeniedCount> denied{};
  // How attempts ended.
  std::uint64_t succeeded = 0;
  std::uint64_t failed = 0;
  std::uint64_t superseded = 0;       // another attempt won
  std::uint64_t cancelled = 0;        // the caller went away or its deadline passed
  std::uint64_t not_sent = 0;         // a limit of our own kept it from being sent
  std::uint64_t hedges_not_sent = 0;  // the hedges among them
  // How requests ended.
  std::uint64_t answered = 0;
  // Every attempt failed: the caller got the best of the failures.
  std::uint64_t answered_badly = 0;
  std::uint64_t timed_out = 0;
  std::uint64_t caller_gone = 0;
  // Time that superseded attempts had been running for: what the losers cost.
  Duration wasted{};

  // All fields, one by one: adds another run, or takes away what was counted before.
  Counters& operator+=(const Counters& other);
  Counters& operator-=(const Counters& before);

  [[nodiscard]] double extra_load() const {
    return requests == 0
               ? 0
               : static_cast<double>(hedges - hedges_not_sent) / static_cast<double>(requests);
  }
  [[nodiscard]] double trigger_rate() const {
    return eligible == 0 ? 0 : static_cast<double>(hedged_requests) / static_cast<double>(eligible);
  }
};

class Race;

class Route {
 public:
  // `shared_budget`: the pool's or process's, may be null, must outlive the route.
  explicit Route(RouteConfig config, Budget* shared_budget = nullptr);
  Route(const Route&) = delete;
  Route& operator=(const Route&) = delete;

  Result<HostIndex> add_host(std::string name) { return hosts_.add(std::move(name)); }

  // Ages the estimators, follows the baseline, looks for a brown-out, goes on with the switchback,
  // plans and publishes the plan.
  void tick(TimePoint now);
  // The service has changed for good: baseline and proof are learned anew.
  void forget_baseline();

  [[nodiscard]] const RouteConfig& config() const { return config_; }
  [[nodiscard]] const Counters& counters() const { return counters_; }
  [[nodiscard]] const Hosts& hosts() const { return hosts_; }
  [[nodiscard]] const Budget& budget() const { return budget_; }
  [[nodiscard]] Breaker& breaker() { return breaker_; }
  [[nodiscard]] const Baseline& baseline() const { return baseline_; }
  [[nodiscard]] const PlanBoard& plan_board() const { return board_; }
  [[nodiscard]] const Brownout& brownout() const { return brownout_; }
  [[nodiscard]] const Switchback& switchback() const { return switchback_; }
  [[nodiscard]] const Decisions& decisions() const { return decisions_; }
  // What the planner has planned and expects of it, as of the last tick(); adaptive only.
  [[nodiscard]] const PlannedHedges& planned() const { return planned_; }
  // Off by the verdict, since then.
  [[nodiscard]] std::optional<TimePoint> off_since() const {
    return off_ ? std::optional(off_since_) : std::nullopt;
  }
  [[nodiscard]] Proof proof(TimePoint now);
  // What hedging saves at that quantile, by the control group.
  [[nodiscard]] Saving saving(double quantile, TimePoint now) {
    return control_.saving(quantile, now);
  }

  // Answered requests, start to answer, over the last window.
  [[nodiscard]] stats::Histogram client_latency(TimePoint now) { return client_.merged(now); }
  // First attempts of all hosts, losers censored, as of the last tick().
  [[nodiscard]] const stats::Survival& first_attempts() const { return merged_; }
  // First attempts with every sample recorded until now.
  [[nodiscard]] stats::Survival first_attempts_now() const;

  // The verdict on the last window. `lock_wait_ratio`: the server's own evidence, where it is
  // known.
  [[nodiscard]] Verdict verdict(TimePoint now, std::optional<double> lock_wait_ratio = {});

 private:
  friend class Race;

  [[nodiscard]] bool adaptive() const { return config_.policy.kind == Policy::Kind::kAdaptive; }
  [[nodiscard]] Plan make_plan();
  // `none` where there is nothing to plan.
  [[nodiscard]] Plan adaptive_plan(const Plan& none);
  // Where a first attempt on that host is recorded: what a brown-out does is no law of the host's.
  [[nodiscard]] stats::Survival& estimator_of(HostIndex host) {
    return brownout_.state() == Brownout::State::kBrownout ? in_brownout_
                                                           : hosts_.first_attempts(host);
  }
  // How many hedges the plan asked for, against how many it was expected to: timers are late, hosts
  // differ. 1 while little is known.
  void calibrate(Duration elapsed);
  void watch_service(TimePoint now, Duration elapsed);
  void watch_harm(TimePoint now);
  void set_own_delays(const Plan& plan);
  // What becomes of an eligible request that begins now.
  [[nodiscard]] Group group_of_next();
  // The plan for a request on that host.
  void adjust_plan(Plan& plan, HostIndex host) const;
  // So many finished first attempts that delay and baseline can be learned; twice as many are kept.
  [[nodiscard]] double samples_needed() const;
  void deny(Denied why) { ++counters_.denied[static_cast<std::size_t>(why)]; }

  RouteConfig config_;
  Rng rng_;
  Hosts hosts_;
  Budget budget_;
  Breaker breaker_;
  Baseline baseline_;
  PlanBoard board_;
  Counters counters_;
  stats::Survival merged_;
  Brownout brownout_;
  stats::Survival in_brownout_;  // first attempts since it began
  ControlGroup control_;
  Switchback switchback_;
  Dependence dependence_;
  Decisions decisions_;
  PlannedHedges planned_;
  stats::Curve first_curve_;
  double hedges_expected_ = 0;  // by the plans, decayed
  double hedges_asked_ = 0;     // by the races, decayed
  double calibration_ = 1;
  Counters at_tick_;                // as they were at the last tick()
  std::size_t next_own_delay_ = 0;  // host
  bool off_ = false;                // by the verdict
  TimePoint off_since_{};
  TimePoint retrial_at_{};
  Duration off_for_{};
  std::int64_t measured_in_flight_ = 0;  // primaries whose latency will be the host's
  std::uint64_t harm_looked_at_ = 0;     // pairs of the switchback
  stats::WindowedHistogram client_;
  stats::WindowedShare hedged_;  // of eligible requests
  stats::WindowedShare due_;
  stats::WindowedShare hedges_;  // hedges (successes) and attempts (trials)
  TimePoint last_tick_{};
};

}  // namespace tailward::hedge
