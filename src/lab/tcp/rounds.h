// Round trips of one request and one response each, in several variants: what `interlock` and
// `nodelay-reqresp` measure.
//
// Thread safety: one thread; the server of a connection runs on a thread of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "lab/tcp/arm.h"
#include "lab/tcp/place.h"
#include "lab/tcp/run.h"

namespace tailward::lab {

// How an arm writes its requests.
struct RoundVariant {
  std::string option;
  bool nodelay = false;
  std::vector<std::size_t> writes = {};  // of one request, bytes each
  std::size_t response_bytes = 0;
};

std::size_t request_bytes(const RoundVariant& variant);
TcpArm arm_for(const RoundVariant& variant, Duration rtt);

// Rounds of each variant that follow the timed ones, on a connection whose packets are counted.
inline constexpr std::uint64_t kCountedRounds = 20;

// Runs `rounds` round trips of each variant, `block` at a time in turns, and then, once for each
// arm, a few more to count packets. Arms of several calls add up.
//
// Variants that take turns (block < rounds) must differ in NODELAY only. They share one connection,
// on which the option is switched: with a connection and a thread for each, it matters more than
// the option whether the scheduler puts a server on its client's CPU or on another one.
Result<void> run_variants(TcpPlace& place, const std::vector<RoundVariant>& variants,
                          std::uint64_t rounds, std::uint64_t block, TcpRun& run,
                          std::span<TcpArm> arms);

}  // namespace tailward::lab
