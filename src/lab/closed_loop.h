// A closed loop of requests: so many in flight, the next one sent when one is done, until the
// total.
//
// This is what the articles' programs do, and what their figures are of. It hides waiting (a slow
// server is asked less often); for measurements of one's own, an open loop is the right one.
//
// Thread safety: belongs to the client's loop.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/unique_function.h"
#include "client/client.h"
#include "stats/histogram.h"

namespace tailward::lab {

struct LoopCounts {
  std::uint64_t started = 0;
  std::uint64_t answered = 0;  // with a status below 400
  std::uint64_t failed = 0;    // any other status, or none
};

class ClosedLoop {
 public:
  struct Options {
    std::uint64_t total = 2000;
    std::size_t in_flight = 50;
    std::size_t width = 1;
    // The n-th call, from 0: call n belongs to request n ÷ width.
    std::function<http::Request(std::uint64_t n)> request;
    Duration deadline = std::chrono::seconds(30);
    // Ends the run: the server is gone when nothing else comes back.
    std::uint64_t failures_in_a_row_max = 200;
  };

  // REQUIRES: the client outlives the loop.
  ClosedLoop(client::Client& client, Options options);
  ~ClosedLoop();

  // Runs `done` when the last request has ended, or when it was given up. REQUIRES: called once.
  void start(UniqueFunction<void()> done);
  // Takes back what is in flight and counts only what has ended. `done` is not run.
  void stop();

  // Start to last byte, of answered requests; with a width, of the slowest of its calls.
  [[nodiscard]] const stats::Histogram& latency() const { return latency_; }
  // Of the single calls.
  [[nodiscard]] const stats::Histogram& call_latency() const { return call_latency_; }
  [[nodiscard]] const LoopCounts& counts() const { return counts_; }
  [[nodiscard]] bool finished() const { return finished_; }
  // Too many failures in a row: the server is not there.
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

}  // namespace tailward::lab
