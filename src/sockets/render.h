// A snapshot of sockets as a report for people.
//
// Pure.
#pragma once

#include <vector>

#include "report/report.h"
#include "sockets/snapshot.h"

namespace tailward::sockets {

struct View {
  bool all = false;      // every socket, however many there are
  std::size_t top = 15;  // rows of a table that leaves some out
};

// Listeners, connections (each, or by peer above 30), remarks by code, and last what could not be
// seen.
report::Report to_report(const Snapshot& snapshot, const report::RunInfo& run, const View& view);

// What the connections do at this moment, the busiest first, for a watch.
std::vector<report::Block> to_activity(const Snapshot& snapshot, const View& view);

}  // namespace tailward::sockets
