#include "lab/hedging/falsification.h"

#include "lab/checks.h"
#include "lab/hedging/one_lock.h"
#include "lab/hedging/run_arms.h"

namespace tailward::lab {
namespace {

Result<HedgingResult> run(Context& context) {
  Result<HedgingResult> result =
      run_arms({lock_arm("none", 1, false, context), lock_arm("fixed", 1, true, context)}, context);
  if (!result) return result;
  for (ArmResult& arm : result->arms) {
    if (arm.name == "none") {
      arm.published = {.p50_ms = 50.4,
                       .p95_ms = 375.8,
                       .p99_ms = 486.4,
                       .server_requests = 2000,
                       .hedges = 0,
                       .lock_wait_ms = 37290};
    } else {
      arm.published = {.p50_ms = 156.0,
                       .p95_ms = 207.1,
                       .p99_ms = 237.5,
                       .server_requests = 3991,
                       .hedges = 1991,
                       .lock_wait_ms = 465150};
    }
  }
  check_one_lock(*result);
  const ArmResult* none = result->find("none");
  const ArmResult* fixed = result->find("fixed");
  if (none != nullptr && fixed != nullptr) {
    result->checks.push_back(check_below("the client's P99 looks better (times that of no hedging)",
                                         ratio(fixed->ms(0.99), none->ms(0.99)), 1));
    result->verdict = fixed->verdict;
  }
  note_lock_semantics(*result);
  return result;
}

}  // namespace

Experiment falsification() {
  return {.name = "falsification",
          .title = "Hedging lowers P99; does it cure the lock?",
          .about = "one lock, with and without hedging: the P99 falls while the lock gets worse",
          .arms = {"none", "fixed"},
          .about_time = "about 15 s",
          .run = [](Context& context) { return any_result(run(context)); }};
}

}  // namespace tailward::lab
