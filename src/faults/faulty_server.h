// A server with one fault of the network's: real HTTP on real sockets. It chooses every system call
// itself (net/blocking_socket.h), one thread for each connection. What the network must do, delay
// and loss, a net::Link does.
//
// Thread safety: the server runs on threads of its own. Start and destroy it from one thread.
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <thread>

#include "base/result.h"
#include "base/rng.h"
#include "faults/fault.h"
#include "faults/pause.h"
#include "io/transport.h"
#include "net/blocking_socket.h"

namespace tailward::faults {

class FaultyServer {
 public:
  // Serves from now on. Errors: those of net::BlockingSocket::listen().
  static Result<std::unique_ptr<FaultyServer>> start(const FaultModel& model,
                                                     const io::HostPort& at);
  ~FaultyServer();  // resets every connection
  [[nodiscard]] std::uint16_t port() const { return listener_.local().port; }

 private:
  struct ServedConnection {
    net::BlockingSocket socket;
    std::thread thread;
    std::atomic<bool> done = false;
    Rng rng;
    ServedConnection(net::BlockingSocket s, Rng r) : socket(std::move(s)), rng(r) {}
  };
  class RequestHandler;
  FaultyServer(const FaultModel& model, net::BlockingSocket listener)
      : model_(model), listener_(std::move(listener)) {}
  void accept_all();
  void clear_finished();

  FaultModel model_;
  net::BlockingSocket listener_;
  Pause pause_;
  std::list<ServedConnection> connections_;  // belongs to the acceptor's thread while it runs
  std::thread acceptor_;
};

// Runs a faulty server until standard input ends or SIGTERM. Prints "port N" when it serves.
// Returns the exit status of the process.
int run_faulty_server(const FaultModel& model, const io::HostPort& at);

}  // namespace tailward::faults
