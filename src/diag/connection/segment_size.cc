#include "diag/connection/segment_size.h"

#include <algorithm>

#include "diag/thresholds.h"

namespace tailward::diag {

void SegmentSize::take_options(const tcp::Segment& syn) {
  option_ = syn.mss.value_or(0);
  timestamps_ = syn.ts_value.has_value();
}

void SegmentSize::sent(std::uint32_t payload) { payload_max_ = std::max(payload_max_, payload); }

void SegmentSize::repeated(std::uint32_t payload) {
  if (payload >= thresholds.segment_size.full_row_min) row_of_ = payload;
}

std::uint32_t SegmentSize::largest(const SegmentSize& peer, bool loopback) const {
  if (peer.option_ != 0) {
    std::uint32_t size = peer.option_;
    // The path is the same both ways as a rule: who can receive less has the smaller MTU.
    if (option_ != 0) size = std::min<std::uint32_t>(size, option_);
    // Linux subtracts the options that every segment carries (tcp_current_mss): 12 bytes.
    return std::max<std::uint32_t>(size, 64) - (timestamps_ && peer.timestamps_ ? 12 : 0);
  }
  if (loopback) return std::max(payload_max_, thresholds.segment_size.loopback);
  if (payload_max_ > thresholds.segment_size.largest_ethernet) {
    return thresholds.segment_size.ethernet;  // offloaded: the capture shows several as one
  }
  return std::max(payload_max_, thresholds.segment_size.unknown_path);
}

bool SegmentSize::is_full(std::uint32_t payload, const SegmentSize& peer, bool loopback) const {
  return payload >= largest(peer, loopback) || (payload == row_of_ && payload == payload_max_);
}

}  // namespace tailward::diag
