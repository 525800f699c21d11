#include "diag/connection/nagle_detector.h"

#include <algorithm>

#include "diag/thresholds.h"

namespace tailward::diag {

void NagleDetector::all_acked(Duration now, std::uint64_t number, bool alone, const LastData& last,
                              Duration rtt_to_peer) {
  const Duration late = now - last.at - rtt_to_peer;
  release_ = {.valid = alone && last.at != Duration{0} && late >= thresholds.nagle.delayed_ack_min,
              .at = now,
              .late = late,
              .number = number};
}

std::optional<Duration> NagleDetector::since_release(Duration now) const {
  if (!release_.valid) return {};
  return now - release_.at;
}

Detection NagleDetector::check(Duration now, std::uint64_t number, std::uint32_t payload,
                               const LastData& last, const Way& way) const {
  if (!release_.valid) return {};
  const Duration since = now - release_.at;
  const Duration prompt = thresholds.nagle.prompt_release;
  // It left before that ACK can have reached its sender.
  if (way.to_sender > prompt && since < way.to_sender * 7 / 10) return {};
  const Duration to_sender =
      way.to_sender > thresholds.way.of_kernels ? way.to_sender : Duration{0};
  const Duration gap = std::max(Duration{0}, since - to_sender);
  if (gap > prompt + way.to_sender / 4) {
    return {.counterexample = gap <= thresholds.nagle.near_miss};
  }
  return {.stall = StallEvent{.kind = StallKind::kHeldByNagle,
                              .from = last.at,
                              .until = now,
                              .amount = now - last.at,
                              .packets = {last.number, release_.number, number},
                              .gap = gap,
                              .late = release_.late,
                              .after_full = last.full,
                              .first_bytes = last.bytes,
                              .second_bytes = payload,
                              .rtt_known = way.known}};
}

}  // namespace tailward::diag
