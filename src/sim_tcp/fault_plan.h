// Plans of faulty services in virtual time: one fault each, injected on purpose, and clients that
// bring it out. The counterpart of faults/fault.h, of the same magnitudes, for thousands of seeds.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "sim_tcp/exchange.h"

namespace tailward::sim_tcp {

enum class InjectedFault : std::uint8_t {
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

std::span<const InjectedFault> faults();
// As diagnosis calls the cause: "nagle-delayed-ack", …
std::string_view to_string(InjectedFault fault);

// What the seed draws: sizes, the path, how many requests are struck.
CapturePlan fault_plan(InjectedFault fault, std::uint64_t seed, CapturePlan::Capture capture);

}  // namespace tailward::sim_tcp
