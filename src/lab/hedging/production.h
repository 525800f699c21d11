// `production`: an order query over 25 calls. Hedging turns the client green while the servers go
// under; with the lock sharded first, hedging is a backstop. Source: article A's production story,
// told from memory there; the model is ours.
#pragma once

#include "lab/experiment.h"

namespace tailward::lab {

Experiment production();

}  // namespace tailward::lab
