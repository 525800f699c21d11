// The result of one arm of a TCP experiment, what is computed from several, and what each
// experiment claims.
//
// Plain values and pure functions; the runs are in tcp_exchange.cc and tcp_stream.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "lab/tcp_tally.h"
#include "report/report.h"
#include "stats/histogram.h"

namespace tailward::lab {

// The article's figures (macOS, loopback, no round-trip time), where it gives one.
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

  // Of the runs that were timed; nothing was captured meanwhile.
  stats::Histogram latency;             // of round trips, of whole batches, or of whole transfers
  std::vector<double> medians;          // ms: of each block of round trips, or each batch, in order
  std::vector<double> mb_per_s;         // of each transfer, in order; MB are 10^6 bytes
  std::vector<double> steady_mb_per_s;  // the same from kSteadyFrom on, where it lasts longer
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
  double seconds = 0;

  // Of a run of its own.
  TcpCounts counts;

  // Of `buffers`: what the kernel made of the sizes, as it counts. 0 elsewhere.
  Duration smoothed_rtt{};  // at the end of the last transfer, as TCP measured it
  int send_buffer = 0;
  int receive_buffer = 0;

  [[nodiscard]] double median_ms() const { return to_ms(latency.quantile(0.5)); }
  [[nodiscard]] double p99_ms() const { return to_ms(latency.quantile(0.99)); }
  // The median of the transfers, else all bytes ÷ all time.
  [[nodiscard]] double throughput() const;
  // The median of the steady ones; throughput() where there are none.
  [[nodiscard]] double steady_throughput() const;
  // What the window allows in a round trip, MB/s; 0 where there is none. A busy machine makes round
  // trips longer than the link does, so it is TCP's own measurement that counts, if it is longer.
  [[nodiscard]] double window_limit() const;
};

// "nagle", 64, 1 ms: "nagle-64-rtt1"; a part that is empty or 0 bytes is left out.
std::string tcp_arm_name(std::string_view option, std::size_t size, std::optional<Duration> rtt);

// 0 of nothing.
double median_of(std::vector<double> values);
// The median of a[i] ÷ b[i]: what two arms that took turns say of each other. 0 of nothing.
double paired_ratio(std::span<const double> a, std::span<const double> b);

const TcpArm* find_arm(std::span<const TcpArm> arms, std::string_view option, std::size_t size,
                       Duration rtt);

// The bars of the experiments. What was not measured is not judged.
std::vector<report::Check> batch_checks(std::span<const TcpArm> arms);
std::vector<report::Check> exchange_checks(std::span<const TcpArm> arms);
std::vector<report::Check> interlock_checks(std::span<const TcpArm> arms);
std::vector<report::Check> buffer_checks(std::span<const TcpArm> arms);

}  // namespace tailward::lab
