// Sockets for the tests of sockets.
#pragma once

#include <string>

#include "sockets/snapshot.h"

namespace tailward::sockets {

inline tcp::SocketAddress v4(std::uint8_t last, std::uint16_t port) {
  tcp::SocketAddress address;
  address.address.bytes = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, last};
  address.port = port;
  return address;
}

inline tcp::SocketFacts listener_facts(std::uint16_t port, std::uint32_t inode) {
  tcp::SocketFacts facts;
  facts.fd = 3;
  facts.pid = 100;
  facts.inode = inode;
  facts.state = tcp::TcpState::kListen;
  facts.local = v4(1, port);
  facts.send_queue = 511;
  facts.options.nodelay = false;
  facts.options.reuseaddr = true;
  return facts;
}

inline tcp::SocketFacts connection_facts(int fd, std::uint8_t peer) {
  tcp::SocketFacts facts;
  facts.fd = fd;
  facts.pid = 100;
  facts.inode = static_cast<std::uint32_t>(1'000 + fd);
  facts.state = tcp::TcpState::kEstablished;
  facts.local = v4(1, 8080);
  facts.remote = v4(peer, static_cast<std::uint16_t>(40'000 + fd));
  facts.options.nodelay = true;
  facts.options.keepalive = true;
  facts.options.keepidle_s = 15;
  facts.options.sndbuf = 87'040;
  facts.options.rcvbuf = 131'072;
  facts.options.sndbuf_locked = facts.options.rcvbuf_locked = false;
  facts.options.linger_s = -1;
  facts.tcp.rtt_us = 1'500;
  facts.tcp.bytes_sent = 2'048;
  facts.tcp.bytes_received = 1'024;
  return facts;
}

// One listener on port 8080 and `connections` clients.
inline probe::SocketList service(int connections) {
  probe::SocketList list;
  list.pids = {100};
  list.sockets.push_back(listener_facts(8080, 1));
  for (int i = 0; i < connections; ++i) {
    list.sockets.push_back(connection_facts(10 + i, static_cast<std::uint8_t>(2 + i % 5)));
  }
  return list;
}

inline Snapshot snapshot_of(probe::SocketList list) {
  return judge(std::move(list), {{100, "app", tcp::Runtime::kGo}});
}

}  // namespace tailward::sockets
