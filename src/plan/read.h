// Reads a log into samples, in fixed memory, and says what it took the log for.
//
// Thread safety: none; one log on one thread.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "plan/bytes.h"
#include "plan/formats.h"
#include "plan/samples.h"

namespace tailward::plan {

struct Reading {
  std::string format;      // "list", "csv", "nginx", "envoy", "hdr"
  std::string understood;  // "nginx access log, $request_time (the last field) in s, gzip"
  std::uint64_t lines = 0;
  std::uint64_t latencies = 0;
  Skipped skipped;
  bool partial = false;  // the source ended with kCancelled
  Samples samples;
};

// More lines than this share that give no latency, and the log was misunderstood.
inline constexpr double kSkippedMax = 0.1;

// kInvalid: nothing to read, no latency in it, more than kSkippedMax of the lines skipped, all
// latencies 0, or what the parts find. Memory: about 15 MB, whatever is read.
Result<Reading> read_latencies(ByteSource source, const ReadOptions& options);

// "1,234 skipped: 1,230 no value, 4 not a number (first line 17: 'abc' is not a number)"; empty
// when none was.
std::string describe(const Skipped& skipped);

}  // namespace tailward::plan
