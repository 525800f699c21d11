// What the TCP experiments share while they run: progress, Ctrl-C, places, and counting.
//
// Thread safety: one thread.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "lab/experiment.h"
#include "lab/tcp_arm.h"
#include "lab/tcp_place.h"

namespace tailward::lab {

class TcpRun {
 public:
  // `steps`: how much there is to do, for the progress.
  TcpRun(Context& context, std::uint64_t steps);

  // The places with these round-trip times; those that this machine does not allow are left out,
  // with a note.
  Result<std::vector<TcpPlace>> places(const std::vector<Duration>& rtts, bool offload = false);

  // Says what is under way.
  void begin(std::string label) { label_ = std::move(label); }
  // So many steps are done. False when it is time to stop. Cheap.
  bool step(std::uint64_t steps = 1);
  [[nodiscard]] bool stopped() const { return context_.interrupted; }

  // Starts counting what passes through that port. Empty, with a note, where capturing is not
  // allowed.
  Result<std::unique_ptr<TcpWatch>> watch(TcpPlace& place, std::uint16_t port);
  // What it has counted, or, without one, what the kernel says of the client's socket.
  static TcpCounts counts(std::unique_ptr<TcpWatch> watch, const net::BlockingSocket& client);

  Context& context() { return context_; }
  void note(std::string text);

  // Hands the arms over, with what was noted. The verdict and the checks are the caller's.
  ExperimentResult finish(std::vector<TcpArm> arms);

 private:
  Context& context_;
  std::uint64_t steps_;
  std::uint64_t done_ = 0;
  std::string label_;
  TimePoint began_;
  TimePoint looked_;
  std::vector<std::string> notes_;
};

// What all sockets of the experiments have in common.
net::BlockingOptions tcp_options();

}  // namespace tailward::lab
