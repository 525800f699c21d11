#include "tcp/socket_facts.h"

namespace tailward::tcp {

std::string_view to_string(TcpState state) {
  switch (state) {
    case TcpState::kUnknown:
      break;
    case TcpState::kEstablished:
      return "ESTABLISHED";
    case TcpState::kSynSent:
      return "SYN-SENT";
    case TcpState::kSynReceived:
      return "SYN-RECEIVED";
    case TcpState::kFinWait1:
      return "FIN-WAIT-1";
    case TcpState::kFinWait2:
      return "FIN-WAIT-2";
    case TcpState::kTimeWait:
      return "TIME-WAIT";
    case TcpState::kClose:
      return "CLOSE";
    case TcpState::kCloseWait:
      return "CLOSE-WAIT";
    case TcpState::kLastAck:
      return "LAST-ACK";
    case TcpState::kListen:
      return "LISTEN";
    case TcpState::kClosing:
      return "CLOSING";
  }
  return "UNKNOWN";
}

}  // namespace tailward::tcp
