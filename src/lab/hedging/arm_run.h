// Runs one arm of a hedging experiment, live.
#pragma once

#include "base/result.h"
#include "lab/context.h"
#include "lab/hedging/arm.h"

namespace tailward::lab {

// Starts the server, sends the requests, and waits until the losers have left the server. The
// result has no verdict. Errors: the server could not be started, or died; with how, and a hint.
Result<ArmResult> run_arm(const ArmSpec& spec, Context& context);

}  // namespace tailward::lab
