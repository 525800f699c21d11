#include "diag/connection/cork_detector.h"

#include <algorithm>

#include "diag/thresholds.h"

namespace tailward::diag {

Detection check_cork(Duration now, std::uint64_t number, std::uint32_t payload,
                     const CorkContext& context) {
  const CorkThresholds& limits = thresholds.cork;
  const bool continues = context.own.at > context.peer.at;
  if (!context.is_response && !continues) return {};  // the user's own time between two requests
  const Duration enabled = std::max({context.own.at, context.all_acked_at, context.peer.at});
  if (enabled == Duration{0}) return {};
  const Duration rtt = context.rtt_to_sender;
  const Duration delay = now - enabled - (rtt > thresholds.way.of_kernels ? rtt : Duration{0});
  if (delay < limits.miss_from || delay > limits.miss_until) return {};
  // The timer is the RTO, which follows the round-trip times, delayed ACKs included.
  const Duration slack = rtt * 3 / 2 + context.slow_ack * 3 / 2;
  const Duration until = limits.until + slack + (continues ? Duration{0} : limits.think);
  if (delay < limits.from || delay > until) return {.counterexample = !continues};
  return {.stall =
              StallEvent{.kind = StallKind::kCorked,
                         .from = enabled,
                         .until = now,
                         .amount = now - enabled,
                         .packets = {continues ? context.own.number : context.peer.number, number},
                         .gap = delay,
                         .after_full = continues && context.own.full,
                         .second_bytes = payload}};
}

}  // namespace tailward::diag
