#include "lab/hedging/arm.h"

namespace tailward::lab {

hedge::Verdict judge_arm(const ArmResult& arm, const ArmResult* unhedged) {
  hedge::VerdictInput input;
  input.eligible = arm.counters.eligible;
  input.hedged = arm.counters.hedged_requests;
  input.due = arm.counters.due_requests;
  input.attempts = arm.counters.attempts;
  input.requests = arm.counters.requests;
  input.error_rate = arm.error_rate;
  input.baseline_rate = arm.baseline_rate;
  input.median = arm.first_median;
  input.proof = arm.proof;
  input.off_by_verdict = arm.off_after_seconds.has_value();
  if (unhedged != nullptr) {
    input.baseline_median = unhedged->first_median;
    const double before = unhedged->lock_wait_per_request_ms();
    if (before > 0) input.lock_wait_ratio = arm.lock_wait_per_request_ms() / before;
  }
  return hedge::judge(input);
}

}  // namespace tailward::lab
