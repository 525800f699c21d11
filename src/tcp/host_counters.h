// The kernel's TCP counters of a whole network namespace.
//
// Plain values.
#pragma once

#include <cstdint>

namespace tailward::tcp {

// The host's (more exactly: the network namespace's) counters that bear on verdicts, as deltas over
// the time that was watched. /proc/net/netstat and /proc/net/snmp.
struct HostCounters {
  std::uint64_t listen_overflows = 0, listen_drops = 0, delayed_acks = 0, tcp_timeouts = 0;
  std::uint64_t loss_probes = 0, syn_retrans = 0, retrans_segs = 0, rcv_q_drop = 0;
  std::uint64_t to_zero_window = 0, from_zero_window = 0, want_zero_window = 0;
};

// after − before, counter by counter; 0 where one ran backwards.
HostCounters difference(const HostCounters& after, const HostCounters& before);

}  // namespace tailward::tcp
