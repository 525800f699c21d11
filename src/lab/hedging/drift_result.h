// The result of the experiment `drift`: one run of phases for each arm, as tables, timelines and
// JSON.
#pragma once

#include <vector>

#include "lab/experiment.h"
#include "lab/hedging/drift_run.h"
#include "report/json.h"
#include "report/report.h"

namespace tailward::lab {

struct DriftResult : ExperimentResult {
  std::vector<DriftRun> arms;

  void add_to(report::Report& report) const override;
  // The usual fields of a hedging arm, and the phases; the timeline is that of the drift.
  [[nodiscard]] report::Json arms_json() const override;
};

}  // namespace tailward::lab
