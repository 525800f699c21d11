// The experiment's server: real HTTP on a real socket, a real lock, and work that a cancellation
// stops.
//
//   GET /work?key=K          takes the lock of key K (if the model has locks), works, answers 200
//   GET /work?key=K&draw=N   the same with the N-th draw of the model's law, whatever the order of
//                            arrival
//   GET /lab/fault?slow=N    from now on all work outside the lock takes N times as long, what is
//                            left of the work under way included; slow=1: as the model says
//   GET /lab/fault?fail=1    from now on every request is answered with 503 at once, those under
//                            way included
//   GET /lab/stats           what happened, as JSON
//   GET /lab/pprof           the locks' contention profile, gzipped protobuf, for pprof
//
// A switch of faults replaces the one before it, and is made when its answer comes.
//
// A request blocks a thread of its own while it waits for the lock and holds it, as a handler in
// Go, Java or C++ would. A mutex knows nothing of cancellation: a request whose client has gone
// still waits its turn and still holds the lock for its time, as in the articles' programs; the
// work behind the lock stops at once.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/result.h"
#include "base/rng.h"
#include "base/unique_function.h"
#include "io/timers.h"
#include "io/transport.h"
#include "lab/lock_workers.h"
#include "lab/model.h"
#include "net/http_server.h"
#include "sim/law.h"
#include "sync/sharded_mutex.h"

namespace tailward::lab {

struct ServerStats {
  std::uint64_t requests = 0;  // that reached the handler
  std::uint64_t answered = 0;
  std::uint64_t cancelled = 0;  // whose client went away first
  std::uint64_t in_flight = 0;
  std::uint64_t holds = 0;  // of locks, waited for or under way; a loser's goes on after its client
  std::uint64_t lock_threads_short = 0;  // holds that had to wait for a thread: no lock's fault
  std::uint64_t hedges = 0;              // by x-tailward-attempt
  Duration lock_wait{};                  // of all requests, cancelled ones included
  std::uint64_t lock_contentions = 0;
  std::uint64_t connections = 0;  // now
  std::uint64_t connections_ever = 0;
  std::uint64_t log_lines = 0;
  std::uint64_t log_bytes = 0;
};

std::string to_json_text(const ServerStats& stats);
Result<ServerStats> parse_stats(std::string_view json_text);

// Thread safety: belongs to the loop of its timers, the lock workers excepted.
class Server {
 public:
  // Runs a task on the loop, in a later turn; called from any thread.
  using Post = std::function<void(UniqueFunction<void()> task)>;

  // REQUIRES: transport, timers and what `post` posts to outlive the server.
  Server(const ServerModel& model, io::Transport& transport, io::Timers& timers, Post post);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // On loopback. Returns the address really bound.
  Result<io::HostPort> listen(std::uint16_t port) { return http_.listen({"127.0.0.1", port}); }
  [[nodiscard]] ServerStats stats() const;

 private:
  struct Work {
    net::CallRef call;
    std::string target;
    int attempt = 0;
    Duration length{};  // outside the lock, without faults
    TimePoint done_at{};
    io::Timer timer;  // armed once the work outside the lock has begun
  };
  static constexpr std::size_t kShardsMax = 16;

  void handle(net::CallRef call);
  void begin(net::CallRef call);
  void do_work(std::uint64_t id);
  void run_until(std::uint64_t id, Work& work, TimePoint done_at);
  void answer(std::uint64_t id);
  void respond(const Work& work, int status);
  void cancelled(std::uint64_t id);
  void switch_faults(const net::CallRef& call);
  void log_line(const Work& work, int status);

  ServerModel model_;
  sim::Law work_law_;
  sim::Law hold_law_;
  io::Timers& timers_;
  Post post_;
  Rng rng_;
  sync::ContentionProfile profile_;
  sync::ShardedMutex<kShardsMax> locks_;
  std::FILE* log_;
  double slow_ = 1;  // times
  bool failing_ = false;
  ServerStats stats_;
  std::unordered_map<std::uint64_t, Work> works_;
  std::uint64_t next_id_ = 1;
  LockWorkers workers_;
  net::HttpServer http_;
};

// Runs a server until standard input ends, SIGINT or SIGTERM; prints "port N" when it serves.
// Returns the process's exit status.
int run_server(const ServerModel& model, std::uint16_t port);

}  // namespace tailward::lab
