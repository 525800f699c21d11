// One arm of a hedging experiment: what it is, and what came of it. A server of some model runs in
// a process of its own; a client with some hedging policy in this one sends a fixed number of
// requests in a closed loop.
//
// Thread safety: plain values and pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/heap_count/heap_count.h"
#include "base/time.h"
#include "faults/work_model.h"
#include "faults/work_server.h"
#include "hedge/engine/route.h"
#include "hedge/proof/verdict.h"
#include "stats/histogram.h"

namespace tailward::lab {

struct ArmSpec {
  std::string name;
  faults::WorkModel model;
  hedge::RouteConfig route;
  std::uint64_t requests = 2000;
  std::size_t in_flight = 50;
  std::size_t width = 1;  // calls of one request
  // How many times the client names the one server: each attempt of a request needs its own host.
  std::size_t hosts = 2;
  // The server draws by the call's number, not by its order of arrival.
  bool numbered_draws = false;
  std::uint64_t warm_up = 0;  // requests that come first and do not count
};

// What happened in one slice of an arm's time.
struct TimelinePoint {
  double seconds = 0;
  double trigger_rate = 0;  // of the requests that ended in it
  double lock_wait_ms_per_s = 0;
  double requests_per_s = 0;
  double p50_ms = 0;  // of first attempts, learned until then
};

// The published figures of an arm. What an article does not give is empty.
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

// The share of slow requests of n calls each: a request is slow when one of its calls is. In theory
// 1 − 0.99^n.
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
  faults::ServerStats server;
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
  std::optional<hedge::Plan> plan;  // at the end of the run
  std::optional<double>
      off_after_seconds;  // when hedging switched itself off, from the first request
  hedge::Verdict verdict;
  std::vector<TimelinePoint> timeline;
  Published published;
  std::optional<Fanout> fanout;

  [[nodiscard]] double ms(double quantile) const { return to_ms(latency.quantile(quantile)); }
  [[nodiscard]] double lock_wait_per_request_ms() const {
    return requests == 0 ? 0 : to_ms(server.lock_wait) / static_cast<double>(requests);
  }
};

// The verdict on an arm. The lock wait of its server is compared with that of `unhedged`, the arm
// without hedging; null: there is none.
hedge::Verdict judge_arm(const ArmResult& arm, const ArmResult* unhedged);

}  // namespace tailward::lab
