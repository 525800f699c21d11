// Runs one arm of the experiment `drift`, live: three servers in processes of their own, an open
// loop of requests over a hedged client in this process, and the phases one after another.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "hedge/planning/policy.h"
#include "lab/context.h"
#include "lab/hedging/arm.h"
#include "lab/hedging/drift_figures.h"

namespace tailward::lab {

inline constexpr int kDriftPerSecond = 600;   // requests
inline constexpr double kDriftBudget = 0.08;  // hedges for each request, in every arm

struct DriftSpec {
  std::string name;
  hedge::Policy policy;
};

struct DriftRun {
  ArmResult arm;  // of the whole run; its verdict is the route's at the end of the brown-out
  Drift drift;
};

// Errors: as run_arm().
Result<DriftRun> run_drift_arm(const DriftSpec& spec, const std::vector<PhasePlan>& plan,
                               std::uint64_t seed, Context& context);

}  // namespace tailward::lab
