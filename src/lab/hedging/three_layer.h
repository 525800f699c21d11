// `three-layer`: the symptom treated alone (hedging in front of one lock), and the cause treated
// first (sixteen locks, then hedging), with a fixed delay and adaptively. Source: article A's
// second experiment. `tailward demo` tells its story.
#pragma once

#include "lab/experiment.h"
#include "lab/hedging/hedging_result.h"

namespace tailward::lab {

Experiment three_layer();
// The same with the family's result, for who wants the arms.
Result<HedgingResult> run_three_layer(Context& context);

}  // namespace tailward::lab
