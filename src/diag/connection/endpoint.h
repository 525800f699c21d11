// One side of a connection as its packets show it: what it sends, and the window that it offers.
// The parts do the thinking; this holds them together.
//
// Bounded, about 1 KB.
#pragma once

#include <cstdint>

#include "base/time.h"
#include "diag/connection/bulk_detector.h"
#include "diag/connection/duplicate_filter.h"
#include "diag/connection/loss_detector.h"
#include "diag/connection/nagle_detector.h"
#include "diag/connection/segment_size.h"
#include "diag/connection/sequence_space.h"
#include "diag/connection/small_write_detector.h"
#include "diag/connection/stall_event.h"
#include "diag/connection/window_tracker.h"

namespace tailward::diag {

struct Endpoint {
  std::uint64_t packets = 0;              // captured, copies included
  std::uint64_t segments = 0, bytes = 0;  // with data, new ones
  SequenceSpace sequence;
  SegmentSize segment_size;
  WindowTracker window;
  LastData last_data;
  Duration all_acked_at{};  // when everything that it had sent was acknowledged; zero: never
  DuplicateFilter duplicates;
  LossDetector loss;
  NagleDetector nagle;
  SmallWriteDetector small_writes;
  BulkDetector bulk;
};

}  // namespace tailward::diag
