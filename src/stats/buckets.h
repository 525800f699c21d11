// Where a latency falls on a logarithmic scale from 1 µs to 1 h, with at most 1 % relative error.
//
// The scale is DDSketch's with a cubic stand-in for the logarithm (Masson, Rim, Lee, "DDSketch: a
// fast and fully-mergeable quantile sketch with relative-error guarantees", VLDB 2019): every
// bucket's upper bound is at most (1+α)/(1−α) times its lower one, α = 1 %, so that its middle is
// within α of all that it holds. A pure function of the latency: every histogram has the same
// buckets and can be merged with every other.
//
// Computed in integers, so that the bounds are the same on every processor and with every compiler
// flag; with floating point, a fused multiply-add moves a bound by a nanosecond.
//
// Thread safety: pure functions.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/time.h"

namespace tailward::stats {

inline constexpr Duration kLowest = std::chrono::microseconds(1);
inline constexpr Duration kHighest = std::chrono::hours(1);
inline constexpr double kRelativeError = 0.01;

namespace detail {

inline constexpr int kPositionBits = 38;
inline constexpr int kMantissaBits = 24;
// The cubic's slope over ln(latency) is nowhere below 10/7, so that a bucket spans at most
// 1 ÷ (36 × 10/7) = 0.0194 of ln(latency). 35 would do for ln(1.01 ÷ 0.99) = 0.0200007, but for
// middles that are whole nanoseconds: at 1 µs that costs up to 0.05 % more.
inline constexpr std::uint64_t kBucketsPerOctave = 36;

// log2(ns), nearly, as a fixed-point number of kPositionBits: exact at the powers of two, and
// 6/35·s³ − 3/5·s² + 10/7·s for the mantissa 1+s between them. One step of s is worth 2^13 units at
// least, far more than what the shifts round off, so that it never goes down. REQUIRES: ns > 0.
constexpr std::uint64_t position(std::uint64_t ns) {
  constexpr std::int64_t kOne = std::int64_t{1} << kPositionBits;
  constexpr std::int64_t kCubic = 6 * kOne / 35;
  constexpr std::int64_t kSquare = -3 * kOne / 5;
  constexpr std::int64_t kLinear = 10 * kOne / 7;
  const int zeros = std::countl_zero(ns);
  const auto s = static_cast<std::int64_t>(((ns << zeros) << 1) >> (64 - kMantissaBits));
  std::int64_t y = ((kCubic * s) >> kMantissaBits) + kSquare;
  y = ((y * s) >> kMantissaBits) + kLinear;
  y = (y * s) >> kMantissaBits;
  const auto exponent = static_cast<std::uint64_t>(63 - zeros);
  return (exponent << kPositionBits) + static_cast<std::uint64_t>(y);
}

inline constexpr std::uint64_t kOrigin = position(static_cast<std::uint64_t>(kLowest.count()));

}  // namespace detail

// Below kLowest, negative included, counts as the first bucket; above kHighest as the last.
constexpr std::size_t bucket_of(Duration latency) {
  const auto ns =
      static_cast<std::uint64_t>(std::clamp(latency.count(), kLowest.count(), kHighest.count()));
  return static_cast<std::size_t>(
      ((detail::position(ns) - detail::kOrigin) * detail::kBucketsPerOctave) >>
      detail::kPositionBits);
}

// How many buckets there are. They tile kLowest…kHighest, both inclusive.
inline constexpr std::size_t kBucketCount = bucket_of(kHighest) + 1;

namespace detail {
// Bucket i is kBounds[i] … kBounds[i + 1] − 1, in nanoseconds.
extern const std::array<std::int64_t, kBucketCount + 1> kBounds;
extern const std::array<std::int64_t, kBucketCount> kMiddles;
}  // namespace detail

// REQUIRES (of the three): bucket < kBucketCount.
inline Duration bucket_low(std::size_t bucket) { return Duration{detail::kBounds[bucket]}; }
inline Duration bucket_high(std::size_t bucket) { return Duration{detail::kBounds[bucket + 1]}; }
// Within kRelativeError of every latency between bucket_low, inclusive, and bucket_high, exclusive.
inline Duration bucket_middle(std::size_t bucket) { return Duration{detail::kMiddles[bucket]}; }

}  // namespace tailward::stats
