// What the sockets say about one side of one service.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "diag/network_diagnosis.h"

namespace tailward::diag {

struct Tally {
  std::uint64_t yes = 0, no = 0;
  void add(std::optional<bool> value) {
    if (value) (*value ? yes : no) += 1;
  }
};

// Sockets of the end that sends, and of the end that receives, where they are on this host.
struct SideFacts {
  std::uint64_t sockets = 0;
  Tally nodelay, cork, sndbuf_locked, rcvbuf_locked;
  std::optional<int> sndbuf, rcvbuf;  // the smallest
  // Since the beginning of the watch.
  std::uint64_t busy_us = 0, rwnd_limited_us = 0, sndbuf_limited_us = 0;
  std::uint32_t recv_queue_max = 0;
  int fd = -1, pid = 0;  // of one of them
};

// Those of `server`'s connections at the server's end, or at the clients'.
SideFacts facts_of(const NetworkEvidence& evidence, const tcp::SocketAddress& server,
                   bool at_client);

// One end of one service, as told by the sockets alone.
struct ServiceSide {
  tcp::SocketAddress server;
  bool at_client = false;
  SideFacts facts;
  const tcp::SocketFacts* pinned = nullptr;  // one, in the evidence, whose send buffer is; or none
};
// All of them, by address. Which end a socket is at is told by which address it shares with more
// others.
std::vector<ServiceSide> sides_of(const NetworkEvidence& evidence);

// What was seen of that listening address meanwhile.
const NetworkEvidence::ListenerWatch* listener_of(const NetworkEvidence& evidence,
                                                  const tcp::SocketAddress& server);

}  // namespace tailward::diag
