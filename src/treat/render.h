// What a treatment would do and what it did, as a report for people and as JSON for scripts.
//
// Thread safety: pure functions.
#pragma once

#include <string>

#include "report/json.h"
#include "report/report.h"
#include "treat/treatment.h"

namespace tailward::treat {

// What would be done. Nothing has been.
report::Report plan_report(const Treatment& treatment, const report::RunInfo& run);
report::Json plan_json(const Treatment& treatment, const report::RunInfo& run);

report::Report to_report(const Treatment& treatment, const TreatmentResult& result,
                         const report::RunInfo& run);
report::Json to_json(const Treatment& treatment, const TreatmentResult& result,
                     const report::RunInfo& run);

// The result in one sentence.
std::string sentence_of(const Treatment& treatment, const TreatmentResult& result);
// The command that undoes a change that was kept; empty where the connections had different values.
std::string undo_command(const TreatmentOptions& options,
                         const std::vector<MatchedConnection>& connections);

}  // namespace tailward::treat
