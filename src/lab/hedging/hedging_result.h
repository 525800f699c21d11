// The result of a hedging experiment: its arms, as tables, curves and JSON.
#pragma once

#include <string_view>
#include <vector>

#include "lab/experiment.h"
#include "lab/hedging/arm.h"
#include "report/json.h"
#include "report/report.h"

namespace tailward::lab {

struct HedgingResult : ExperimentResult {
  std::vector<ArmResult> arms;
  bool shows_cost = false;  // memory, log lines and the like are a subject of the experiment

  // Null: that arm has not run.
  [[nodiscard]] const ArmResult* find(std::string_view arm) const;

  void add_to(report::Report& report) const override;
  [[nodiscard]] report::Json arms_json() const override;
};

// One arm, without what only some experiments show.
report::Json arm_json(const ArmResult& arm);

}  // namespace tailward::lab
