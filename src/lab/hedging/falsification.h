// `falsification`: one lock, with and without hedging. The client's P99 falls while the lock gets
// worse: a lower P99 does not prove a cure. Source: article A's first experiment, whose figures
// stand beside ours.
#pragma once

#include "lab/experiment.h"

namespace tailward::lab {

Experiment falsification();

}  // namespace tailward::lab
