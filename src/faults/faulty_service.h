// A faulty server and its clients, ready to be diagnosed: the server in a process of its own
// (behind a link, if the fault needs one), the clients in this process.
//
// Thread safety: one thread. Ownership: the service owns the link, the process and the clients.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/unique_function.h"
#include "faults/fault.h"
#include "faults/fault_clients.h"
#include "net/link.h"

namespace tailward::faults {

class FaultyService {
 public:
  // `port` 0: any free port. Errors: those of net::Link::create() and ServerProcess::start().
  static Result<std::unique_ptr<FaultyService>> start(const FaultModel& model,
                                                      std::uint16_t port = 0);
  ~FaultyService();
  [[nodiscard]] int server_pid() const;
  [[nodiscard]] std::uint16_t port() const;
  [[nodiscard]] std::string host() const;
  [[nodiscard]] FaultClients::Counts counts() const;
  // Runs `task` where the clients are: in their network namespace, if there is a link.
  Result<void> run_at_client(UniqueFunction<void()> task);
  [[nodiscard]] bool server_running();

 private:
  class Impl;
  explicit FaultyService(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tailward::faults
