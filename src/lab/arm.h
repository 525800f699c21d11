// One arm of an experiment: a server of that model in a process of its own, a client with that
// policy in this one, so many requests in a closed loop; and all that came of it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/heap_count/heap_count.h"
#include "base/result.h"
#include "hedge/engine/route.h"
#include "lab/model.h"
#include "lab/server.h"
#include "report/terminal.h"
#include "stats/histogram.h"

namespace tailward::lab {

// How an experiment speaks with the one who runs it. Thread safety: one thread.
struct Context {
  std::uint64_t seed = 1;
  bool quick = false;
  int runs = 1;
  // The arms that tell the story and no others: `tailward demo`.
  bool story_only = false;
  // What the adaptive arm aims at and may spend, where the experiment lets them be chosen.
  std::optional<double> goal;
  std::optional<double> budget;
  // Called now and then while an arm runs.
  std::function<void(const report::Progress&)> progress;
  // Set by Ctrl-C: what is there is shown, nothing further is begun.
  bool interrupted = false;
  // Whether somebody has asked to stop, also between arms; may be empty.
  std::function<bool()> stop_asked;
  // The heap of this process, where the program counts it; `reset` starts a new peak.
  std::function<HeapUse(bool reset)> heap;
  // Called before and after each arm; the result carries its verdict, `unhedged` is the arm "none"
  // if there is one.
  std::function<void(const std::string& arm)> arm_begins;
  std::function<void(const struct ArmResult& arm, const struct ArmResult* unhedged)> arm_done;
};

struct ArmSpec {
  std::string name;
  ServerModel model;
  hedge::RouteConfig route;
  std::uint64_t requests = 2000;
  std::size_t in_flight = 50;
  std::size_t width = 1;  // calls of one request
  std::size_t hosts = 2;  // ways to the one server: each attempt of a request needs its own
  // The server's draws follow the call's number, not its order of arrival.
  bool numbered_draws = false;
  std::uint64_t warm_up = 0;  // requests before the ones that count
};

// What happened in one slice of an arm's time.
struct TimelinePoint {
  double seconds = 0;
  double trigger_rate = 0;  // of the requests that ended in it
  double lock_wait_ms_per_s = 0;
  double requests_per_s = 0;
  double p50_ms = 0;  // of first attempts, learned until then
};

// The published figures of an arm; what an article does not give is empty.
struct Published {
  std::optional<double> p50_ms = {};
  std::optional<double> p90_ms = {};
  std::optional<double> p95_ms = {};
  std::optional<double> p99_ms = {};
  std::optional<double> p999_ms = {};
  std::optional<std::uint64_t> server_requests = {};
  std::optional<std::uint64_t> hedges = {};
  std::optional<double> lock_wait_ms = {};
  std::optional<double> extra_load = {};
  std::optional<double> memory_mb = {};
  std::optional<double> slow_share = {};
};

// A request of n calls is slow when one of them is: 1 − 0.99^n.
struct Fanout {
  std::uint64_t n = 1;
  bool live = true;  // false: in virtual time
  std::uint64_t slow = 0;
  double share = 0;
  double low = 0;  // 95 % interval
  double high = 1;
  double theory = 0;
};

struct ArmResult {
  std::string name;
  bool hedging = false;
  bool partial = false;
  std::uint64_t requests = 0;  // answered
  std::uint64_t failed = 0;
  stats::Histogram latency;
  stats::Histogram call_latency;  // of the single calls of a fan-out
  hedge::Counters counters;
  ServerStats server;
  std::uint64_t server_peak_bytes = 0;
  double server_cpu_seconds = 0;
  HeapUse heap;  // this arm's share, the peak above its start
  std::uint64_t connections_opened = 0;
  double seconds = 0;
  std::optional<Duration> first_median;  // of first attempts, losers censored
  double error_rate = 0;
  std::optional<double> baseline_rate;
  // Of the adaptive policy.
  std::optional<hedge::Proof> proof;
  std::optional<hedge::Plan> plan;          // the last
  std::optional<double> off_after_seconds;  // hedging switched itself off, from the first request
  hedge::Verdict verdict;
  std::vector<TimelinePoint> timeline;
  Published published;
  std::optional<Fanout> fanout;

  [[nodiscard]] double ms(double quantile) const { return to_ms(latency.quantile(quantile)); }
  [[nodiscard]] double lock_wait_per_request_ms() const {
    return requests == 0 ? 0 : to_ms(server.lock_wait) / static_cast<double>(requests);
  }
};

// Errors: the server could not be started, or died: with how, and a hint.
Result<ArmResult> run_arm(const ArmSpec& spec, Context& context);

// The verdict on an arm, its server's evidence compared with the arm that does not hedge.
hedge::Verdict judge_arm(const ArmResult& arm, const ArmResult* unhedged);

}  // namespace tailward::lab
