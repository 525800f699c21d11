// A server that works as a WorkModel says: real HTTP on a real socket, a real lock, and work that a
// cancellation stops. Its faults are switched while it runs.
//
//   GET /work?key=K          takes the lock of key K (if the model has locks), works, responds 200
//   GET /work?key=K&draw=N   the same with the N-th draw of the model's laws, in whatever order
//                            the requests arrive
//   GET /lab/fault?slow=N    from now on all work outside the lock takes N times as long, including
//                            the rest of the work under way; slow=1: as the model says
//   GET /lab/fault?fail=1    from now on every request fails with 503 at once, including those
//                            under way
//   GET /lab/stats           what happened, as JSON
//   GET /lab/pprof           the contention profile of the locks, gzipped protobuf, for pprof
//
// A new fault replaces the one before it. It is in effect when its response arrives.
//
// A request blocks a thread of its own while it waits for the lock and holds it, like a handler in
// Go, Java or C++. A mutex knows nothing of cancellation: a request whose client has gone still
// waits its turn and still holds the lock for its time, as in the articles' programs. The work
// behind the lock stops at once.
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
#include "faults/lock_workers.h"
#include "faults/work_model.h"
#include "io/timers.h"
#include "io/transport.h"
#include "net/http_server.h"
#include "sync/sharded_mutex.h"

namespace tailward::faults {

// What a server has counted. Durations in JSON are in nanoseconds.
struct ServerStats {
  std::uint64_t requests = 0;  // that reached the handler
  std::uint64_t answered = 0;
  std::uint64_t cancelled = 0;  // the client went away first
  std::uint64_t in_flight = 0;
  // Holds of locks, waited for or under way. That of a loser goes on after its client has gone.
  std::uint64_t holds = 0;
  std::uint64_t lock_threads_short = 0;  // holds that waited for a thread, not for the lock
  std::uint64_t hedges = 0;              // by x-tailward-attempt
  Duration lock_wait{};                  // of all requests, cancelled ones included
  std::uint64_t lock_contentions = 0;
  std::uint64_t connections = 0;  // now
  std::uint64_t connections_ever = 0;
  std::uint64_t log_lines = 0;
  std::uint64_t log_bytes = 0;

  // What was counted since `before`, of the same server. `in_flight`, `holds` and `connections` say
  // what is so now, and stay.
  ServerStats& operator-=(const ServerStats& before);
  // Another server's, or another run's, added to it.
  ServerStats& operator+=(const ServerStats& other);
};

std::string to_json_text(const ServerStats& stats);
Result<ServerStats> parse_stats(std::string_view json_text);

// Thread safety: belongs to the loop of its timers. The lock workers are threads of their own.
class WorkServer {
 public:
  // Runs a task on the loop, in a later turn. It is called from any thread.
  using Post = std::function<void(UniqueFunction<void()> task)>;

  // REQUIRES: transport, timers and what `post` posts to outlive the server.
  WorkServer(const WorkModel& model, io::Transport& transport, io::Timers& timers, Post post);
  ~WorkServer();
  WorkServer(const WorkServer&) = delete;
  WorkServer& operator=(const WorkServer&) = delete;

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
  void handle(net::CallRef call);
  void begin(net::CallRef call);
  void do_work(std::uint64_t id);
  void run_until(std::uint64_t id, Work& work, TimePoint done_at);
  void finish(std::uint64_t id);
  void respond(const Work& work, int status);
  void cancelled(std::uint64_t id);
  void switch_faults(const net::CallRef& call);
  void log_line(const Work& work, int status);

  WorkModel model_;
  io::Timers& timers_;
  Post post_;
  Rng rng_;
  sync::ContentionProfile profile_;
  sync::ShardedMutex<WorkModel::kShardsMax> locks_;
  std::FILE* log_;
  double slow_ = 1;  // how many times as long the work takes
  bool failing_ = false;
  ServerStats stats_;
  std::unordered_map<std::uint64_t, Work> works_;
  std::uint64_t next_id_ = 1;
  LockWorkers workers_;
  net::HttpServer http_;
};

// Runs a server until standard input ends, SIGINT or SIGTERM. Prints "port N" when it serves.
// Returns the exit status of the process.
int run_work_server(const WorkModel& model, std::uint16_t port);

}  // namespace tailward::faults
