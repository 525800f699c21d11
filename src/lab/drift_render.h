// The result of the experiment `drift` for people and for scripts.
#pragma once

#include "lab/experiment.h"
#include "report/json.h"
#include "report/report.h"

namespace tailward::lab {

// Adds tables, checks and one timeline for each arm.
void add_drift(report::Report& report, const ExperimentResult& result);

// What an arm's JSON carries beyond the usual fields, its timeline included.
report::Json drift_json(const Drift& drift);

}  // namespace tailward::lab
