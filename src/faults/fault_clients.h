// The clients that bring a server's fault out: bursts for a short accept queue, uploads for a small
// receive window, new connections for lost SYNs. They send requests until they are stopped.
//
// Thread safety: the clients run on threads of their own. counts() may be called from any thread;
// create, stop and destroy them from one.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "base/rng.h"
#include "faults/fault.h"
#include "faults/pause.h"
#include "io/transport.h"

namespace tailward::faults {

class FaultClients {
 public:
  // Connects from the network namespace of the calling thread; the clients' threads inherit it.
  FaultClients(const FaultModel& model, const io::HostPort& server);
  ~FaultClients();
  // Begins no further request. A client that waits for a response goes on waiting.
  void begin_stop();

  struct Counts {
    std::uint64_t requests = 0;  // answered
    std::uint64_t failed = 0;
    std::string first_error;
  };
  [[nodiscard]] Counts counts() const;

 private:
  void run(std::size_t number);
  bool wait_for_burst();
  bool visit(Rng& rng, std::size_t requests);
  void count(const Result<void>& outcome);

  FaultModel model_;
  io::HostPort server_;
  Pause pause_;
  mutable std::mutex mutex_;
  std::condition_variable burst_;
  std::size_t waiting_ = 0;   // clients that wait for the next burst
  std::uint64_t bursts_ = 0;  // bursts that have begun
  Counts counts_;
  std::vector<std::thread> threads_;
};

}  // namespace tailward::faults
