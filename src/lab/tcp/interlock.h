// `interlock`: write, write, read. Nagle holds the second small write back until the first one is
// acknowledged, and the server delays that ACK for 40 ms because it waits for the rest of the
// request. NODELAY ends the wait, and one write for each request never begins it. Source: article
// B's experiment; RFC 896 and RFC 1122, 4.2.3.2 and 4.2.3.4.
#pragma once

#include <span>
#include <vector>

#include "lab/experiment.h"
#include "lab/tcp/arm.h"
#include "report/report.h"

namespace tailward::lab {

Experiment interlock();

// P50 with Nagle: 35 ms to 60 ms + 2 RTT; otherwise at most RTT + 1 ms.
std::vector<report::Check> interlock_checks(std::span<const TcpArm> arms);

}  // namespace tailward::lab
