// Histograms of HdrHistogram logs: base64 of its compressed encoding, version 2.
//
// Written after the format's published description (HdrHistogram, "Histogram encoding format V2"):
// zlib around a 40-byte head and zigzag LEB128 counts, where a negative one is a run of zeros.
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "base/result.h"

namespace tailward::plan {

// Values low…high, in the unit that the log's writer used, that the histogram does not tell apart.
struct HdrCount {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  std::uint64_t times = 0;
};

// Gives every count above 0, by rising value. kInvalid: not such a histogram, or a damaged one;
// kUnsupported: of another version. Nothing is given then. Memory: 16 MiB at most.
Result<void> decode_hdr(std::string_view base64, const std::function<void(const HdrCount&)>& give);

}  // namespace tailward::plan
