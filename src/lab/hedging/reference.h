// `reference`: the benchmark of bhope/hedge, a service that is healthy except for stragglers. It
// compares no hedging, fixed delays, the learned P90 and the adaptive policy at their own spend,
// and checks the forecast of `tailward plan` against what happened.
#pragma once

#include "lab/experiment.h"

namespace tailward::lab {

Experiment reference();

}  // namespace tailward::lab
