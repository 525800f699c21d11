// What came of a route's requests and attempts, and why hedges were not sent: plain sums.
//
// Thread safety: as an integer. Counters of several routes, or of one route at two points in time,
// are added and subtracted as wholes; what the invariants say holds for those of one route since
// it began.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/time.h"

namespace tailward::hedge {

// Why a hedge that was due was not sent. Each is counted once per stage of a request.
enum class Denied : std::uint8_t {
  kBudget,
  kNoOtherHost,
  kNotIdempotent,
  kBreaker,
  kOverload,       // everything is slow (hedge/safety/overload.h)
  kNested,         // the request is itself a hedge
  kDeadline,       // what remains is too short for a fresh attempt
  kPushback,       // a server asked for none
  kNotReplayable,  // its body is too long to be kept
  kProbability,    // the plan's draw said no
  kDryRun,         // it would have been sent
};
inline constexpr std::size_t kDeniedCount = 11;
// The words of the JSON output: "budget", "no_other_host", …; kOverload is "brownout" there.
std::string_view to_string(Denied denied);

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

  // Every field. Subtraction gives what happened between two readings of one route's counters.
  Counters& operator+=(const Counters& more);
  // REQUIRES: `earlier` is an earlier reading.
  Counters& operator-=(const Counters& earlier);

  [[nodiscard]] std::uint64_t attempts_ended() const {
    return succeeded + failed + superseded + cancelled + not_sent;
  }
  [[nodiscard]] std::uint64_t requests_ended() const {
    return answered + answered_badly + timed_out + caller_gone;
  }
  // Whether every request has its primary, every hedge its reason, and every end its beginning:
  //   attempts = requests + hedges − `without_host`
  //   hedges = hedges_after_delay + hedges_after_failure
  //   attempts = succeeded + failed + superseded + cancelled + not sent + `attempts_in_flight`
  // True between any two calls of a race. `without_host`: requests that came before the route had a
  // host, and so have no primary.
  [[nodiscard]] bool add_up(std::uint64_t attempts_in_flight,
                            std::uint64_t without_host = 0) const {
    return attempts + without_host == requests + hedges &&
           hedges == hedges_after_delay + hedges_after_failure &&
           attempts == attempts_ended() + attempts_in_flight;
  }
  // Whether no part is larger than its whole.
  [[nodiscard]] bool parts_within_wholes() const {
    return hedged_requests <= due_requests && due_requests <= eligible && eligible <= requests &&
           hedged_requests <= hedges_after_delay && hedges_not_sent <= not_sent &&
           hedges_not_sent <= hedges && hedge_wins <= answered && requests_ended() <= requests;
  }

  // Of the hedges, those that reached a server.
  [[nodiscard]] double extra_load() const {
    return requests == 0
               ? 0
               : static_cast<double>(hedges - hedges_not_sent) / static_cast<double>(requests);
  }
  [[nodiscard]] double trigger_rate() const {
    return eligible == 0 ? 0 : static_cast<double>(hedged_requests) / static_cast<double>(eligible);
  }
};

}  // namespace tailward::hedge
