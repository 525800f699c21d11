// The engine in virtual time: races (hedge/engine/race.h) on a route, driven by a load, against a
// service (sim/service.h) whose clock is a queue of timers moved by hand. An hour passes in
// seconds, and the same configuration and seed give the same run, event for event.
//
// The shape, actors that wake at times of their own on one virtual clock, is that of the simulator
// in google/quiche.
//
// Thread safety: one thread; different simulations are independent of each other.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <variant>
#include <vector>

#include "base/unique_function.h"
#include "hedge/engine/race.h"
#include "io/timers.h"
#include "sim/service.h"
#include "stats/histogram.h"

namespace tailward::sim {

// A fixed number of requests at a time: the next one starts when one has ended. It waits for a slow
// service, and so hides some of the waiting; open loop does not.
struct ClosedLoad {
  std::uint64_t in_flight = 20;
  std::uint64_t requests = 2000;
};

// A fixed number of requests per second, whatever becomes of them.
struct OpenLoad {
  enum class Arrivals : std::uint8_t { kPoisson, kUniform };
  double rate_per_s = 100;
  Duration length = std::chrono::seconds(10);
  Arrivals arrivals = Arrivals::kPoisson;
  std::uint64_t in_flight_max = 100'000;  // a request beyond it is dropped and counted
};

struct SimulationConfig {
  // Its seed is replaced by one made from `seed`; its hosts are the service's.
  hedge::RouteConfig route;
  ServiceConfig service;
  std::variant<ClosedLoad, OpenLoad> load;
  // How many legs a request has. Each is a race of its own; the slowest one ends the request.
  std::uint32_t legs = 1;
  // How many keys there are. They are drawn evenly and choose the shard of a lock.
  std::uint64_t keys = 1 << 20;
  Duration deadline = kForever;  // of a request, from its start
  std::uint64_t seed = 1;
};

// One second of virtual time.
struct Second {
  Duration at{};               // its beginning, from the start
  std::uint64_t requests = 0;  // ended in it
  std::uint64_t attempts = 0;  // sent in it
  double trigger_rate = 0;     // hedged by a delay ÷ eligible, of the races of this second
  Duration lock_wait{};        // ended in it, all locks
  Duration p50{};              // of the requests answered in it
  Duration p99{};
  std::uint64_t in_flight = 0;  // requests, at its end
};
// Later ones are counted in SimulationResult::seconds_dropped.
inline constexpr std::size_t kSecondsMax = 100'000;

struct SimulationResult {
  std::uint64_t seed = 0;
  // Of the ordered log of all events: equal for equal runs.
  std::uint64_t digest = 0;
  Duration length{};  // start to the end of the last request
  std::uint64_t requests = 0;
  std::uint64_t answered = 0;    // every leg well
  std::uint64_t failed = 0;      // a leg failed or timed out
  std::uint64_t unfinished = 0;  // hang for ever
  std::uint64_t dropped = 0;     // by OpenLoad::in_flight_max
  stats::Histogram latency;      // of answered requests
  hedge::Counters counters;
  hedge::Verdict verdict;  // at the end of the last request, without server evidence
  ServiceCounters service;
  Duration lock_wait{};
  std::vector<LockCounters> locks;
  std::vector<Second> seconds;
  std::uint64_t seconds_dropped = 0;
};

class Simulation {
 public:
  // REQUIRES: the service has hosts, legs > 0, keys > 0, a closed loop's in_flight > 0, an open
  // loop's rate > 0.
  explicit Simulation(const SimulationConfig& config);
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  // Called after everything that touches the route. Must not touch the simulation.
  void on_event(UniqueFunction<void()> observer) { event_observer_ = std::move(observer); }
  // Called at the end of every request, with its exact latency.
  void on_request(UniqueFunction<void(Duration, bool answered)> observer) {
    request_observer_ = std::move(observer);
  }

  // Goes on to the next time at which something happens. False: nothing ever will.
  bool step();
  void run_until(TimePoint time);
  // To the end: all requests over, and all that their losers left at the hosts.
  void run();

  [[nodiscard]] TimePoint now() const { return timers_.now(); }
  [[nodiscard]] Duration elapsed() const { return timers_.now() - start_; }
  [[nodiscard]] hedge::Route& route() { return route_; }
  [[nodiscard]] const Service& service() const { return service_; }
  // Of the engine, as the driver sees them.
  [[nodiscard]] std::uint64_t attempts_in_flight() const { return attempts_in_flight_; }
  // As of now: the last second is cut short.
  [[nodiscard]] SimulationResult result();

 private:
  struct Request {
    TimePoint started{};
    std::uint32_t legs_left = 0;
    bool failed = false;
  };
  struct Leg {
    std::optional<hedge::Race> race;
    io::Timer timer;
    std::uint32_t request = 0;
    std::uint64_t number = 0;
    std::uint64_t key = 0;
    std::array<Service::JobId, hedge::kAttemptsMax> jobs{};
  };

  void begin_load();
  void arrive();
  void start_request();
  void start_leg(std::uint32_t request);
  void attempt_ended(std::uint64_t token, const hedge::Outcome& outcome);
  void leg_timer(std::uint32_t leg);
  void carry_out(std::uint32_t leg, const hedge::Actions& actions);
  void start_attempt(std::uint32_t leg, const hedge::Action& action);
  void leg_over(std::uint32_t leg, bool answered);
  void request_over(std::uint32_t request);
  void tick();
  void second();
  [[nodiscard]] Second this_second() const;
  void log(std::uint64_t what, std::uint64_t number);
  void observe() {
    if (event_observer_) event_observer_();
  }

  SimulationConfig config_;
  io::Timers timers_;
  TimePoint start_;
  Rng arrivals_rng_;
  Rng keys_rng_;
  hedge::Route route_;
  Service service_;
  UniqueFunction<void()> event_observer_;
  UniqueFunction<void(Duration, bool)> request_observer_;

  std::deque<Leg> legs_;  // races stay where they are
  std::vector<std::uint32_t> free_legs_;
  std::vector<Request> requests_;
  std::vector<std::uint32_t> free_requests_;
  std::uint64_t requests_left_ = 0;  // closed loop: not yet started
  TimePoint arrivals_until_{};       // open loop
  TimePoint next_arrival_{};
  std::uint64_t in_flight_ = 0;
  std::uint64_t attempts_in_flight_ = 0;
  std::uint64_t legs_started_ = 0;
  TimePoint last_over_;

  SimulationResult result_;
  TimePoint second_began_;
  stats::Histogram second_latency_;
  std::uint64_t second_requests_ = 0;
  hedge::Counters second_counters_;  // as they were when it began
  Duration second_lock_wait_{};
  io::Timer arrival_timer_;
  io::Timer tick_timer_;
  io::Timer second_timer_;
};

// The whole of it.
SimulationResult simulate(const SimulationConfig& config);

}  // namespace tailward::sim
