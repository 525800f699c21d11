// Where the two ends of a TCP experiment meet: on a loopback that nobody else uses, or over a link
// with round-trip time (net/link.h). And the capture that counts what passes between them.
//
// No application sleeps to imitate a network: the link delays the packets.
//
// Thread safety: one thread.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "base/result.h"
#include "lab/tcp/tally.h"
#include "net/blocking_socket.h"
#include "net/link.h"
#include "probe/capture.h"

namespace tailward::lab {

struct TcpPair {
  net::BlockingSocket client;
  net::BlockingSocket server;
};

class TcpPlace {
 public:
  // `offload`: that of net::LinkShape. Without round-trip time and without privileges, it is the
  // machine's own loopback. Errors: those of net::Link::create(), if there is a round-trip time.
  static Result<TcpPlace> make(Duration rtt, std::uint64_t seed, bool offload = false);

  [[nodiscard]] Duration rtt() const { return rtt_; }
  // Whether it is a network namespace of its own.
  [[nodiscard]] bool own() const { return link_ != nullptr; }

  Result<net::BlockingSocket> listen(const net::BlockingOptions& options);
  // Both ends of a new connection to that listener.
  Result<TcpPair> connect(net::BlockingSocket& listener, const net::BlockingOptions& options);
  // Captures at the client.
  Result<std::unique_ptr<probe::LiveCapture>> capture(std::uint16_t port);

 private:
  explicit TcpPlace(Duration rtt) : rtt_(rtt) {}
  Result<void> run_inside(net::Link::End end, UniqueFunction<void()> task);

  Duration rtt_;
  std::unique_ptr<net::Link> link_;
};

// Counts what passes through one port, on a thread of its own, until it is stopped.
class TcpWatch {
 public:
  // Errors: those of probe::LiveCapture::open().
  static Result<std::unique_ptr<TcpWatch>> start(TcpPlace& place, std::uint16_t port);
  ~TcpWatch();
  // Waits until everything sent so far has been counted. Call once.
  TcpCounts stop();

 private:
  TcpWatch(std::unique_ptr<probe::LiveCapture> capture, TcpTally tally);
  void run();

  std::unique_ptr<probe::LiveCapture> capture_;
  TcpTally tally_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace tailward::lab
