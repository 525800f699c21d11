// `nodelay-reqresp`: one write for each request and each response, at several sizes and round-trip
// times. Nagle has nothing to hold back, since nothing is unacknowledged when the next request is
// written: NODELAY makes no difference. Source: article B, which expects one with round-trip time.
#pragma once

#include <span>
#include <vector>

#include "lab/experiment.h"
#include "lab/tcp/arm.h"
#include "report/report.h"

namespace tailward::lab {

Experiment nodelay_reqresp();

// The P50s differ by at most 15 % either way. A pair that was not measured is not judged.
std::vector<report::Check> nodelay_reqresp_checks(std::span<const TcpArm> arms);

}  // namespace tailward::lab
