// Finds packets that a capture shows twice: on "any" and on bridges each device that a packet
// passes shows it once more. They must not look like retransmissions.
//
// A copy has the same sequence numbers, window, flags, time stamp and IP identification (RFC 791,
// section 3.2; RFC 6864: unique for as long as a datagram lives), and comes within a millisecond.
//
// Thread safety: one thread.
#pragma once

#include <array>
#include <cstdint>

#include "base/time.h"
#include "tcp/segment.h"

namespace tailward::diag {

class DuplicateFilter {
 public:
  // Whether `segment` is a copy of one of the last eight. Remembers it otherwise. `now` does not
  // run backwards.
  bool is_copy(const tcp::Segment& segment, Duration now);

 private:
  struct Fingerprint {
    std::uint32_t hash = 0, at_us = 0, interface = 0;
  };
  std::array<Fingerprint, 8> recent_{};
  std::uint8_t oldest_ = 0;
};

}  // namespace tailward::diag
