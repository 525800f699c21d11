// What an experiment's server is like: the articles' servers, as values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "sim/law.h"

namespace tailward::lab {

// One part of a mixture: drawn with probability `share`.
struct WorkPart {
  double share = 1;
  // lognormal: mean and sd; otherwise uniform from low to high.
  bool lognormal = false;
  Duration low{};
  Duration high{};
  Duration mean{};
  Duration sd{};
  double factor = 1;  // stragglers are the same law, so many times slower
};

struct ServerModel {
  std::uint64_t seed = 1;
  // A lock that every request holds for a while before its work, asleep, as the articles' handlers
  // do. 0: none; 1: one lock for all; n: key mod n chooses one of n, n ≤ 16.
  int shards = 0;
  double lock_share = 1;  // of requests that take the lock
  Duration hold_low{};
  Duration hold_high{};
  std::vector<WorkPart> work;
  bool access_log = false;  // one line a request, as a web server writes it, to a temporary file

  // The laws of the work outside the lock and of the hold.
  [[nodiscard]] sim::Law work_law() const;
  [[nodiscard]] sim::Law hold_law() const;
};

// JSON, as it is handed to the server's process.
std::string to_json_text(const ServerModel& model);
Result<ServerModel> parse_model(std::string_view json_text);

// Article A: 90 % 10–50 ms, 10 % 200–500 ms, behind `shards` locks held 1–2 ms.
ServerModel lock_model(int shards, std::uint64_t seed);
// Article A's fan-out node: 99 % 10–100 ms, 1 % 1–2 s.
ServerModel fanout_model(std::uint64_t seed);
// bhope/hedge's benchmark: lognormal, mean 5 ms, sd 2 ms; 5 % of requests ten times slower.
ServerModel reference_model(std::uint64_t seed);
// The production recap: a node's P99 is 50–80 ms, one in 2,000 takes about a second, and most
// requests pass one hot lock.
ServerModel production_model(int shards, std::uint64_t seed);

}  // namespace tailward::lab
