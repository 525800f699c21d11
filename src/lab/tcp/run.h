// What the TCP experiments share while they run: progress, Ctrl-C, places, notes and counting.
//
// Thread safety: one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "lab/context.h"
#include "lab/tcp/arm.h"
#include "lab/tcp/place.h"
#include "lab/tcp/tcp_result.h"

namespace tailward::lab {

class TcpRun {
 public:
  // `steps`: how much there is to do, for the progress.
  TcpRun(Context& context, std::uint64_t steps);

  // The places with these round-trip times. Places that this machine does not allow are left out,
  // and a note says so.
  Result<std::vector<TcpPlace>> places(const std::vector<Duration>& rtts, bool offload = false);

  // Names what runs now, for the progress.
  void begin(std::string label) { label_ = std::move(label); }
  // Notes that `steps` more are done. False when it is time to stop. Cheap: call it in loops.
  bool step(std::uint64_t steps = 1);
  [[nodiscard]] bool stopped() const { return context_.interrupted; }

  // Starts counting what passes through that port. Null, with a note, where capturing is not
  // allowed.
  Result<std::unique_ptr<TcpWatch>> watch(TcpPlace& place, std::uint16_t port);
  // What the watch has counted, or, without one, what the kernel says about the client's socket.
  static TcpCounts counts(std::unique_ptr<TcpWatch> watch, const net::BlockingSocket& client);

  Context& context() { return context_; }
  void note(std::string text);

  // The arms that were measured, with the notes. The caller adds the verdict and the checks.
  TcpResult finish(std::vector<TcpArm> arms);

 private:
  Context& context_;
  std::uint64_t steps_;
  std::uint64_t done_ = 0;
  std::string label_;
  TimePoint began_;
  TimePoint looked_;
  std::vector<std::string> notes_;
};

// The options that all sockets of the experiments share.
net::BlockingOptions tcp_options();

}  // namespace tailward::lab
