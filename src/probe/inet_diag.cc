#include "probe/inet_diag.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <libmnl/libmnl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>

#include "probe/sockets.h"

namespace tailward::probe {
namespace {

// Younger than Debian 12's struct tcp_info, which ends with tcpi_snd_wnd (Linux 5.4).
constexpr std::size_t kRcvWndAt = 232;  // tcpi_rcv_wnd, Linux 6.2
static_assert(offsetof(struct tcp_info, tcpi_snd_wnd) == 228);

constexpr std::uint32_t kUnmeasured = UINT32_MAX;    // tcpi_min_rtt
constexpr std::uint32_t kNoThreshold = 0x7fff'ffff;  // TCP_INFINITE_SSTHRESH
constexpr std::uint64_t kUnpaced = UINT64_MAX;       // tcpi_pacing_rate
constexpr std::uint64_t kUnpaced32 = UINT32_MAX;     // the same, of older kernels
constexpr std::uint32_t kBoundInactive = 13;         // TCP_BOUND_INACTIVE, Linux 6.8

template <class T>
std::optional<T> unless(std::optional<T> value, T nothing) {
  return value == nothing ? std::nullopt : value;
}

// The kernel's struct, with the knowledge of how much of it is real.
class Cut {
 public:
  explicit Cut(std::span<const std::uint8_t> bytes) : size_(std::min(bytes.size(), sizeof info_)) {
    if (size_ > 0) std::memcpy(&info_, bytes.data(), size_);
  }
  template <class T>
  std::optional<T> get(T tcp_info::*field) const {
    const auto* at = reinterpret_cast<const std::uint8_t*>(&(info_.*field));
    const auto end = static_cast<std::size_t>(at - begin()) + sizeof(T);
    return end <= size_ ? std::optional<T>(info_.*field) : std::nullopt;
  }
  [[nodiscard]] const tcp_info& raw() const { return info_; }
  // Bit fields have no address; they stand before tcpi_rto.
  [[nodiscard]] bool has_bits() const { return size_ >= offsetof(tcp_info, tcpi_rto); }

