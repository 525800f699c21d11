// A network in memory, for tests and simulations: io::Transport over a Timers queue, with faults on
// demand.
//
// Nothing here waits, reads a clock or draws a random number of its own. Whatever happens is an
// event on the Timers it was given, at now() plus the delay asked for, never inside a call; moving
// the Timers (advance_to()) therefore moves the network. advance_to(now()) delivers all that is
// under way without delay.
//
//   io::Timers timers;
//   io::MemoryTransport network(timers);
//   auto listener = network.listen({"server", 80}, [&](std::unique_ptr<io::Stream> stream) { … });
//   auto connecting = network.connect({"server", 80}, [&](auto stream) { … });
//   timers.advance_to(timers.now());
//
// It behaves like TCP where programs can tell: bytes keep their order and lose their boundaries; a
// write is done once the pipe has taken all of it, and the pipe holds `capacity` bytes, so that a
// reader who stops reading stops the writer; destroying a stream sends what was written and then
// the end, or a reset when it leaves bytes unread; writing to a peer that is gone fails.
//
// Thread safety: belongs to one loop. REQUIRES: the Timers outlives the transport and all its
// streams; the transport outlives its listeners and connects, not its streams.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "base/rng.h"
#include "io/timers.h"
#include "io/transport.h"

namespace tailward::io {

// What happens to the bytes of one direction. The limits count bytes from the connection's start.
struct PathFaults {
  static constexpr std::uint64_t kNowhere = UINT64_MAX;

  Duration delay{0};                      // from the write to the arrival
  std::uint64_t stall_after = kNowhere;   // later bytes vanish: written, never read, no error
  std::uint64_t reset_after = kNowhere;   // after that many bytes both ends see a reset
  std::uint64_t finish_after = kNowhere;  // half-close: the reader sees the end, the writer nothing
  // A write that goes beyond fails, for the writer alone.
  std::uint64_t write_error_after = kNowhere;
  std::size_t slice = SIZE_MAX;  // a read returns at most this many bytes; 1 or more
};

// What happens to one connection.
struct ConnectionFaults {
  bool refuse = false;      // the connect fails, after its delay
  bool unanswered = false;  // the connect neither succeeds nor fails
  Duration connect_delay{0};
  PathFaults to_server = {};
  PathFaults to_client = {};
};

// Decides what goes wrong. Asked once for every connect, in their order; `number` counts them from
// 0.
class FaultInjector {
 public:
  virtual ~FaultInjector() = default;
  virtual ConnectionFaults on_connect(const HostPort& to, std::uint64_t number) = 0;
};

// The same faults for every connection; change `faults` at any time for the connects to come.
class FixedFaults : public FaultInjector {
 public:
  explicit FixedFaults(ConnectionFaults initial = {}) : faults(initial) {}
  ConnectionFaults on_connect(const HostPort&, std::uint64_t) override { return faults; }

  ConnectionFaults faults;
};

// Draws faults: each kind with its own probability, at a place uniform in the first `within` bytes.
// The same Rng gives the same faults.
class RandomFaults : public FaultInjector {
 public:
  struct Odds {
    double refuse = 0;
    double stall = 0;
    double reset = 0;
    double finish = 0;
    double write_error = 0;
    double slice = 0;  // pieces of 1 to 16 bytes
    std::uint64_t within = 4096;
    Duration delay_max{0};  // delays of paths and connects are uniform below this
  };
  RandomFaults(Rng rng, Odds odds) : rng_(rng), odds_(odds) {}
  ConnectionFaults on_connect(const HostPort& to, std::uint64_t number) override;

 private:
  PathFaults draw_path();
  Duration draw_delay();

  Rng rng_;
  Odds odds_;
};

class MemoryTransport : public Transport {
 public:
  struct Options {
    std::size_t capacity = 64 * 1024;  // bytes that one direction holds between writer and reader
  };

  // `faults` may be null: nothing goes wrong. It is not owned.
  explicit MemoryTransport(Timers& timers) : MemoryTransport(timers, nullptr, {}) {}
  MemoryTransport(Timers& timers, FaultInjector* faults) : MemoryTransport(timers, faults, {}) {}
  MemoryTransport(Timers& timers, FaultInjector* faults, Options options);
  ~MemoryTransport() override;

  // Any host name may be listened at; "" and "localhost" mean 127.0.0.1. Port 0 picks a free port.
  Result<std::unique_ptr<Listener>> listen(const HostPort& at, AcceptCallback accepted) override;
  [[nodiscard]] std::unique_ptr<Connecting> connect(const HostPort& to,
                                                    ConnectCallback done) override;

  // How many ends of connections live now: a test that ends where it began has leaked none.
  [[nodiscard]] std::size_t open_streams() const { return *open_streams_; }
  // How many connects there were, refused ones included.
  [[nodiscard]] std::uint64_t connects() const { return connects_; }

 private:
  class MemoryListener;
  class MemoryConnecting;

  Timers& timers_;
  FaultInjector* faults_;
  Options options_;
  std::shared_ptr<std::size_t> open_streams_;
  std::uint64_t connects_ = 0;
  std::uint16_t next_port_ = 40000;
  std::map<std::string, MemoryListener*> listeners_;  // by to_string(endpoint)
};

}  // namespace tailward::io
