// An open loop of requests: a fixed rate, whatever becomes of the requests. The clients of a real
// service behave this way. The response time counts from the intended start, so that no waiting is
// hidden: neither the wait for the server, nor the wait for room among the requests in flight.
//
// Source: Gil Tene, "How NOT to Measure Latency", 2013, on the error that this avoids (coordinated
// omission).
//
// Thread safety: belongs to the client's loop. Memory: one slot for each request in flight.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/rng.h"
#include "client/client.h"

namespace tailward::load {

enum class Arrivals {
  kPoisson,  // exponential gaps: many independent clients
  kUniform,  // equal gaps, like a metronome
};

// One request that has ended.
struct Observation {
  std::uint64_t number = 0;  // in the order of the intended starts, from 0
  TimePoint intended{};
  TimePoint ended{};  // the last byte, or the failure
  bool ok = false;    // answered with a status below 400
  int attempts = 0;

  [[nodiscard]] Duration response_time() const { return ended - intended; }
};

struct OpenLoopCounts {
  std::uint64_t started = 0;
  std::uint64_t answered = 0;
  std::uint64_t failed = 0;   // any other status, or no response
  std::uint64_t delayed = 0;  // began late, because in_flight_max were in flight
};

class OpenLoop {
 public:
  struct Options {
    double per_s = 100;
    Arrivals arrivals = Arrivals::kPoisson;
    std::uint64_t seed = 1;
    // Above it, requests begin late and in order; none is left out.
    std::size_t in_flight_max = 2000;
    // Makes the n-th request, from 0.
    std::function<http::Request(std::uint64_t n)> request;
    Duration deadline = std::chrono::seconds(30);  // from the intended start
    // Called for every request that ends; may be empty.
    std::function<void(const Observation& observation)> observe;
  };

  // REQUIRES: the client outlives the loop; per_s > 0, in_flight_max > 0.
  OpenLoop(client::Client& client, Options options);
  ~OpenLoop();
  OpenLoop(const OpenLoop&) = delete;
  OpenLoop& operator=(const OpenLoop&) = delete;

  // The first request comes after the first gap. REQUIRES: called once.
  void start();
  // Changes the rate from now on. The next request comes after a gap of the new length.
  void set_rate(double per_s);
  // Begins no further request. Requests in flight go on to their end.
  void stop();

  [[nodiscard]] std::size_t in_flight() const { return slots_.size() - free_.size(); }
  [[nodiscard]] const OpenLoopCounts& counts() const { return counts_; }

 private:
  class Slot;
  [[nodiscard]] Duration gap();
  // Begins the requests that are due, and arms the timer for the next one.
  void pump();
  void ended(Slot& slot, bool ok);

  client::Client& client_;
  Options options_;
  Rng rng_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<Slot*> free_;
  OpenLoopCounts counts_;
  TimePoint next_ = kNever;  // the next intended start
  bool full_ = false;        // the next request is due, and there is no room for it
  io::Timer timer_;
};

}  // namespace tailward::load
