// The result of a TCP experiment: its arms, as tables, curves and JSON.
#pragma once

#include <vector>

#include "lab/experiment.h"
#include "lab/tcp/arm.h"
#include "report/json.h"
#include "report/report.h"

namespace tailward::lab {

struct TcpResult : ExperimentResult {
  std::vector<TcpArm> arms;
  bool shows_throughput = false;  // of whole transfers, instead of the times of round trips
  bool shows_curves = false;      // where the tail is the story

  void add_to(report::Report& report) const override;
  [[nodiscard]] report::Json arms_json() const override;
};

}  // namespace tailward::lab
