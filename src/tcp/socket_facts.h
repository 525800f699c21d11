// What is known of a TCP socket from outside its process: who it is, its options (read through a
// duplicated descriptor), and the kernel's own account of it (socket diagnostics, TCP_INFO).
//
// Plain values. A figure that could not be read, or that this kernel does not have, is empty.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tcp/address.h"

namespace tailward::tcp {

// As in include/net/tcp_states.h.
enum class TcpState : std::uint8_t {
  kUnknown = 0,
  kEstablished = 1,
  kSynSent,
  kSynReceived,
  kFinWait1,
  kFinWait2,
  kTimeWait,
  kClose,
  kCloseWait,
  kLastAck,
  kListen,
  kClosing
};
std::string_view to_string(TcpState state);  // "ESTABLISHED", "LISTEN", …

struct SocketOptions {
  std::optional<bool> nodelay;
  std::optional<bool> cork;
  std::optional<bool> quickack;  // false: acknowledgements are being delayed
  std::optional<int> sndbuf;     // bytes, as the kernel counts: twice what was asked for
  std::optional<int> rcvbuf;
  std::optional<bool> sndbuf_locked;  // SO_BUF_LOCK: set by the application, not autotuned
  std::optional<bool> rcvbuf_locked;
  std::optional<bool> keepalive;
  std::optional<int> keepidle_s;
  std::optional<int> keepintvl_s;
  std::optional<int> keepcnt;
  std::optional<int> linger_s;  // -1: off
  std::optional<int> user_timeout_ms;
  std::optional<std::uint32_t> notsent_lowat;
  std::optional<bool> v6only;
  std::optional<bool> reuseaddr;
  std::optional<bool> reuseport;
  std::optional<int> defer_accept_s;
  std::optional<int> fastopen_queue;
  std::optional<std::string> congestion;
  std::optional<int> rto_min_us;
  std::optional<int> rto_max_ms;
  std::optional<int> delack_max_us;
  std::optional<int> busy_poll_us;
  std::optional<int> tos;
};

// TCP_INFO: include/uapi/linux/tcp.h. Times in µs unless the name says otherwise.
struct TcpInfo {
  std::optional<std::uint32_t> rto_us, ato_us, rtt_us, rttvar_us, min_rtt_us, rcv_rtt_us;
  std::optional<std::uint32_t> snd_mss, rcv_mss, advmss, pmtu, cwnd, ssthresh, rcv_ssthresh;
  std::optional<std::uint32_t> rcv_space, unacked, sacked, lost, retrans_now, total_retrans;
  std::optional<std::uint32_t> reordering, notsent_bytes, segs_out, segs_in;
  std::optional<std::uint32_t> data_segs_out, data_segs_in, delivered, rcv_ooopack, snd_wnd,
      rcv_wnd;
  std::optional<std::uint32_t> last_data_sent_ms, last_data_recv_ms, last_ack_recv_ms;
  std::optional<std::uint64_t> bytes_acked, bytes_received, bytes_sent, bytes_retrans;
  std::optional<std::uint64_t> busy_us, rwnd_limited_us, sndbuf_limited_us;
  std::optional<std::uint64_t> pacing_bytes_per_s, delivery_bytes_per_s;
  std::optional<std::uint8_t> backoff, retransmits, probes, snd_wscale, rcv_wscale;
  bool app_limited = false;
};

// SK_MEMINFO, in bytes; as `ss -m` prints it.
struct SocketMemory {
  std::uint32_t rmem_alloc = 0, rcvbuf = 0, wmem_alloc = 0, sndbuf = 0, fwd_alloc = 0;
  std::uint32_t wmem_queued = 0, optmem = 0, backlog = 0, drops = 0;
};

struct SocketFacts {
  int fd = -1;  // -1: owner not known (another user's process)
  int pid = 0;
  std::uint32_t inode = 0;
  std::uint32_t uid = 0;
  TcpState state = TcpState::kUnknown;
  SocketAddress local;
  SocketAddress remote;
  // Bytes; on a listener: connections waiting to be accepted, and how many may.
  std::uint32_t recv_queue = 0;
  std::uint32_t send_queue = 0;
  SocketOptions options;
  TcpInfo tcp;
  std::optional<SocketMemory> memory;
};

}  // namespace tailward::tcp
