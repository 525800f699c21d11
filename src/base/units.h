// Durations, sizes, shares and addresses as people type them on a command line, and back.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"

namespace tailward {

// "250us", "10ms", "1.5s", "2m", "1h". A bare number is refused, but "0" is taken. Negative, NaN
// and overflowing values are kInvalid, with the accepted forms in the hint.
Result<Duration> parse_duration(std::string_view text);

// "512", "64KiB", "10MB": a count of bytes.
Result<std::uint64_t> parse_size(std::string_view text);

// "5%", "0.05": a share in 0…1.
Result<double> parse_share(std::string_view text);

// "p50", "P99", "p99.9", or a share "0.999": a quantile above 0 and below 1.
Result<double> parse_percentile(std::string_view text);
// The same, in the first form: "p99.9".
std::string format_percentile(double quantile);

// Three significant digits with the unit that reads best: "870 ns", "12.3 ms", "1.25 s".
std::string format_duration(Duration duration);

// "14.7 %"
std::string format_share(double share);

// "1,234,567"
std::string format_count(std::uint64_t count);

}  // namespace tailward
