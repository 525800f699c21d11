// What a full segment of one side is: its maximum segment size (RFC 9293, section 3.7.1; RFC 6691),
// from the options of the SYNs, or from what it sends where these were not captured.
//
// Thread safety: one thread.
#pragma once

#include <cstdint>

#include "tcp/segment.h"

namespace tailward::diag {

class SegmentSize {
 public:
  void take_options(const tcp::Segment& syn);
  // New data of this side.
  void sent(std::uint32_t payload);
  // It came right behind a segment of the same size, with nothing from the peer between them.
  void repeated(std::uint32_t payload);

  // Bytes of payload that a segment to `peer` can hold. `loopback`: both are programs of one host.
  [[nodiscard]] std::uint32_t largest(const SegmentSize& peer, bool loopback) const;
  // Where the path's MTU is smaller than what the options allow, several of the largest payload in
  // a row show what is full.
  [[nodiscard]] bool is_full(std::uint32_t payload, const SegmentSize& peer, bool loopback) const;

 private:
  std::uint16_t option_ = 0;  // what this side can receive; 0: unknown
  bool timestamps_ = false;
  std::uint32_t payload_max_ = 0;
  std::uint32_t row_of_ = 0;  // the payload of segments that came in a row
};

}  // namespace tailward::diag
