#include "hedge/engine/counters.h"

namespace tailward::hedge {
namespace {

// The one list of the fields. The size tells when one is missing here: all are 8 bytes wide.
template <class Combine>
void combine(Counters& into, const Counters& other, Combine&& one) {
  static_assert(sizeof(Counters) == (20 + kDeniedCount) * sizeof(std::uint64_t),
                "a field was added or removed: the list below has every field");
  one(into.requests, other.requests);
  one(into.eligible, other.eligible);
  one(into.attempts, other.attempts);
  one(into.hedges, other.hedges);
  one(into.hedges_after_delay, other.hedges_after_delay);
  one(into.hedges_after_failure, other.hedges_after_failure);
  one(into.hedged_requests, other.hedged_requests);
  one(into.due_requests, other.due_requests);
  one(into.hedge_wins, other.hedge_wins);
  for (std::size_t i = 0; i < kDeniedCount; ++i) one(into.denied[i], other.denied[i]);
  one(into.succeeded, other.succeeded);
  one(into.failed, other.failed);
  one(into.superseded, other.superseded);
  one(into.cancelled, other.cancelled);
  one(into.not_sent, other.not_sent);
  one(into.hedges_not_sent, other.hedges_not_sent);
  one(into.answered, other.answered);
  one(into.answered_badly, other.answered_badly);
  one(into.timed_out, other.timed_out);
  one(into.caller_gone, other.caller_gone);
  one(into.wasted, other.wasted);
}

}  // namespace

Counters& Counters::operator+=(const Counters& more) {
  combine(*this, more, [](auto& a, const auto& b) { a += b; });
  return *this;
}

Counters& Counters::operator-=(const Counters& earlier) {
  combine(*this, earlier, [](auto& a, const auto& b) { a -= b; });
  return *this;
}

std::string_view to_string(Denied denied) {
  switch (denied) {
    case Denied::kBudget:
      return "budget";
    case Denied::kNoOtherHost:
      return "no_other_host";
    case Denied::kNotIdempotent:
      return "not_idempotent";
    case Denied::kBreaker:
      return "breaker";
    case Denied::kOverload:
      return "brownout";
    case Denied::kNested:
      return "nested";
    case Denied::kDeadline:
      return "deadline";
    case Denied::kPushback:
      return "pushback";
    case Denied::kNotReplayable:
      return "not_replayable";
    case Denied::kProbability:
      return "probability";
    case Denied::kDryRun:
      return "dry_run";
  }
  return "unknown";
}

}  // namespace tailward::hedge
