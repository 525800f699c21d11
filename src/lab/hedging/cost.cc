#include "lab/hedging/cost.h"

#include "lab/checks.h"
#include "lab/hedging/one_lock.h"
#include "lab/hedging/run_arms.h"

namespace tailward::lab {
namespace {

Result<HedgingResult> run(Context& context) {
  std::vector<ArmSpec> specs{lock_arm("none", 1, false, context),
                             lock_arm("fixed", 1, true, context),
                             adaptive_lock_arm("adaptive", 1, 0.05, context)};
  specs.back().requests = specs.front().requests;  // what it costs is compared in sums
  for (ArmSpec& spec : specs) spec.model.access_log = true;
  Result<HedgingResult> result = run_arms(specs, context);
  if (!result) return result;
  result->shows_cost = true;
  for (ArmResult& arm : result->arms) {
    if (arm.name == "none") {
      arm.published = {
          .p50_ms = 57.5, .p95_ms = 356.7, .p99_ms = 478.3, .hedges = 0, .memory_mb = 13.99};
    } else if (arm.name == "fixed") {
      arm.published = {
          .p50_ms = 156.2, .p95_ms = 207.0, .p99_ms = 236.6, .hedges = 1987, .memory_mb = 77.67};
    }
  }
  check_one_lock(*result);
  const ArmResult* none = result->find("none");
  const ArmResult* fixed = result->find("fixed");
  if (none != nullptr && fixed != nullptr) {
    result->checks.push_back(check_above("the server's log doubles (times)",
                                         ratio(static_cast<double>(fixed->server.log_lines),
                                               static_cast<double>(none->server.log_lines)),
                                         1.9));
    if (none->heap.allocated_bytes > 0) {
      result->checks.push_back(check_above("the client allocates more (times)",
                                           ratio(static_cast<double>(fixed->heap.allocated_bytes),
                                                 static_cast<double>(none->heap.allocated_bytes)),
                                           1.3));
    }
    result->verdict = fixed->verdict;
  }
  result->notes.push_back(
      "The article's memory is a Go heap with its garbage; ours is what the C++ client allocated, "
      "so only the "
      "ratio between the arms compares.");
  note_lock_semantics(*result);
  return result;
}

}  // namespace

Experiment cost() {
  return {.name = "cost",
          .title = "What hedging costs besides requests",
          .about =
              "memory, allocations, connections, log lines and spans of hedging in front of a "
              "contended lock",
          .arms = {"none", "fixed", "adaptive"},
          .about_time = "about 15 s",
          .run = [](Context& context) { return any_result(run(context)); }};
}

}  // namespace tailward::lab
