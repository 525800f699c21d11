#include "diag/facts.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

namespace tailward::diag {
namespace {

bool is_any(const tcp::Address& address) {
  const auto from = address.is_v4() ? address.bytes.begin() + 12 : address.bytes.begin();
  return std::all_of(from, address.bytes.end(), [](auto byte) { return byte == 0; });
}

bool matches(const tcp::SocketAddress& socket, const tcp::SocketAddress& wanted) {
  return socket.port == wanted.port && (socket.address == wanted.address || is_any(socket.address));
}

std::uint64_t since(std::optional<std::uint64_t> now, std::optional<std::uint64_t> before) {
  const std::uint64_t from = before.value_or(0);
  return now && *now > from ? *now - from : 0;
}

using SocketKey = std::tuple<std::uint32_t, tcp::SocketAddress, tcp::SocketAddress>;

SocketKey key_of(const tcp::SocketFacts& socket) {
  return {socket.inode, socket.local, socket.remote};
}

// Thousands of sockets are looked up: sorted once.
std::vector<const tcp::SocketFacts*> sorted(std::span<const tcp::SocketFacts> sockets) {
  std::vector<const tcp::SocketFacts*> all;
  for (const tcp::SocketFacts& socket : sockets) all.push_back(&socket);
  std::sort(all.begin(), all.end(), [](const tcp::SocketFacts* a, const tcp::SocketFacts* b) {
    return key_of(*a) < key_of(*b);
  });
  return all;
}

const tcp::SocketFacts* same_socket(const std::vector<const tcp::SocketFacts*>& sockets,
                                    const tcp::SocketFacts& wanted) {
  const SocketKey key = key_of(wanted);
  const auto found = std::lower_bound(
      sockets.begin(), sockets.end(), key,
      [](const tcp::SocketFacts* a, const SocketKey& b) { return key_of(*a) < b; });
  return found != sockets.end() && key_of(**found) == key ? *found : nullptr;
}

template <class Value>
void keep_least(std::optional<Value>& least, const std::optional<Value>& value) {
  if (value && (!least || *value < *least)) least = value;
}

void add_to(SideFacts& facts, const tcp::SocketFacts& socket, const tcp::SocketFacts* before) {
  const tcp::SocketOptions& options = socket.options;
  ++facts.sockets;
  facts.nodelay.add(options.nodelay);
  facts.cork.add(options.cork);
  facts.sndbuf_locked.add(options.sndbuf_locked);
  facts.rcvbuf_locked.add(options.rcvbuf_locked);
  keep_least(facts.sndbuf, options.sndbuf);
  keep_least(facts.rcvbuf, options.rcvbuf);
  const tcp::TcpInfo then = before == nullptr ? tcp::TcpInfo{} : before->tcp;
  facts.busy_us += since(socket.tcp.busy_us, then.busy_us);
  facts.rwnd_limited_us += since(socket.tcp.rwnd_limited_us, then.rwnd_limited_us);
  facts.sndbuf_limited_us += since(socket.tcp.sndbuf_limited_us, then.sndbuf_limited_us);
  facts.recv_queue_max = std::max(facts.recv_queue_max, socket.recv_queue);
  if (facts.fd < 0) {
    facts.fd = socket.fd;
    facts.pid = socket.pid;
  }
}

}  // namespace

SideFacts facts_of(const NetworkEvidence& evidence, const tcp::SocketAddress& server,
                   bool at_client) {
  SideFacts facts;
  const std::vector<const tcp::SocketFacts*> earlier = sorted(evidence.earlier);
  for (const tcp::SocketFacts& socket : evidence.sockets) {
    if (socket.state == tcp::TcpState::kListen) continue;
    if (!matches(at_client ? socket.remote : socket.local, server)) continue;
    add_to(facts, socket, same_socket(earlier, socket));
  }
  return facts;
}

std::vector<ServiceSide> sides_of(const NetworkEvidence& evidence) {
  std::map<tcp::SocketAddress, std::size_t> at_local, at_remote;
  for (const tcp::SocketFacts& socket : evidence.sockets) {
    if (socket.state == tcp::TcpState::kListen) continue;
    ++at_local[socket.local];
    ++at_remote[socket.remote];
  }
  const std::vector<const tcp::SocketFacts*> earlier = sorted(evidence.earlier);
  std::map<std::pair<tcp::SocketAddress, bool>, ServiceSide> sides;
  for (const tcp::SocketFacts& socket : evidence.sockets) {
    if (socket.state == tcp::TcpState::kListen) continue;
    // A server's end has one address for all its clients; a client's, a port for each connection.
    const bool at_client = at_remote[socket.remote] > at_local[socket.local];
    const tcp::SocketAddress& server = at_client ? socket.remote : socket.local;
    ServiceSide& side = sides[{server, at_client}];
    side.server = server;
    side.at_client = at_client;
    const bool pinned = socket.options.sndbuf_locked.value_or(false);
    if (pinned && side.pinned == nullptr) side.pinned = &socket;
    add_to(side.facts, socket, same_socket(earlier, socket));
  }
  std::vector<ServiceSide> all;
  for (auto& [key, side] : sides) all.push_back(std::move(side));
  return all;
}

const NetworkEvidence::ListenerWatch* listener_of(const NetworkEvidence& evidence,
                                                  const tcp::SocketAddress& server) {
  for (const auto& listener : evidence.listeners) {
    if (matches(listener.local, server)) return &listener;
  }
  return nullptr;
}

}  // namespace tailward::diag
