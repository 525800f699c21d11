#include "tcp/host_counters.h"

namespace tailward::tcp {
namespace {

std::uint64_t risen(std::uint64_t after, std::uint64_t before) {
  return after > before ? after - before : 0;
}

}  // namespace

HostCounters difference(const HostCounters& after, const HostCounters& before) {
  return {
      .listen_overflows = risen(after.listen_overflows, before.listen_overflows),
      .listen_drops = risen(after.listen_drops, before.listen_drops),
      .delayed_acks = risen(after.delayed_acks, before.delayed_acks),
      .tcp_timeouts = risen(after.tcp_timeouts, before.tcp_timeouts),
      .loss_probes = risen(after.loss_probes, before.loss_probes),
      .syn_retrans = risen(after.syn_retrans, before.syn_retrans),
      .retrans_segs = risen(after.retrans_segs, before.retrans_segs),
      .rcv_q_drop = risen(after.rcv_q_drop, before.rcv_q_drop),
      .to_zero_window = risen(after.to_zero_window, before.to_zero_window),
      .from_zero_window = risen(after.from_zero_window, before.from_zero_window),
      .want_zero_window = risen(after.want_zero_window, before.want_zero_window),
  };
}

}  // namespace tailward::tcp
