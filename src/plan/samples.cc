#include "plan/samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/rng.h"

namespace tailward::plan {

void FineCounts::grow(std::uint64_t bin) {
  // Doubling: most logs need a small part of the bins.
  counts_.resize(std::clamp<std::size_t>(2 * counts_.size(), bin + 1, kBins));
}

void FineCounts::record_within(Duration low, Duration high, std::uint64_t times) {
  const auto from = static_cast<std::uint64_t>(low / kWidth);
  const auto to = static_cast<std::uint64_t>(high / kWidth);
  const std::uint64_t bins = to - from + 1;
  const std::uint64_t each = times / bins;
  const std::uint64_t rest = times % bins;
  for (std::uint64_t bin = from; each > 0 && bin <= to && bin < kBins; ++bin) add(bin, each);
  // The rest is spread evenly from a place that differs each time. Always from the first bin it
  // would make a lattice that the log does not have.
  const std::uint64_t start = mix64(spread_++) % bins;
  for (std::uint64_t nth = 0; nth < rest; ++nth) {
    add(from + (start + nth * bins / rest) % bins, 1);
  }
}

Result<void> Recorder::text(std::string_view value, std::uint64_t line) {
  const Value read = parse_value(value, bare_);
  if (read.skip != Skip::kNone) {
    skip(read.skip, line, value);
    return {};
  }
  const Units units = read.own_unit ? Units::kOwn : Units::kBare;
  // A log that mixes "12" and "12ms" has two producers: one of them would be off by a factor.
  if (units != units_) {
    if (units_ != Units::kUnknown) {
      return fail(
          ErrorKind::kInvalid,
          fmt::format("line {}: {} has {} unit, but line {} has {}", line, in_quotes(value),
                      read.own_unit ? "a" : "no", units_since_, read.own_unit ? "none" : "one"),
          "give every latency its unit, or none");
    }
    units_ = units;
    units_since_ = line;
  }
  latency(read.latency);
  return {};
}

void Recorder::latency(Duration latency) {
  samples_.histogram.record(latency);
  samples_.fine.record(latency);
  Duration& resolution = samples_.resolution;
  // Mostly true, or the division would cost more than all else here.
  if (resolution.count() == 1) return;
  if (resolution.count() != 0 && latency.count() % resolution.count() == 0) return;
  resolution = Duration{std::gcd(resolution.count(), latency.count())};
}

void Recorder::latencies(Duration low, Duration middle, Duration high, std::uint64_t times) {
  samples_.histogram.record(middle, times);
  samples_.fine.record_within(low, high, times);
  // A histogram has no lattice of its own: its values were spread over its buckets.
  samples_.resolution = Duration{1};
}

void Recorder::skip(Skip why, std::uint64_t line, std::string_view what) {
  ++skipped_.by_reason[static_cast<std::size_t>(why)];
  if (skipped_.lines++ > 0) return;
  skipped_.first_line = line;
  skipped_.first_why =
      fmt::format("line {}: {} {}", line, what.empty() ? "it" : in_quotes(what), to_string(why));
}

std::string in_quotes(std::string_view text, std::size_t most) {
  std::string out = "'";
  for (const char c : text.substr(0, most)) {
    const auto byte = static_cast<unsigned char>(c);
    // A log may hold anything, also escape sequences for the terminal that shows the error.
    out += byte >= 0x20 && byte < 0x7f ? c : '?';
  }
  return out + (text.size() > most ? "…'" : "'");
}

}  // namespace tailward::plan
