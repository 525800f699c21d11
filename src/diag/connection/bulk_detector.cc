#include "diag/connection/bulk_detector.h"

#include <algorithm>

#include "diag/thresholds.h"

namespace tailward::diag {
namespace {

// Whether a level of bytes in flight may be that of a window whose scale is not known.
bool may_be_window(std::uint32_t in_flight, std::uint32_t raw, std::uint32_t segment_size) {
  for (int scale = 0; scale <= ScaleEstimator::kScaleMax; ++scale) {
    const std::uint64_t window = std::uint64_t{raw} << scale;
    if (in_flight <= window && window < in_flight + segment_size * 3ull / 2) return true;
  }
  return false;
}

// Whether what FlightTracker saw can be told from what a capture without SYNs does not show.
bool is_certain(const FlightTracker::Limit& limit, const BulkDetector::Data& data,
                const WindowTracker& window) {
  if (window.scaled_by_unknown() &&
      (window.ever_shrank() || may_be_window(limit.in_flight, window.raw(), data.segment_size))) {
    return false;
  }
  if (limit.kind == StallKind::kSendBuffer) {
    // Between programs of one host the level is that of the loopback's queue.
    return data.rtt >= thresholds.way.of_paths;
  }
  if (window.scale_known()) return true;
  // Much has passed and never more than the window says at a time: then its scale is none.
  const std::uint64_t passed =
      std::uint64_t{thresholds.flight.unscaled_windows_passed} * window.largest();
  return !window.scaled_by_unknown() && window.largest() >= thresholds.flight.unscaled_window_min &&
         data.bytes_sent >= passed;
}

}  // namespace

std::optional<StallEvent> BulkDetector::sent(Duration now, const Data& data,
                                             WindowTracker& window) {
  if (streak_ < thresholds.flight.bulk_segments) {
    ++streak_;
    if (!flight_ && streak_ < thresholds.flight.bulk_segments) return {};
  }
  if (!flight_) flight_ = std::make_unique<FlightTracker>();
  const auto limit = flight_->sent(now, data.end, data.segment_size, data.rtt_to_sender, data.rtt,
                                   window.largest());
  // A window whose scale was not seen is taken as it stands until more is in flight than it says.
  const auto captured = static_cast<std::int64_t>(tcp::distance(data.end, data.acked));
  if (window.exceeded_by(std::max<std::int64_t>(captured, flight_->in_flight()))) {
    flight_->interrupt();
    return {};
  }
  if (!limit || !is_certain(*limit, data, window)) return {};
  return StallEvent{.kind = limit->kind,
                    .from = limit->from,
                    .until = limit->until,
                    .amount = limit->amount,
                    .packets = {data.last_number, data.number},
                    .in_flight = limit->in_flight,
                    .window_max = window.largest(),
                    .window_known = window.scale_known()};
}

void BulkDetector::acked(Duration now, std::uint32_t ack, std::uint32_t window) {
  if (flight_) flight_->acked(now, ack, window);
}

void BulkDetector::peer_spoke() {
  if (streak_ > 0) interrupt();
  streak_ = 0;
}

void BulkDetector::interrupt() {
  if (flight_) flight_->interrupt();
}

}  // namespace tailward::diag