 private:
  [[nodiscard]] const std::uint8_t* begin() const {
    return reinterpret_cast<const std::uint8_t*>(&info_);
  }
  tcp_info info_{};
  std::size_t size_;
};

std::optional<std::uint32_t> word_at(std::span<const std::uint8_t> bytes, std::size_t at) {
  std::uint32_t value = 0;
  if (bytes.size() < at + sizeof value) return std::nullopt;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

std::optional<std::uint64_t> wide(std::optional<__u64> value) {
  if (!value) return std::nullopt;
  return static_cast<std::uint64_t>(*value);
}

void read_times(const Cut& cut, tcp::TcpInfo& info) {
  info.rto_us = cut.get(&tcp_info::tcpi_rto);
  info.ato_us = cut.get(&tcp_info::tcpi_ato);
  info.rtt_us = cut.get(&tcp_info::tcpi_rtt);
  info.rttvar_us = cut.get(&tcp_info::tcpi_rttvar);
  info.min_rtt_us = unless(cut.get(&tcp_info::tcpi_min_rtt), kUnmeasured);
  info.rcv_rtt_us = unless(cut.get(&tcp_info::tcpi_rcv_rtt), 0U);
  info.last_data_sent_ms = cut.get(&tcp_info::tcpi_last_data_sent);
  info.last_data_recv_ms = cut.get(&tcp_info::tcpi_last_data_recv);
  info.last_ack_recv_ms = cut.get(&tcp_info::tcpi_last_ack_recv);
  info.busy_us = wide(cut.get(&tcp_info::tcpi_busy_time));
  info.rwnd_limited_us = wide(cut.get(&tcp_info::tcpi_rwnd_limited));
  info.sndbuf_limited_us = wide(cut.get(&tcp_info::tcpi_sndbuf_limited));
}

void read_windows(const Cut& cut, tcp::TcpInfo& info) {
  info.snd_mss = cut.get(&tcp_info::tcpi_snd_mss);
  info.rcv_mss = cut.get(&tcp_info::tcpi_rcv_mss);
  info.advmss = cut.get(&tcp_info::tcpi_advmss);
  info.pmtu = cut.get(&tcp_info::tcpi_pmtu);
  info.cwnd = cut.get(&tcp_info::tcpi_snd_cwnd);
  info.ssthresh = unless(cut.get(&tcp_info::tcpi_snd_ssthresh), kNoThreshold);
  info.rcv_ssthresh = cut.get(&tcp_info::tcpi_rcv_ssthresh);
  info.rcv_space = cut.get(&tcp_info::tcpi_rcv_space);
  info.snd_wnd = cut.get(&tcp_info::tcpi_snd_wnd);
  if (cut.has_bits() && (cut.raw().tcpi_options & TCPI_OPT_WSCALE) != 0) {
    info.snd_wscale = static_cast<std::uint8_t>(cut.raw().tcpi_snd_wscale);
    info.rcv_wscale = static_cast<std::uint8_t>(cut.raw().tcpi_rcv_wscale);
  }
}

void read_traffic(const Cut& cut, tcp::TcpInfo& info) {
  info.unacked = cut.get(&tcp_info::tcpi_unacked);
  info.sacked = cut.get(&tcp_info::tcpi_sacked);
  info.lost = cut.get(&tcp_info::tcpi_lost);
  info.retrans_now = cut.get(&tcp_info::tcpi_retrans);
  info.total_retrans = cut.get(&tcp_info::tcpi_total_retrans);
  info.reordering = cut.get(&tcp_info::tcpi_reordering);
  info.notsent_bytes = cut.get(&tcp_info::tcpi_notsent_bytes);
  info.segs_out = cut.get(&tcp_info::tcpi_segs_out);
  info.segs_in = cut.get(&tcp_info::tcpi_segs_in);
  info.data_segs_out = cut.get(&tcp_info::tcpi_data_segs_out);
  info.data_segs_in = cut.get(&tcp_info::tcpi_data_segs_in);
  info.delivered = cut.get(&tcp_info::tcpi_delivered);
  info.rcv_ooopack = cut.get(&tcp_info::tcpi_rcv_ooopack);
  info.bytes_acked = wide(cut.get(&tcp_info::tcpi_bytes_acked));
  info.bytes_received = wide(cut.get(&tcp_info::tcpi_bytes_received));
  info.bytes_sent = wide(cut.get(&tcp_info::tcpi_bytes_sent));
  info.bytes_retrans = wide(cut.get(&tcp_info::tcpi_bytes_retrans));
  info.pacing_bytes_per_s =
      unless(unless(wide(cut.get(&tcp_info::tcpi_pacing_rate)), kUnpaced), kUnpaced32);
  info.delivery_bytes_per_s = wide(cut.get(&tcp_info::tcpi_delivery_rate));
  info.backoff = cut.get(&tcp_info::tcpi_backoff);
  info.retransmits = cut.get(&tcp_info::tcpi_retransmits);
  info.probes = cut.get(&tcp_info::tcpi_probes);
  info.app_limited = cut.has_bits() && cut.raw().tcpi_delivery_rate_app_limited != 0;
}

tcp::Address address_of(const __be32 (&words)[4], bool v4) {
  tcp::Address address;
  if (v4) {
    address.bytes[10] = address.bytes[11] = 0xff;
    std::memcpy(address.bytes.data() + 12, words, 4);
  } else {
    std::memcpy(address.bytes.data(), words, sizeof words);
  }
  return address;
}

void read_attribute(std::uint16_t type, std::span<const std::uint8_t> value,
                    tcp::SocketFacts& facts) {
  switch (type) {
    case INET_DIAG_INFO:
      // Of a listener all figures are 0 or mean something else.
      if (facts.state != tcp::TcpState::kListen) facts.tcp = parse_tcp_info(value);
      break;
    case INET_DIAG_SKMEMINFO:
      facts.memory = parse_memory(value);
      break;
    case INET_DIAG_CONG: {
      const auto* text = reinterpret_cast<const char*>(value.data());
      facts.options.congestion = std::string(text, ::strnlen(text, value.size()));
      break;
    }
    case INET_DIAG_SKV6ONLY:
      if (!value.empty()) facts.options.v6only = value[0] != 0;
      break;
    default:
      break;
  }
}

struct CloseNetlink {
  void operator()(mnl_socket* socket) const { ::mnl_socket_close(socket); }
};
using Netlink = std::unique_ptr<mnl_socket, CloseNetlink>;

Error netlink_error(int error) {
  if (error == EPERM || error == EACCES) {
    return {ErrorKind::kDenied, "socket diagnostics are forbidden here",
            "a sandbox (seccomp, SELinux) forbids netlink"};
  }
  if (error == ENOENT || error == EPROTONOSUPPORT) {
    return {ErrorKind::kUnsupported, "this kernel has no TCP socket diagnostics",
            "modprobe tcp_diag (CONFIG_INET_TCP_DIAG)"};
  }
  return {ErrorKind::kInternal, fmt::format("socket diagnostics failed: {}", std::strerror(error))};
}

// "local port = P" for the kernel: two conditions, each of which jumps over the end when it does
// not hold. The second word of each is the port, in a no-op's clothes (inet_diag_bc_run()).
std::array<inet_diag_bc_op, 4> port_filter(std::uint16_t port) {
  constexpr unsigned char kStep = 8;
  return {{{INET_DIAG_BC_S_GE, kStep, 2 * kStep + 4},
           {0, 0, port},
           {INET_DIAG_BC_S_LE, kStep, kStep + 4},
           {0, 0, port}}};
}

std::uint32_t states_of(const DumpRequest& request) {
  const auto bit = [](tcp::TcpState state) { return 1U << static_cast<unsigned>(state); };
  if (request.listeners_only) return bit(tcp::TcpState::kListen);
  const std::uint32_t all = (1U << (kBoundInactive + 1)) - 1;
  return all & ~bit(tcp::TcpState::kTimeWait) & ~bit(tcp::TcpState::kUnknown);
}

Result<void> ask(mnl_socket* netlink, std::uint8_t family, const DumpRequest& request,
                 std::uint32_t sequence) {
  alignas(nlmsghdr) char buffer[512];
  nlmsghdr* head = ::mnl_nlmsg_put_header(buffer);
  head->nlmsg_type = SOCK_DIAG_BY_FAMILY;
  head->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  head->nlmsg_seq = sequence;
  auto* body =
      static_cast<inet_diag_req_v2*>(::mnl_nlmsg_put_extra_header(head, sizeof(inet_diag_req_v2)));
  body->sdiag_family = family;
  body->sdiag_protocol = IPPROTO_TCP;
  body->idiag_states = states_of(request);
  for (const int extension : {INET_DIAG_INFO, INET_DIAG_SKMEMINFO, INET_DIAG_CONG}) {
    body->idiag_ext = static_cast<std::uint8_t>(body->idiag_ext | 1U << (extension - 1));
  }
  if (request.local_port) {
    const auto filter = port_filter(*request.local_port);
    ::mnl_attr_put(head, INET_DIAG_REQ_BYTECODE, sizeof filter, filter.data());
  }
  if (::mnl_socket_sendto(netlink, head, head->nlmsg_len) < 0) return fail(netlink_error(errno));
  return {};
}

// What one datagram holds. True: the dump goes on.
Result<bool> take_messages(std::span<const char> bytes, std::uint32_t sequence,
                           std::vector<tcp::SocketFacts>& into) {
  int left = static_cast<int>(bytes.size());
  const auto* head = reinterpret_cast<const nlmsghdr*>(bytes.data());
  for (; ::mnl_nlmsg_ok(head, left); head = ::mnl_nlmsg_next(head, &left)) {
    if (head->nlmsg_seq != sequence) continue;
    const auto* payload = static_cast<const std::uint8_t*>(::mnl_nlmsg_get_payload(head));
    const std::size_t size = ::mnl_nlmsg_get_payload_len(head);
    if (head->nlmsg_type == NLMSG_DONE) return false;
    if (head->nlmsg_type == NLMSG_ERROR) {
      int error = 0;
      if (size >= sizeof error) std::memcpy(&error, payload, sizeof error);
      return fail(netlink_error(-error));
    }
    auto facts = parse_diag_message({payload, size});
    if (facts) into.push_back(std::move(*facts));
  }
  return true;
}

Result<void> receive(mnl_socket* netlink, std::uint32_t sequence,
                     std::vector<tcp::SocketFacts>& into) {
  // As much as the kernel puts into one message of a dump.
  std::vector<char> buffer(std::size_t{64} << 10);
  while (true) {
    const ssize_t got = ::mnl_socket_recvfrom(netlink, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(netlink_error(errno));
    const Result<bool> more =
        take_messages({buffer.data(), static_cast<std::size_t>(got)}, sequence, into);
    if (!more) return fail(more.error());
    if (!*more) return {};
  }
}

}  // namespace

tcp::TcpInfo parse_tcp_info(std::span<const std::uint8_t> bytes) {
  const Cut cut(bytes);
  tcp::TcpInfo info;
  read_times(cut, info);
  read_windows(cut, info);
  read_traffic(cut, info);
  info.rcv_wnd = word_at(bytes, kRcvWndAt);
  return info;
}

std::optional<tcp::SocketMemory> parse_memory(std::span<const std::uint8_t> bytes) {
  const auto word = [&](unsigned index) { return word_at(bytes, index * sizeof(std::uint32_t)); };
  if (!word(SK_MEMINFO_SNDBUF)) return std::nullopt;
  return tcp::SocketMemory{
      .rmem_alloc = word(SK_MEMINFO_RMEM_ALLOC).value_or(0),
      .rcvbuf = word(SK_MEMINFO_RCVBUF).value_or(0),
      .wmem_alloc = word(SK_MEMINFO_WMEM_ALLOC).value_or(0),
      .sndbuf = word(SK_MEMINFO_SNDBUF).value_or(0),
      .fwd_alloc = word(SK_MEMINFO_FWD_ALLOC).value_or(0),
      .wmem_queued = word(SK_MEMINFO_WMEM_QUEUED).value_or(0),
      .optmem = word(SK_MEMINFO_OPTMEM).value_or(0),
      .backlog = word(SK_MEMINFO_BACKLOG).value_or(0),
      .drops = word(SK_MEMINFO_DROPS).value_or(0),
  };
}

std::optional<tcp::SocketFacts> parse_diag_message(std::span<const std::uint8_t> bytes) {
  inet_diag_msg message{};
  if (bytes.size() < sizeof message) return std::nullopt;
  std::memcpy(&message, bytes.data(), sizeof message);
  if (message.idiag_family != AF_INET && message.idiag_family != AF_INET6) return std::nullopt;
  const bool v4 = message.idiag_family == AF_INET;
  tcp::SocketFacts facts;
  facts.inode = message.idiag_inode;
  facts.uid = message.idiag_uid;
  if (message.idiag_state <= static_cast<unsigned>(tcp::TcpState::kClosing)) {
    facts.state = static_cast<tcp::TcpState>(message.idiag_state);
  }
  facts.local = {address_of(message.id.idiag_src, v4), ntohs(message.id.idiag_sport)};
  facts.remote = {address_of(message.id.idiag_dst, v4), ntohs(message.id.idiag_dport)};
  facts.recv_queue = message.idiag_rqueue;
  facts.send_queue = message.idiag_wqueue;
  std::size_t at = NLMSG_ALIGN(sizeof message);
  while (at + sizeof(nlattr) <= bytes.size()) {
    nlattr head{};
    std::memcpy(&head, bytes.data() + at, sizeof head);
    if (head.nla_len < NLA_HDRLEN || head.nla_len > bytes.size() - at) break;
    read_attribute(
        head.nla_type & NLA_TYPE_MASK,
        bytes.subspan(at + NLA_HDRLEN, head.nla_len - static_cast<std::size_t>(NLA_HDRLEN)), facts);
    at += NLA_ALIGN(head.nla_len);
  }
  return facts;
}

Result<std::vector<tcp::SocketFacts>> dump(const DumpRequest& request) {
  const Netlink netlink(::mnl_socket_open2(NETLINK_SOCK_DIAG, SOCK_CLOEXEC));
  if (!netlink || ::mnl_socket_bind(netlink.get(), 0, MNL_SOCKET_AUTOPID) != 0) {
    return fail(netlink_error(errno));
  }
  std::vector<tcp::SocketFacts> all;
  std::uint32_t sequence = 0;
  for (const int family : {AF_INET, AF_INET6}) {
    ++sequence;
    Result<void> done = ask(netlink.get(), static_cast<std::uint8_t>(family), request, sequence);
    if (done) done = receive(netlink.get(), sequence, all);
    if (!done) return fail(done.error());
  }
  return all;
}

Result<std::vector<tcp::SocketFacts>> dump_sockets() { return dump({}); }

Result<std::vector<tcp::SocketFacts>> dump_listeners() { return dump({.listeners_only = true}); }

}  // namespace tailward::probe
