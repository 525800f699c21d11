#include "probe/descriptor_facts.h"

#include <arpa/inet.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "probe/inet_diag.h"
#include "probe/sockets.h"

#ifndef SO_MEMINFO
#define SO_MEMINFO 55  // Linux 4.12
#endif

namespace tailward::probe {
namespace {

int option(int fd, int level, int name) {
  int value = -1;
  socklen_t size = sizeof value;
  return ::getsockopt(fd, level, name, &value, &size) == 0 ? value : -1;
}

tcp::SocketAddress to_address(const sockaddr_storage& from) {
  tcp::SocketAddress to;
  if (from.ss_family == AF_INET6) {
    sockaddr_in6 six{};
    std::memcpy(&six, &from, sizeof six);
    std::memcpy(to.address.bytes.data(), &six.sin6_addr, to.address.bytes.size());
    to.port = ntohs(six.sin6_port);
  } else {
    sockaddr_in four{};
    std::memcpy(&four, &from, sizeof four);
    to.address.bytes[10] = to.address.bytes[11] = 0xff;
    std::memcpy(to.address.bytes.data() + 12, &four.sin_addr, 4);
    to.port = ntohs(four.sin_port);
  }
  return to;
}

tcp::SocketAddress address_by(int fd, int (*ask)(int, sockaddr*, socklen_t*), int family) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (ask(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) address = {};
  // Not connected: "any", of the socket's family.
  address.ss_family = static_cast<sa_family_t>(family);
  return to_address(address);
}

std::uint32_t queued(int fd, unsigned long request) {
  int bytes = 0;
  return ::ioctl(fd, request, &bytes) == 0 && bytes > 0 ? static_cast<std::uint32_t>(bytes) : 0;
}

}  // namespace

SocketKind kind_of(int fd) {
  const int domain = option(fd, SOL_SOCKET, SO_DOMAIN);
  if (domain == AF_UNIX) return SocketKind::kUnix;
  const bool internet = domain == AF_INET || domain == AF_INET6;
  if (internet && option(fd, SOL_SOCKET, SO_PROTOCOL) == IPPROTO_TCP) return SocketKind::kTcp;
  return SocketKind::kOther;
}

std::uint32_t inode_of(int fd) {
  struct stat there {};
  return ::fstat(fd, &there) == 0 ? static_cast<std::uint32_t>(there.st_ino) : 0;
}

tcp::SocketFacts facts_of(int fd) {
  tcp::SocketFacts facts;
  struct stat there {};
  if (::fstat(fd, &there) == 0) {
    facts.inode = static_cast<std::uint32_t>(there.st_ino);
    facts.uid = there.st_uid;
  }
  const int family = option(fd, SOL_SOCKET, SO_DOMAIN);
  facts.local = address_by(fd, ::getsockname, family);
  facts.remote = address_by(fd, ::getpeername, family);
  std::array<std::uint8_t, 512> bytes{};
  socklen_t size = bytes.size();
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, bytes.data(), &size) == 0 && size > 0) {
    facts.tcp = parse_tcp_info({bytes.data(), size});
    if (bytes[0] <= static_cast<unsigned>(tcp::TcpState::kClosing)) {
      facts.state = static_cast<tcp::TcpState>(bytes[0]);  // tcpi_state
    }
  }
  if (facts.state == tcp::TcpState::kListen) {
    // tcp_get_info() puts the accept queue into two other figures' places.
    facts.recv_queue = facts.tcp.unacked.value_or(0);
    facts.send_queue = facts.tcp.sacked.value_or(0);
    facts.tcp = {};
  } else {
    facts.recv_queue = queued(fd, SIOCINQ);
    facts.send_queue = queued(fd, SIOCOUTQ);
  }
  size = bytes.size();
  if (::getsockopt(fd, SOL_SOCKET, SO_MEMINFO, bytes.data(), &size) == 0) {
    facts.memory = parse_memory({bytes.data(), size});
  }
  return facts;
}

}  // namespace tailward::probe
