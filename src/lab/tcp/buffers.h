// `buffers`: the throughput that is left when an application pins its socket buffers, from 8 KiB to
// 1 MiB, beside the kernel's own. With round-trip time a pinned buffer allows one window in each
// round trip; on loopback a window smaller than one segment waits for timers. Source: article B;
// docs/design/link.md explains where our figures differ.
#pragma once

#include <span>
#include <vector>

#include "lab/experiment.h"
#include "lab/tcp/arm.h"
#include "report/report.h"

namespace tailward::lab {

Experiment buffers();

// 8 KiB carry less than 0.6 of the default; at 10 ms a pinned buffer carries what its window
// allows, ± 25 %. What was not measured is not judged.
std::vector<report::Check> buffers_checks(std::span<const TcpArm> arms);

}  // namespace tailward::lab
