#include "diag/analysis.h"

namespace tailward::diag {

std::string_view to_string(Vantage vantage) {
  switch (vantage) {
    case Vantage::kUnknown:
      return "unknown";
    case Vantage::kServer:
      return "server";
    case Vantage::kClient:
      return "client";
    case Vantage::kBetween:
      return "between";
    case Vantage::kLoopback:
      return "loopback";
  }
  return "unknown";
}

std::string_view to_string(StallKind kind) {
  switch (kind) {
    case StallKind::kHeldByNagle:
      return "held by Nagle";
    case StallKind::kSmallWrites:
      return "small writes";
    case StallKind::kCorked:
      return "corked";
    case StallKind::kSendBuffer:
      return "send buffer full";
    case StallKind::kReceiveWindow:
      return "receive window full";
    case StallKind::kZeroWindow:
      return "reader not reading";
    case StallKind::kRetransmission:
      return "retransmission";
    case StallKind::kSynUnanswered:
      return "SYN unanswered";
    case StallKind::kSynDropped:
      return "SYN dropped by its host";
    case StallKind::kFirstTurn:
      return "waiting to be accepted";
    case StallKind::kWire:
      return "slow path";
  }
  return "";
}

}  // namespace tailward::diag
