// `cost`: what hedging costs besides requests, in front of one lock: memory, allocations,
// connections, log lines, spans. Source: article A's third experiment.
#pragma once

#include "lab/experiment.h"

namespace tailward::lab {

Experiment cost();

}  // namespace tailward::lab
