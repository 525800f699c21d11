// The seam to the network: ordered byte streams, connecting and listening.
//
// Two implementations: sockets (net/socket_transport.h) and memory (io/memory_transport.h), which
// takes a fault injector. Everything above, HTTP connections, pools and proxies, is written against
// this.
//
// Thread safety: every object belongs to one loop. Callbacks run on that loop, never inside the
// call that asked for them. Destroying an object cancels what it has under way: its callbacks then
// never run. A callback may destroy the object that it was called for.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_function.h"

namespace tailward::io {

// Where to connect or listen. `host` is a name or a numeric address, without brackets.
struct HostPort {
  std::string host;
  std::uint16_t port = 0;
  friend bool operator==(const HostPort&, const HostPort&) = default;
};

// "host:port", "1.2.3.4:80", "[::1]:80", ":80" (all of loopback). kInvalid with a hint otherwise.
Result<HostPort> parse_host_port(std::string_view text);
std::string to_string(const HostPort& endpoint);

class Stream {
 public:
  using ReadCallback = UniqueFunction<void(Result<std::size_t>)>;
  using WriteCallback = UniqueFunction<void(Result<void>)>;

  virtual ~Stream() = default;

  // Reads what is there, one byte at least; 0 means that the peer has finished sending. `buffer`
  // must live until the callback or the stream's end. REQUIRES: no other read under way. Errors:
  // kDisconnected (reset), kInternal.
  virtual void read(std::span<char> buffer, ReadCallback done) = 0;

  // Writes `first`, then `second`, both whole. Both must live until the callback or the stream's
  // end. REQUIRES: no other write under way. Errors: kDisconnected.
  virtual void write(std::span<const char> first, std::span<const char> second,
                     WriteCallback done) = 0;
  void write(std::span<const char> data, WriteCallback done) { write(data, {}, std::move(done)); }

  // Says that nothing more will be written; reading goes on.
  virtual void finish_writing() = 0;

  // The peer's address, for logs.
  [[nodiscard]] virtual HostPort peer() const = 0;
};

// A connect under way; destroying it gives it up.
class Connecting {
 public:
  virtual ~Connecting() = default;
};

// A listening socket; destroying it stops listening.
class Listener {
 public:
  virtual ~Listener() = default;
  // The address really bound, with the port the system chose where 0 was asked for.
  [[nodiscard]] virtual HostPort local() const = 0;
};

class Transport {
 public:
  using ConnectCallback = UniqueFunction<void(Result<std::unique_ptr<Stream>>)>;
  using AcceptCallback = UniqueFunction<void(std::unique_ptr<Stream>)>;

  virtual ~Transport() = default;

  // Errors: kDisconnected (refused, unreachable), kInvalid (a name that does not resolve),
  // kOverloaded (out of descriptors). There is no timeout of its own: the caller arms a timer and
  // destroys it.
  [[nodiscard]] virtual std::unique_ptr<Connecting> connect(const HostPort& to,
                                                            ConnectCallback done) = 0;

  // Calls `accepted` for every connection until the Listener is destroyed. Errors: kInvalid (port
  // in use, unknown address), kDenied (privileged port).
  virtual Result<std::unique_ptr<Listener>> listen(const HostPort& at, AcceptCallback accepted) = 0;
};

}  // namespace tailward::io
