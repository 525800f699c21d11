// A stall as the detectors of a connection report it, before it is counted. A plain value.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/time.h"
#include "diag/analysis.h"
#include "tcp/sequence.h"

namespace tailward::diag {

struct StallEvent {
  StallKind kind{};
  tcp::Side sender = tcp::kClient;  // whose data waited
  Duration from{}, until{};
  Duration amount{};                       // lost; at most until − from
  std::array<std::uint64_t, 4> packets{};  // 0: none
  // Of some kinds only; see StallPattern.
  std::optional<Duration> gap = {}, late = {};
  bool after_full = false;
  bool first_data = false;
  std::uint32_t timeouts = 0, probes = 0, fast = 0;
  std::uint64_t segments = 0, bytes = 0;
  std::uint32_t first_bytes = 0, second_bytes = 0, in_flight = 0, window_max = 0;
  bool window_known = true;
  bool rtt_known = true;
};

// What a detector says of a segment: nothing, a stall, or that it was alike but for its timing.
struct Detection {
  std::optional<StallEvent> stall = {};
  bool counterexample = false;
};

// The last data that one side sent.
struct LastData {
  Duration at{};  // zero: none yet
  std::uint64_t number = 0;
  std::uint32_t bytes = 0;
  bool full = false;  // a full-sized segment
};

}  // namespace tailward::diag
