// `drift`: a service that slows down as a whole, has one slow host, loses its traffic, fails; and
// recovers each time. It times how hedging takes each. One run of lab/hedging/drift_run.h for each
// arm.
#pragma once

#include <vector>

#include "lab/experiment.h"
#include "lab/hedging/drift_figures.h"
#include "report/report.h"

namespace tailward::lab {

Experiment drift();

std::vector<PhasePlan> drift_plan(bool quick);

// The bars. They are the adaptive arm's; the other arms only stand beside it.
std::vector<report::Check> drift_checks(const Drift& adaptive);

}  // namespace tailward::lab
