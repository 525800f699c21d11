// Plans of sick services in virtual time: one fault each, injected on purpose, and clients that
// bring it out. The counterpart of lab/sick.h, whose magnitudes they share, for thousands of seeds.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "sim_tcp/exchange.h"

namespace tailward::sim_tcp {

enum class Fault : std::uint8_t {
  kNone,
  kNagleDelayedAck,
  kSmallWrites,
  kCorked,
  kSmallSendBuffer,
  kSmallReceiveWindow,
  kPacketLoss,
  kSynLoss,
  kListenOverflow,
  kSlowAccept,
  kSlowReader
};

std::span<const Fault> faults();
// As diagnosis calls the cause: "nagle-delayed-ack", …
std::string_view to_string(Fault fault);

// What the seed draws: sizes, the path, how many requests are struck.
Plan sick_plan(Fault fault, std::uint64_t seed, Plan::Capture capture);

}  // namespace tailward::sim_tcp
