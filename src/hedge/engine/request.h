// The words in which a race (hedge/engine/race.h) and its route (hedge/engine/route.h) speak of one
// request and its attempts.
//
// Plain values.
#pragma once

#include <cstdint>
#include <optional>

#include "base/time.h"
#include "hedge/engine/counters.h"
#include "hedge/engine/decisions.h"
#include "hedge/engine/hosts.h"
#include "hedge/planning/policy.h"

namespace tailward::hedge {

using AttemptIndex = std::uint8_t;  // 0 is the primary, hedges follow from 1
inline constexpr AttemptIndex kNoAttempt = UINT8_MAX;

// What the engine must know of a request before it starts.
struct RequestInfo {
  bool idempotent = true;
  bool replayable = true;  // its body can be sent a second time
  bool is_hedge = false;   // arrived with an attempt number above 0: not hedged again
  TimePoint deadline = kNever;
};

// An attempt that has begun, as its route must know it when it ends.
struct Attempt {
  HostIndex host = kNoHost;
  bool primary = true;
  bool probe = false;        // the breaker's: its end decides whether hedging comes back
  bool after_delay = false;  // a hedge that was sent because a delay had passed
  TimePoint started{};
};

// How an attempt leaves the race.
enum class AttemptEnd : std::uint8_t {
  kGood,
  kBadResponse,  // a server responded, and the caller cannot use it
  kNoResponse,   // refused, reset, silent
  kSuperseded,   // another attempt won
  kCancelled,    // the caller went away or its deadline passed
  kNotSent,      // a limit of our own kept it from being sent
  kAbandoned,    // the race was destroyed: no time is known
};

enum class Ending : std::uint8_t { kAnswered, kFailed, kTimedOut, kCallerGone };

// What a route decides for a request when it begins. The race keeps it and hands it back with every
// step, and only the route writes to it.
struct Ticket {
  std::uint64_t number = 0;  // of the request in its route, from 1
  TimePoint started{};
  Plan plan;                 // for this request, on its primary's host
  HostIndex host = kNoHost;  // of the primary; kNoHost: the route has none, nothing was begun
  std::uint32_t slice = 0;   // of the switchback; 0: none
  Group group = Group::kOff;
  std::uint8_t hedges_max = 0;
  std::uint8_t attempts = 0;  // begun
  bool replayable = true;
  bool could_hedge = false;     // idempotent, replayable, not itself a hedge, hedging on
  bool eligible = false;        // and neither in the control group nor in a slice without hedging
  bool compared = false;        // its latency counts for the control group's comparison
  bool change_sampled = false;  // its primary was longer than the overload limit, or was not
  bool due = false;
  bool hedged = false;                // by a delay
  std::optional<Denied> denied = {};  // the last reason
};

}  // namespace tailward::hedge
