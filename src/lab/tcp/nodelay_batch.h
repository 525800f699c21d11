// `nodelay-batch`: many small writes one way, with NODELAY and with Nagle. Nagle gathers them into
// fewer segments; the system calls are the same for both. Source: article B, which explains its
// figures by saved system calls (docs/design/link.md).
#pragma once

#include <span>
#include <vector>

#include "lab/experiment.h"
#include "lab/tcp/arm.h"
#include "report/report.h"

namespace tailward::lab {

Experiment nodelay_batch();

// Nagle is faster for writes of at most 512 bytes. A larger write fills most of a segment by
// itself, and is not judged; nor is a pair that was not measured.
std::vector<report::Check> nodelay_batch_checks(std::span<const TcpArm> arms);

}  // namespace tailward::lab
