// Runs the arms of a hedging experiment in turns, and judges them.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "lab/context.h"
#include "lab/hedging/arm.h"
#include "lab/hedging/hedging_result.h"

namespace tailward::lab {

// Runs the arms one after another, `context.runs` times in turns (A B A B …), so that a machine
// that slows down does so for all of them. The runs of an arm are merged (lab/hedging/merge.h). At
// the end every arm that hedges is judged once, against the arm called `unhedged`, and one check
// claims that every request was answered.
//
// Stops at the first error. After an interrupt it returns what there is, marked partial.
Result<HedgingResult> run_arms(const std::vector<ArmSpec>& specs, Context& context,
                               std::string_view unhedged = "none");

}  // namespace tailward::lab
