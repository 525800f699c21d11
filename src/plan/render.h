// The result of `tailward plan` as a report for people and as JSON for scripts.
//
// Thread safety: pure functions.
#pragma once

#include "plan/analysis.h"
#include "report/json.h"
#include "report/report.h"

namespace tailward::plan {

report::Report to_report(const Reading& reading, const Analysis& analysis,
                         const report::RunInfo& run);
report::Json to_json(const Reading& reading, const Analysis& analysis, const report::RunInfo& run);

}  // namespace tailward::plan
