// The experiment's server: real HTTP on a real socket, a real lock, and work that a cancellation
// stops.
//
//   GET /work?key=K          takes the lock of key K (if the model has locks), works, answers 200
//   GET /work?key=K&draw=N   the same with the N-th draw of the model's law, whatever the order of
//   arrival GET /lab/stats           what happened, as JSON GET /lab/pprof           the locks'
//   contention profile, gzipped protobuf, for pprof
//
// A request blocks a thread of its own while it waits for the lock and holds it, as a handler in
// Go, Java or C++ would. A mutex knows nothing of cancellation: a request whose client has gone
// still waits its turn and still holds the lock for its time, as in the articles' programs; the
// work behind the lock stops at once.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "lab/model.h"

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

// Runs the server until standard input ends, SIGINT or SIGTERM; prints "port N" when it serves.
// Returns the process's exit status.
int run_server(const ServerModel& model, std::uint16_t port);

}  // namespace tailward::lab
