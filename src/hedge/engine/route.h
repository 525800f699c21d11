// A route: what all requests of one kind share. Its policy, its hosts, what it has learned, what it
// may spend, and what came of it.
//
// The engine does no I/O, owns no thread and reads no clock: a driver (client/, sim/) runs races
// (hedge/engine/race.h) on a route and calls tick() about every config().tick.
//
// Thread safety: one loop; plan_board() may be read from any thread. Memory: the hosts'
// (hedge/engine/hosts.h) and about 130 KiB; nothing grows with the number of requests.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "hedge/engine/counters.h"
#include "hedge/engine/decisions.h"
#include "hedge/engine/hosts.h"
#include "hedge/engine/request.h"
#include "hedge/planning/calibration.h"
#include "hedge/planning/planner.h"
#include "hedge/planning/policy.h"
#include "hedge/proof/proof.h"
#include "hedge/proof/verdict.h"
#include "hedge/safety/auto_off.h"
#include "hedge/safety/baseline.h"
#include "hedge/safety/breaker.h"
#include "hedge/safety/budget.h"
#include "hedge/safety/overload.h"
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
  OverloadConfig overload;
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

class Route {
 public:
  // `shared_budget`: the pool's or process's, may be null, must outlive the route.
  explicit Route(RouteConfig config, Budget* shared_budget = nullptr);
  Route(const Route&) = delete;
  Route& operator=(const Route&) = delete;

  Result<HostIndex> add_host(std::string name) { return hosts_.add(std::move(name)); }

  // Ages the estimators, follows the baseline, looks for an overload, goes on with the switchback,
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
  [[nodiscard]] const Overload& overload() const { return overload_; }
  [[nodiscard]] const Switchback& switchback() const { return switchback_; }
  [[nodiscard]] const Decisions& decisions() const { return decisions_; }
  // What the planner has planned and expects of it, as of the last tick(); adaptive only.
  [[nodiscard]] const PlannedHedges& planned() const { return planned_; }
  // Off by the verdict, since then.
  [[nodiscard]] std::optional<TimePoint> off_since() const { return auto_off_.since(); }
  [[nodiscard]] Proof proof(TimePoint now);
  // What hedging saves at that quantile, by the control group.
  [[nodiscard]] Saving saving(double quantile, TimePoint now) {
    return control_.saving(quantile, now);
  }

  // Answered requests, start to answer, over the last window.
  [[nodiscard]] stats::Histogram client_latency(TimePoint now) {
    return windows_.client.merged(now);
  }
  // First attempts of all hosts, losers censored, as of the last tick().
  [[nodiscard]] const stats::Survival& first_attempts() const { return merged_; }
  // First attempts with every sample recorded until now.
  [[nodiscard]] stats::Survival first_attempts_now() const;

  // The verdict on the last window. `lock_wait_ratio`: the server's own evidence, where it is
  // known.
  [[nodiscard]] Verdict verdict(TimePoint now, std::optional<double> lock_wait_ratio = {});

  // ---- how a request passes through the route: for races (hedge/engine/race.h) only ------------
  // begin_request(); any number of stage_due(), begin_hedge() and end_attempt(); end_request() or
  // abandon_request(). Each of them keeps the counters' invariants, which tick() checks.

  // Draws what becomes of the request and begins its primary, the attempt on ticket.host.
  // `ticket`: a fresh one, filled in place: a copy costs as much as a tenth of the whole request.
  void begin_request(const RequestInfo& request, TimePoint now, Ticket& ticket);
  // The delay of a stage has passed, and `primary_running` or not. Whether a hedge is wanted now.
  [[nodiscard]] bool stage_due(Ticket& ticket, const Stage& stage, bool primary_running,
                               TimePoint now);
  // Begins a hedge on a host that is not `used`, with a token from the budget. Empty: denied.
  [[nodiscard]] std::optional<Attempt> begin_hedge(Ticket& ticket, std::span<const HostIndex> used,
                                                   bool after_failure, TimePoint now);
  // Whether begin_hedge() after a failure would be allowed as things are; begins nothing.
  [[nodiscard]] bool would_hedge(std::span<const HostIndex> used, TimePoint now);
  // A hedge is not sent for a reason that only the race knows.
  void deny(Ticket& ticket, Denied why);
  void end_attempt(Ticket& ticket, const Attempt& attempt, AttemptEnd end, TimePoint now);
  // REQUIRES: every attempt of the request has ended. `winner`: whose response the caller gets.
  void end_request(const Ticket& ticket, Ending ending, AttemptIndex winner, TimePoint now);
  // The race was destroyed under way. REQUIRES: its attempts have ended as kAbandoned.
  void abandon_request();

 private:
  // What verdict() and the figures of the last window are made of.
  struct Windows {
    explicit Windows(Duration window)
        : client(window), hedged(window), due(window), hedges(window) {}
    stats::WindowedHistogram client;
    stats::WindowedShare hedged;  // of eligible requests
    stats::WindowedShare due;
    stats::WindowedShare hedges;  // hedges (successes) and attempts (trials)
  };

  [[nodiscard]] bool adaptive() const { return config_.policy.kind == Policy::Kind::kAdaptive; }
  [[nodiscard]] bool overloaded() const {
    return overload_.state() == Overload::State::kOverloaded;
  }
  [[nodiscard]] Plan make_plan();
  // `none` where there is nothing to plan.
  [[nodiscard]] Plan adaptive_plan(const Plan& none);
  void calibrate(Duration elapsed);
  void watch_service(TimePoint now, Duration elapsed);
  void set_per_host_delays(const Plan& plan);
  // What becomes of an eligible request that begins now.
  [[nodiscard]] Group group_of_next();
  [[nodiscard]] HostIndex choose_primary(Ticket& ticket);
  // The plan for a request on that host.
  void adjust_plan(Plan& plan, HostIndex host) const;
  // Why a hedge may not be sent now; otherwise its host, with its token taken from the budget.
  [[nodiscard]] std::optional<Denied> admit_hedge(std::span<const HostIndex> used,
                                                  bool after_failure, TimePoint now,
                                                  HostIndex& host);
  void begin_attempt(Ticket& ticket, HostIndex host, bool primary, TimePoint now);
  void count_end(const Attempt& attempt, AttemptEnd end, TimePoint now);
  // What the end of an attempt tells of its host, and of hedging.
  void learn(Ticket& ticket, const Attempt& attempt, Duration elapsed, bool censored);
  // What the first attempt tells of its host: longer than usual, or not.
  void sample_change(Ticket& ticket, Duration elapsed, bool ended, TimePoint now);
  // How many finished first attempts it takes to learn delay and baseline; twice as many are kept.
  [[nodiscard]] double samples_needed() const;

  RouteConfig config_;
  Rng rng_;
  Hosts hosts_;
  Budget budget_;
  Breaker breaker_;
  Baseline baseline_;
  PlanBoard board_;
  Counters counters_;
  std::uint64_t without_host_ = 0;  // requests that came before any host was added
  stats::Survival merged_;
  Overload overload_;
  stats::Survival in_overload_;  // first attempts since it began
  ControlGroup control_;
  Switchback switchback_;
  TailDependence dependence_;
  AutoOff auto_off_;
  Decisions decisions_;
  PlannedHedges planned_;
  stats::Curve first_curve_;
  Calibration calibration_;
  Counters at_tick_;                     // as they were at the last tick()
  std::size_t next_delayed_host_ = 0;    // whose per-host delay is computed next
  std::int64_t measured_in_flight_ = 0;  // primaries whose latency will be the host's
  Windows windows_;
  TimePoint last_tick_{};
};

}  // namespace tailward::hedge
