// The faults that a server of `tailward lab serve --sick CAUSE` can have, and how one server is
// drawn: its sizes, its round-trip time, how bad the fault is. Diagnosis is scored against them
// (lab/scorecard.h).
//
// Thread safety: pure functions and plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "diag/finding.h"
#include "net/link.h"

namespace tailward::faults {

// A fault is named after the cause that diagnosis must find.
struct ServerFault {
  diag::Cause cause;
  std::string_view about;
  bool needs_link;  // it needs round-trip time or loss: loopback has neither
};

// The faults of the network, and `none`: a healthy server.
const std::vector<ServerFault>& server_faults();
// Error: kInvalid, with the known names as hint.
Result<ServerFault> find_fault(std::string_view name);

// One faulty service. Everything that is drawn follows from the seed.
struct FaultModel {
  diag::Cause cause = diag::Cause::kNone;
  std::uint64_t seed = 1;
  double severity = 1;  // of the fault: 2 is twice as bad, 0.5 half
  bool over_link = false;
  net::LinkShape link = {};  // both ways, if over_link
  double faulty_share = 1;   // of the requests that the server's fault can hit
  std::size_t response_bytes = 0;
  std::size_t upload_bytes = 0;
  Duration processing{};  // median of the server's processing time
};
// The model that a seed gives.
FaultModel draw_fault_model(const ServerFault& fault, std::uint64_t seed, double severity);

}  // namespace tailward::faults
