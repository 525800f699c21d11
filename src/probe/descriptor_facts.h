// What a descriptor of ours (a duplicate) says of its socket, without socket diagnostics: for
// sockets of a network namespace that may not be entered, or of another one than their process, and
// for those bound to nothing, which no table lists. Internal to probe.
//
// Thread safety: pure calls to the system.
#pragma once

#include <cstdint>

#include "tcp/socket_facts.h"

namespace tailward::probe {

enum class SocketKind { kTcp, kUnix, kOther };
SocketKind kind_of(int fd);

std::uint32_t inode_of(int fd);

// REQUIRES: a TCP socket. Without its options.
tcp::SocketFacts facts_of(int fd);

}  // namespace tailward::probe
