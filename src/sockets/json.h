// The JSON of `tailward sockets`: the contract's names; what is not known is null.
//
// Pure.
#pragma once

#include "report/json.h"
#include "sockets/snapshot.h"

namespace tailward::sockets {

report::Json to_json(const Snapshot& snapshot, const report::RunInfo& run);

// One options object and one tcp object, as in "sockets".
report::Json to_json(const tcp::SocketOptions& options);
report::Json to_json(const tcp::TcpInfo& tcp);

}  // namespace tailward::sockets
