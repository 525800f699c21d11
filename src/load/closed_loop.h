// A closed loop of requests: a fixed number in flight. When one ends, the next one is sent, until
// the total is reached.
//
// The articles' programs measure this way. A closed loop hides waiting: a slow server gets fewer
// requests. To measure a service of your own, use the open loop (load/open_loop.h).
//
// Thread safety: belongs to the client's loop. Times are read from the client's timers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/unique_function.h"
#include "client/client.h"
#include "stats/histogram.h"

namespace tailward::load {

struct LoopCounts {
  std::uint64_t started = 0;
  std::uint64_t answered = 0;  // with a status below 400
  std::uint64_t failed = 0;    // any other status, or no response
};

class ClosedLoop {
 public:
  struct Options {
    std::uint64_t total = 2000;
    std::size_t in_flight = 50;
    std::size_t width = 1;  // calls of one request, sent at the same time (a fan-out)
    // Makes the n-th call, from 0. Call n belongs to request n ÷ width.
    std::function<http::Request(std::uint64_t n)> request;
    Duration deadline = std::chrono::seconds(30);
    // The loop gives up after this many failures in a row: the server is gone.
    std::uint64_t failures_in_a_row_max = 200;
  };

  // REQUIRES: the client outlives the loop.
  ClosedLoop(client::Client& client, Options options);
  ~ClosedLoop();

  // Runs `done` when the last request has ended, or when the loop gives up. REQUIRES: called once.
  void start(UniqueFunction<void()> done);
  // Cancels what is in flight. Only requests that have ended count. `done` does not run.
  void stop();

  // From the start to the last byte, of answered requests. With a width, the slowest call decides.
  [[nodiscard]] const stats::Histogram& latency() const { return latency_; }
  // The same for single calls.
  [[nodiscard]] const stats::Histogram& call_latency() const { return call_latency_; }
  [[nodiscard]] const LoopCounts& counts() const { return counts_; }
  [[nodiscard]] bool finished() const { return finished_; }
  // There were too many failures in a row.
  [[nodiscard]] bool gave_up() const { return gave_up_; }
  [[nodiscard]] const Error& last_error() const { return last_error_; }

 private:
  class Leg;
  class Slot;
  void next(Slot& slot);
  void ended(Slot& slot);

  client::Client& client_;
  Options options_;
  UniqueFunction<void()> done_;
  std::vector<std::unique_ptr<Slot>> slots_;
  stats::Histogram latency_;
  stats::Histogram call_latency_;
  LoopCounts counts_;
  std::size_t running_ = 0;
  std::uint64_t failures_in_a_row_ = 0;
  bool finished_ = false;
  bool gave_up_ = false;
  Error last_error_;
};

}  // namespace tailward::load
