// One arm of the experiment `drift`, live: three servers in processes of their own, an open loop of
// requests over a hedged client in this one, and the phases one after another in one run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "hedge/planning/policy.h"
#include "lab/arm.h"
#include "lab/drift.h"

namespace tailward::lab {

inline constexpr int kDriftPerSecond = 600;
inline constexpr double kDriftBudget = 0.08;

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
