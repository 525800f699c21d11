#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>

#include "probe/sockets.h"

// Younger than the headers of Debian 12; include/uapi/linux/tcp.h and asm-generic/socket.h.
#ifndef TCP_RTO_MAX_MS
#define TCP_RTO_MAX_MS 44  // Linux 6.15
#endif
#ifndef TCP_RTO_MIN_US
#define TCP_RTO_MIN_US 45  // Linux 6.15
#endif
#ifndef TCP_DELACK_MAX_US
#define TCP_DELACK_MAX_US 46  // Linux 6.15
#endif
#ifndef SO_BUF_LOCK
#define SO_BUF_LOCK 72  // Linux 5.14
#endif

namespace tailward::probe {
namespace {

// SOCK_SNDBUF_LOCK and SOCK_RCVBUF_LOCK, which are not in every header that has SO_BUF_LOCK.
constexpr int kSendLocked = 1;
constexpr int kReceiveLocked = 2;

std::optional<int> get(int fd, int level, int option) {
  int value = 0;
  socklen_t size = sizeof value;
  if (::getsockopt(fd, level, option, &value, &size) != 0 || size != sizeof value) {
    return std::nullopt;
  }
  return value;
}

std::optional<bool> get_bit(int fd, int level, int option) {
  const std::optional<int> value = get(fd, level, option);
  if (!value) return std::nullopt;
  return *value != 0;
}

void read_general(int fd, tcp::SocketOptions& options) {
  options.sndbuf = get(fd, SOL_SOCKET, SO_SNDBUF);
  options.rcvbuf = get(fd, SOL_SOCKET, SO_RCVBUF);
  if (const std::optional<int> lock = get(fd, SOL_SOCKET, SO_BUF_LOCK)) {
    options.sndbuf_locked = (*lock & kSendLocked) != 0;
    options.rcvbuf_locked = (*lock & kReceiveLocked) != 0;
  }
  options.keepalive = get_bit(fd, SOL_SOCKET, SO_KEEPALIVE);
  options.reuseaddr = get_bit(fd, SOL_SOCKET, SO_REUSEADDR);
  options.reuseport = get_bit(fd, SOL_SOCKET, SO_REUSEPORT);
  options.busy_poll_us = get(fd, SOL_SOCKET, SO_BUSY_POLL);
  linger how{};
  socklen_t size = sizeof how;
  if (::getsockopt(fd, SOL_SOCKET, SO_LINGER, &how, &size) == 0) {
    options.linger_s = how.l_onoff != 0 ? how.l_linger : -1;
  }
  const std::optional<int> domain = get(fd, SOL_SOCKET, SO_DOMAIN);
  if (domain == AF_INET6) {
    options.v6only = get_bit(fd, IPPROTO_IPV6, IPV6_V6ONLY);
    options.tos = get(fd, IPPROTO_IPV6, IPV6_TCLASS);
  } else {
    options.tos = get(fd, IPPROTO_IP, IP_TOS);
  }
}

void read_tcp(int fd, tcp::SocketOptions& options) {
  options.nodelay = get_bit(fd, IPPROTO_TCP, TCP_NODELAY);
  options.cork = get_bit(fd, IPPROTO_TCP, TCP_CORK);
  options.quickack = get_bit(fd, IPPROTO_TCP, TCP_QUICKACK);
  options.keepidle_s = get(fd, IPPROTO_TCP, TCP_KEEPIDLE);
  options.keepintvl_s = get(fd, IPPROTO_TCP, TCP_KEEPINTVL);
  options.keepcnt = get(fd, IPPROTO_TCP, TCP_KEEPCNT);
  options.user_timeout_ms = get(fd, IPPROTO_TCP, TCP_USER_TIMEOUT);
  if (const std::optional<int> low = get(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT)) {
    options.notsent_lowat = static_cast<std::uint32_t>(*low);
  }
  options.defer_accept_s = get(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT);
  options.fastopen_queue = get(fd, IPPROTO_TCP, TCP_FASTOPEN);
  options.rto_min_us = get(fd, IPPROTO_TCP, TCP_RTO_MIN_US);
  options.rto_max_ms = get(fd, IPPROTO_TCP, TCP_RTO_MAX_MS);
  options.delack_max_us = get(fd, IPPROTO_TCP, TCP_DELACK_MAX_US);
  char name[16] = {};  // TCP_CA_NAME_MAX
  socklen_t size = sizeof name;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &size) == 0) {
    options.congestion = std::string(name, ::strnlen(name, size));
  }
}

}  // namespace

tcp::SocketOptions read_options(int fd) {
  tcp::SocketOptions options;
  read_general(fd, options);
  read_tcp(fd, options);
  return options;
}

}  // namespace tailward::probe
