#include "lab/hedging/run_arms.h"

#include <cstdint>
#include <utility>

#include "lab/checks.h"
#include "lab/hedging/arm_run.h"
#include "lab/hedging/merge.h"

namespace tailward::lab {
namespace {

report::Check check_all_answered(const HedgingResult& result) {
  std::uint64_t failed = 0;
  for (const ArmResult& arm : result.arms) failed += arm.failed;
  report::Check check =
      check_below("every request was answered (failed)", static_cast<double>(failed), 1);
  check.bound = "0";
  return check;
}

}  // namespace

Result<HedgingResult> run_arms(const std::vector<ArmSpec>& specs, Context& context,
                               std::string_view unhedged) {
  HedgingResult result;
  for (int run = 0; run < context.runs && !context.stopped(); ++run) {
    for (std::size_t i = 0; i < specs.size() && !context.stopped(); ++i) {
      ArmSpec spec = specs[i];
      // Each run draws anew.
      spec.model.seed += static_cast<std::uint64_t>(run);
      spec.route.seed += static_cast<std::uint64_t>(run);
      if (context.arm_begins) context.arm_begins(spec.name);
      Result<ArmResult> arm = run_arm(spec, context);
      if (!arm) return fail(arm.error());
      if (arm->requests == 0 && context.stopped()) break;  // ended before it began to count
      if (context.arm_done) context.arm_done(*arm, result.find(unhedged));
      if (run == 0) {
        result.arms.push_back(std::move(*arm));
      } else {
        merge(result.arms[i], std::move(*arm));
      }
    }
  }
  result.partial = context.stopped();
  const ArmResult* base = result.find(unhedged);
  for (ArmResult& arm : result.arms) {
    if (arm.hedging) arm.verdict = judge_arm(arm, base);
  }
  result.checks.push_back(check_all_answered(result));
  return result;
}

}  // namespace tailward::lab
