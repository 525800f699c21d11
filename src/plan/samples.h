// What is kept of a log's latencies, and what is told of the reading.
//
// Thread safety: one writer and no reader beside it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "plan/value.h"
#include "stats/histogram.h"

namespace tailward::plan {

// Counts on a linear scale, for what repeats at equal distances: kWidth each, up to kEnd. At most
// 1.6 MB.
class FineCounts {
 public:
  static constexpr Duration kWidth = std::chrono::microseconds(100);
  static constexpr Duration kEnd = std::chrono::seconds(20);
  static constexpr std::size_t kBins = static_cast<std::size_t>(kEnd / kWidth);

  // What is beyond kEnd is left out.
  void record(Duration latency, std::uint64_t times = 1) {
    add(static_cast<std::uint64_t>(latency.count()) / static_cast<std::uint64_t>(kWidth.count()),
        times);
  }
  // `times` latencies somewhere in low…high: evenly over the bins, those that do not make one for
  // each at places that repeat nothing. REQUIRES: 0 ≤ low ≤ high.
  void record_within(Duration low, Duration high, std::uint64_t times);
  // From 0 on; those after the last one are 0.
  [[nodiscard]] const std::vector<std::uint64_t>& counts() const { return counts_; }

 private:
  void add(std::uint64_t bin, std::uint64_t times) {
    if (bin >= counts_.size()) {
      if (bin >= kBins) return;
      grow(bin);
    }
    counts_[bin] += times;
  }
  void grow(std::uint64_t bin);

  std::vector<std::uint64_t> counts_;
  std::uint64_t spread_ = 0;
};

struct Samples {
  stats::Histogram histogram;
  FineCounts fine;
  // All latencies are multiples of it; 1 ns when they are of nothing longer, 0 when all are 0.
  Duration resolution{};
};

struct Skipped {
  std::uint64_t lines = 0;
  std::array<std::uint64_t, kSkipCount> by_reason{};
  std::uint64_t first_line = 0;
  std::string first_why;  // "line 17: 'abc' is not a number"
};

// Takes the latencies of one log.
class Recorder {
 public:
  explicit Recorder(Unit bare) : bare_(bare) {}

  // A latency as text, or a reason to skip the line. kInvalid when some lines carry a unit and some
  // do not.
  Result<void> text(std::string_view value, std::uint64_t line);
  void latency(Duration latency);
  // `times` latencies within low…high of which `middle` is to stand for.
  void latencies(Duration low, Duration middle, Duration high, std::uint64_t times);
  // `what` is the text that was not understood.
  void skip(Skip why, std::uint64_t line, std::string_view what = {});

  [[nodiscard]] const Samples& samples() const { return samples_; }
  [[nodiscard]] const Skipped& skipped() const { return skipped_; }
  [[nodiscard]] bool own_units() const { return units_ == Units::kOwn; }
  [[nodiscard]] Samples take() { return std::move(samples_); }

 private:
  enum class Units { kUnknown, kBare, kOwn };

  Unit bare_;
  Units units_ = Units::kUnknown;
  std::uint64_t units_since_ = 0;  // the line that settled it
  Samples samples_;
  Skipped skipped_;
};

// At most `most` bytes of foreign text, in quotes, for a message; what a terminal must not see is
// replaced by "?".
std::string in_quotes(std::string_view text, std::size_t most = 40);

}  // namespace tailward::plan
