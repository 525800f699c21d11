// The result of a TCP experiment for people and for scripts.
#pragma once

#include "lab/experiment.h"
#include "report/json.h"
#include "report/report.h"

namespace tailward::lab {

// Adds the tables, the curves and the checks.
void add_tcp(report::Report& report, const Experiment& experiment, const ExperimentResult& result);

report::Json tcp_json(const TcpArm& arm);

}  // namespace tailward::lab
