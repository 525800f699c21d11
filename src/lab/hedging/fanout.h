// `fanout`: one node in a hundred is slow, and a request waits for all of its nodes; the share of
// slow requests is 1 − 0.99^N. Live up to N = 100, in virtual time up to 10,000. Source: article
// A's fan-out measurement, and Dean and Barroso, "The Tail at Scale", CACM 2013.
#pragma once

#include "lab/experiment.h"

namespace tailward::lab {

Experiment fanout();

}  // namespace tailward::lab
