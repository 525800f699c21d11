// A corked rest: with TCP_CORK or MSG_MORE the kernel keeps a part of a segment until the program
// removes the cork, or until its own patience is over: 200 ms, or the RTO where that is longer,
// after there was nothing left to wait for but the rest (tcp_check_probe_timer in
// net/ipv4/tcp_output.c, the timer of the window probes).
//
// Pure functions of what the connection knows.
#pragma once

#include <cstdint>

#include "base/time.h"
#include "diag/connection/stall_event.h"

namespace tailward::diag {

struct CorkContext {
  LastData own = {}, peer = {};
  Duration all_acked_at{};   // of the sender's data; zero: never
  bool is_response = false;  // the server sends: its patience may have begun with the request
  Duration rtt_to_sender{};
  Duration slow_ack{};  // the 90 % quantile of the peer's acknowledgements: the RTO follows them
};

// A segment that is not full, with nothing outstanding and the peer's window open. Events lack
// `sender`.
Detection check_cork(Duration now, std::uint64_t number, std::uint32_t payload,
                     const CorkContext& context);

}  // namespace tailward::diag
