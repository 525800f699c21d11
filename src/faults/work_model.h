// What a WorkServer is like: the servers of the published measurements, as values. Their latency
// laws are those of the simulator (sim/scenario.h), so that live and simulated servers agree.
//
// Thread safety: plain values and pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "sim/law.h"

namespace tailward::faults {

struct WorkModel {
  static constexpr int kShardsMax = 16;

  // Which published server it is: what goes to the server's process. Empty for a model made by
  // hand, which stays in this process.
  std::string name = {};
  std::uint64_t seed = 1;
  // Every request takes a lock in front of its work, and sleeps while it holds it, as the articles'
  // handlers do. 0: no lock; 1: one lock for all; n: key mod n chooses one of n.
  int shards = 0;
  double lock_share = 1;  // of the requests that take the lock
  sim::Law hold = {};     // how long the lock is held
  sim::Law work = {};     // the work outside the lock
  bool access_log =
      false;  // writes a line for each request, as a web server does, to a temporary file
};

// As JSON, for the command line of the server's process. REQUIRES: a name.
std::string to_json_text(const WorkModel& model);
// Error: kInvalid, for anything that is not a model of a published server.
Result<WorkModel> parse_work_model(std::string_view json_text);

// Article A: 90 % 10–50 ms, 10 % 200–500 ms, behind `shards` locks held 1–2 ms.
WorkModel lock_model(int shards, std::uint64_t seed);
// Article A's fan-out node: 99 % 10–100 ms, 1 % 1–2 s. No lock.
WorkModel fanout_model(std::uint64_t seed);
// The benchmark of bhope/hedge: lognormal, mean 5 ms, standard deviation 2 ms; 5 % of the requests
// take ten times as long. No lock.
WorkModel reference_model(std::uint64_t seed);
// The production story: the P99 of a node is 50–80 ms, 7 requests in 10,000 take about a second,
// and 80 % of the requests take one hot lock.
WorkModel production_model(int shards, std::uint64_t seed);

}  // namespace tailward::faults
