// The sick servers of `tailward lab serve --sick CAUSE`: real HTTP on real sockets, with one
// network sickness each, and clients that bring it out. What diagnosis is scored against.
//
// The server and its clients choose every system call themselves (net/blocking_socket.h): one
// thread for each connection. What the network must do, delay and loss, a net::Link does.
//
// Thread safety: a SickServer and its clients run on threads of their own; start and stop them from
// one thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/result.h"
#include "base/rng.h"
#include "diag/finding.h"
#include "io/transport.h"
#include "net/blocking_socket.h"
#include "net/link.h"
#include "stats/histogram.h"

namespace tailward::lab {

struct Sickness {
  diag::Cause cause;
  std::string_view about;
  bool needs_link;  // it takes round-trip time or loss, which loopback does not have
};

// Those of the network, and `none`.
const std::vector<Sickness>& sicknesses();
// kInvalid with the known names as hint.
Result<Sickness> find_sickness(std::string_view name);

// One sick service. What is drawn follows from the seed: sizes, round-trip time, how sick.
struct SickModel {
  diag::Cause cause = diag::Cause::kNone;
  std::uint64_t seed = 1;
  double severity = 1;  // of the sickness: 2 is twice as bad, 0.5 half
  bool over_link = false;
  net::LinkShape link = {};  // both ways, if over_link
  double sick_share = 1;     // of the requests that can suffer from what the server does
  std::size_t answer_bytes = 0;
  std::size_t upload_bytes = 0;
  Duration think{};  // the median of the work behind an answer
};
// The model that a seed gives.
SickModel draw_sick_model(const Sickness& sickness, std::uint64_t seed, double severity);

// A wait that can be ended for good, from any thread.
class Pause {
 public:
  // False: it was ended.
  bool wait(Duration length);
  void end();
  [[nodiscard]] bool ended() const { return ended_; }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<bool> ended_ = false;
};

class SickServer {
 public:
  // Serves from now on. Errors: as BlockingSocket::listen().
  static Result<std::unique_ptr<SickServer>> start(const SickModel& model, const io::HostPort& at);
  ~SickServer();  // resets what is connected
  [[nodiscard]] std::uint16_t port() const { return listener_.local().port; }

 private:
  struct Connection {
    net::BlockingSocket socket;
    std::thread thread;
    std::atomic<bool> done = false;
    Rng rng;
    Connection(net::BlockingSocket s, Rng r) : socket(std::move(s)), rng(r) {}
  };
  class Exchange;
  SickServer(const SickModel& model, net::BlockingSocket listener)
      : model_(model), listener_(std::move(listener)) {}
  void accept_all();
  void clear_finished();

  SickModel model_;
  net::BlockingSocket listener_;
  Pause pause_;
  std::list<Connection> connections_;
  std::thread acceptor_;
};

// Clients that go on until they are stopped.
class SickClients {
 public:
  // Connects from the network namespace of the calling thread; so do the clients' threads.
  SickClients(const SickModel& model, const io::HostPort& server);
  ~SickClients();
  // Nothing further is begun; what waits for the server still waits.
  void begin_stop();

  struct Counts {
    std::uint64_t requests = 0;
    std::uint64_t failed = 0;
    std::string first_error;
  };
  [[nodiscard]] Counts counts() const;

 private:
  void run(std::size_t number);
  bool wait_for_burst();
  bool visit(Rng& rng, std::size_t requests);
  void count(const Result<void>& outcome);

  SickModel model_;
  io::HostPort server_;
  Pause pause_;
  mutable std::mutex mutex_;
  std::condition_variable burst_;
  std::size_t waiting_ = 0;   // for the burst to begin
  std::uint64_t bursts_ = 0;  // that began
  Counts counts_;
  std::vector<std::thread> threads_;
};

// Runs a sick server until standard input ends or SIGTERM; prints "port N" when it serves. Returns
// the exit status.
int run_sick_server(const SickModel& model, const io::HostPort& at);

// A sick service of several processes: the server in one of its own, where there is a link in its
// namespace; the clients in this one.
class SickService {
 public:
  static Result<std::unique_ptr<SickService>> start(const SickModel& model, std::uint16_t port = 0);
  ~SickService();
  [[nodiscard]] int server_pid() const;
  [[nodiscard]] std::uint16_t port() const;
  [[nodiscard]] std::string host() const;
  [[nodiscard]] const net::Link* link() const;
  // Empty for loopback. For a capture at the clients' end.
  [[nodiscard]] SickClients::Counts counts() const;
  Result<void> run_at_client(UniqueFunction<void()> task);
  [[nodiscard]] bool server_running();

 private:
  class Impl;
  explicit SickService(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tailward::lab
