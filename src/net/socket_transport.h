// io::Transport over TCP sockets, IPv4 and IPv6.
//
// Numeric addresses and "localhost" are connected to at once; other names go through the system's
// resolver, on a thread of its own that the loop never waits for, and their addresses are tried in
// order.
//
// Thread safety: belongs to its loop. REQUIRES: the Loop outlives the transport, and both outlive
// every stream, connect and listener made here.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "io/transport.h"
#include "net/loop.h"

namespace tailward::net {

struct StreamOptions {
  bool nodelay = true;             // TCP_NODELAY on connected and accepted sockets
  bool reuse_port = false;         // SO_REUSEPORT on listeners: several loops share one port
  bool v6_only = false;            // an IPv6 listener takes IPv4 as well unless this is set
  int backlog = 4096;              // the kernel caps it at net.core.somaxconn
  std::optional<int> send_buffer;  // SO_SNDBUF in bytes; unset leaves it to the kernel's autotuning
  std::optional<int> receive_buffer;  // SO_RCVBUF, likewise
};

struct SocketCounters {
  std::uint64_t connects = 0;  // that succeeded
  std::uint64_t connect_errors = 0;
  std::uint64_t accepts = 0;
  std::uint64_t accept_errors = 0;  // out of descriptors or memory, mostly
  std::uint64_t accept_pauses = 0;  // each such error makes a listener pause for kAcceptPause
  std::uint64_t open_streams = 0;   // now
};

class SocketTransport : public io::Transport {
 public:
  // How long a listener rests after an accept that failed for want of resources. Connections wait
  // in the kernel's queue meanwhile.
  static constexpr Duration kAcceptPause = std::chrono::milliseconds(20);

  explicit SocketTransport(Loop& loop, StreamOptions options = {});
  ~SocketTransport() override;

  [[nodiscard]] std::unique_ptr<io::Connecting> connect(const io::HostPort& to,
                                                        ConnectCallback done) override;
  // An empty host listens on all of loopback (127.0.0.1); "0.0.0.0" or "::" on everything.
  Result<std::unique_ptr<io::Listener>> listen(const io::HostPort& at,
                                               AcceptCallback accepted) override;

  [[nodiscard]] const SocketCounters& counters() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tailward::net
