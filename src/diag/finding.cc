#include "diag/finding.h"

namespace tailward::diag {

std::string_view to_string(Cause cause) {
  switch (cause) {
    case Cause::kNone:
      return "none";
    case Cause::kNagleDelayedAck:
      return "nagle-delayed-ack";
    case Cause::kSmallWrites:
      return "small-writes";
    case Cause::kCorked:
      return "corked";
    case Cause::kSmallSendBuffer:
      return "small-send-buffer";
    case Cause::kSmallReceiveWindow:
      return "small-receive-window";
    case Cause::kPacketLoss:
      return "packet-loss";
    case Cause::kSynLoss:
      return "syn-loss";
    case Cause::kListenOverflow:
      return "listen-overflow";
    case Cause::kSlowAccept:
      return "slow-accept";
    case Cause::kSlowReader:
      return "slow-reader";
    case Cause::kWireLatency:
      return "wire-latency";
    case Cause::kConnectionRefused:
      return "connection-refused";
  }
  return "none";
}

}  // namespace tailward::diag
