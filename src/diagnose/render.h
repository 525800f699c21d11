// The result of `tailward diagnose` as a report for people and as JSON for scripts.
//
// Thread safety: pure functions.
#pragma once

#include "diagnose/diagnosis.h"
#include "report/json.h"
#include "report/report.h"

namespace tailward::diagnose {

report::Report to_report(const Diagnosis& diagnosis, const report::RunInfo& run);
// The JSON's fields are a contract: add, never rename.
report::Json to_json(const Diagnosis& diagnosis, const report::RunInfo& run);

// One finding, as JSON.
report::Json to_json(const diag::Finding& finding);

// Whether hedging would help, from what the network level knows.
struct HedgingAdvice {
  std::string advice;  // "no", "maybe", "unknown"
  std::optional<double> trigger_rate;
  std::string reason;
};
HedgingAdvice hedging_advice(const Diagnosis& diagnosis);

}  // namespace tailward::diagnose
