#include "diag/connection/small_write_detector.h"

#include <algorithm>

#include "base/check.h"
#include "diag/thresholds.h"

namespace tailward::diag {
namespace {

// A segment of loopback may have 64 KiB: nobody calls a stream in pieces of 8 KiB small.
std::uint32_t full_size(std::uint32_t segment_size) {
  TAILWARD_CHECK(segment_size > 0);
  return std::min(segment_size, thresholds.small_writes.segment_of_loopback);
}

std::uint64_t segments_for(std::uint64_t bytes, std::uint32_t size) {
  return (bytes + size - 1) / size;
}

}  // namespace

std::optional<StallEvent> SmallWriteDetector::sent(Duration now, std::uint64_t number,
                                                   std::uint32_t payload,
                                                   std::uint32_t segment_size,
                                                   Duration rtt_to_sender) {
  std::optional<StallEvent> ended;
  if (run_.count > 0) {
    const Duration gap = now - run_.last;
    const bool released =
        acked_at_ >= run_.last &&
        now - acked_at_ <= rtt_to_sender * 5 / 4 + thresholds.nagle.prompt_release;
    if (released) {
      run_.waited += gap;
    } else if (gap > thresholds.small_writes.gap_max) {
      ended = finish(segment_size);
    }
  }
  const std::uint32_t size = full_size(segment_size);
  if (run_.count == 0) run_ = {.began = now, .first_number = number};
  run_.last = now;
  run_.last_number = number;
  run_.bytes += payload;
  run_.count += static_cast<std::uint32_t>(segments_for(payload, size));
  if (payload <= size / 4) ++run_.small;
  return ended;
}

std::optional<StallEvent> SmallWriteDetector::finish(std::uint32_t segment_size) {
  const Run run = run_;
  run_ = {};
  if (run.count < thresholds.small_writes.segments_min || run.small * 2 < run.count) return {};
  const Duration took = run.last - run.began;
  TAILWARD_CHECK(run.waited <= took);
  const Duration pace = (took - run.waited) / (run.count - 1);
  const auto needed = static_cast<std::uint32_t>(segments_for(run.bytes, full_size(segment_size)));
  if (pace > thresholds.small_writes.pace_max || needed >= run.count) return {};
  return StallEvent{.kind = StallKind::kSmallWrites,
                    .from = run.began,
                    .until = run.last,
                    .amount = took / run.count * (run.count - needed),
                    .packets = {run.first_number, run.last_number},
                    .gap = pace,
                    .segments = run.count,
                    .bytes = run.bytes};
}

}  // namespace tailward::diag
