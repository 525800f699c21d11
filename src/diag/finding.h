// What a diagnosis says: the grammar that every source of evidence shares, packets, sockets and
// what is to come.
//
// Plain values.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "findings/statement.h"

namespace tailward::diag {

// The names are a contract (see to_string): add, never rename.
enum class Cause {
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
  kSlowReader,
  kWireLatency,       // the path itself is slow; no packet is lost and no window is full
  kConnectionRefused  // somebody answers with RST instead of SYN-ACK
};

// "nagle-delayed-ack", …
std::string_view to_string(Cause cause);

using findings::Certainty;

// A statement about one cause. Its sentence says who waits for what, how long, how often.
struct Finding : findings::Statement {
  Cause cause = Cause::kNone;
  Certainty certainty = Certainty::kGuessed;
  std::vector<std::string> missing = {};  // what would make it more certain
  std::string remedy;
  std::string verify;  // how to know that the remedy worked
  // Of the recorded requests, without the time that this costs them.
  std::optional<Duration> predicted_p99 = {};
  Duration cost{};           // all time lost to it in the window
  double share_of_slow = 0;  // of the slow requests: those that have it
};

}  // namespace tailward::diag
