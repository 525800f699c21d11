// The figures of one arm of a TCP experiment, and what is computed from several.
//
// Plain values and pure functions. Thread safety: as any value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "lab/tcp/tally.h"
#include "stats/histogram.h"

namespace tailward::lab {

// The article's figures (macOS, loopback, no round-trip time). What it does not give is empty.
struct TcpArticle {
  std::optional<double> median_ms = {};
  std::optional<double> mb_per_s = {};
};

struct TcpArm {
  std::string name;      // "nagle-64-rtt1"
  std::string option;    // "nagle", "nodelay", "one-write"; "default", "8KiB", …
  std::size_t size = 0;  // bytes of a message
  Duration rtt{};
  TcpArticle article = {};

  // Of the timed runs. Nothing was captured meanwhile: a capture costs time for each packet.
  stats::Histogram latency;             // of round trips, of whole batches, or of whole transfers
  std::vector<double> medians;          // ms: of each block of round trips, or each batch, in order
  std::vector<double> mb_per_s;         // of each transfer, in order; MB are 10^6 bytes
  std::vector<double> steady_mb_per_s;  // the same from kSteadyFrom on, where it lasts longer
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
  double seconds = 0;

  // Of a separate run, with a capture.
  TcpCounts counts;

  // Of `buffers`: the sizes as the kernel counts them (socket(7): it doubles what was asked for). 0
  // elsewhere.
  Duration smoothed_rtt{};  // at the end of the last transfer, as TCP measured it
  int send_buffer = 0;
  int receive_buffer = 0;

  [[nodiscard]] double median_ms() const { return to_ms(latency.quantile(0.5)); }
  [[nodiscard]] double p99_ms() const { return to_ms(latency.quantile(0.99)); }
  // The median of the transfers, else all bytes ÷ all time.
  [[nodiscard]] double throughput() const;
  // The median of the steady ones; throughput() where there are none.
  [[nodiscard]] double steady_throughput() const;
  // What one window for each round trip allows, MB/s; 0 without round-trip time. A busy machine
  // makes round trips longer than the link does: TCP's own measurement counts where it is longer.
  [[nodiscard]] double window_limit() const;
};

// "nagle", 64, 1 ms: "nagle-64-rtt1"; a part that is empty or 0 bytes is left out.
std::string tcp_arm_name(std::string_view option, std::size_t size, std::optional<Duration> rtt);

// 0 of nothing.
double median_of(std::vector<double> values);
// The median of a[i] ÷ b[i]: compares two arms that took turns, so that what slowed both down does
// not count. 0 of nothing.
double paired_ratio(std::span<const double> a, std::span<const double> b);

const TcpArm* find_arm(std::span<const TcpArm> arms, std::string_view option, std::size_t size,
                       Duration rtt);

// "RTT 10 ms".
std::string rtt_text(Duration rtt);
// The arms of an experiment: every option with every size at every round-trip time. No `rtts`: they
// do not vary, and the names leave them out.
std::vector<std::string> tcp_arm_names(const std::vector<std::string>& options,
                                       const std::vector<std::size_t>& sizes,
                                       const std::vector<Duration>& rtts);

}  // namespace tailward::lab
