#include "sim/simulation.h"

#include <algorithm>

#include "base/check.h"

namespace tailward::sim {
namespace {

// What each random stream is for: adding a draw to one leaves the others as they are.
enum Draws : std::uint64_t { kArrivals = 1, kKeys, kRoute, kService };

std::uint64_t seed_for(const SimulationConfig& config, Draws stream) {
  return Rng::stream(config.seed, stream).next();
}

hedge::RouteConfig route_config(const SimulationConfig& config) {
  hedge::RouteConfig route = config.route;
  route.seed = seed_for(config, kRoute);
  return route;
}

// The attempt's number in the low bits of a token, its leg above.
constexpr std::uint64_t kAttemptBits = 8;
static_assert(hedge::kAttemptsMax < (1 << kAttemptBits));

// The timers that keep themselves armed whatever happens: tick and second.
constexpr std::size_t kOwnTimers = 2;

}  // namespace

Simulation::Simulation(const SimulationConfig& config)
    : config_(config),
      start_(timers_.now()),
      arrivals_rng_(seed_for(config, kArrivals)),
      keys_rng_(seed_for(config, kKeys)),
      route_(route_config(config)),
      service_(config.service, timers_, seed_for(config, kService),
               [this](std::uint64_t token, const hedge::Outcome& outcome) {
                 attempt_ended(token, outcome);
               }),
      last_over_(start_),
      second_began_(start_) {
  TAILWARD_CHECK(!config.service.hosts.empty() && config.legs > 0 && config.keys > 0);
  for (const HostConfig& host : config.service.hosts) {
    TAILWARD_CHECK(route_.add_host(host.name).has_value());
  }
  result_.seed = config.seed;
  tick_timer_ = timers_.after(config_.route.tick, [this] { tick(); });
  second_timer_ = timers_.after(std::chrono::seconds(1), [this] { second(); });
  // As the first event, so that observers are in place by then.
  arrival_timer_ = timers_.at(start_, [this] { begin_load(); });
}

void Simulation::begin_load() {
  if (const auto* closed = std::get_if<ClosedLoad>(&config_.load)) {
    TAILWARD_CHECK(closed->in_flight > 0);
    const std::uint64_t at_once = std::min(closed->in_flight, closed->requests);
    requests_left_ = closed->requests - at_once;
    for (std::uint64_t i = 0; i < at_once; ++i) start_request();
    return;
  }
  const auto& open = std::get<OpenLoad>(config_.load);
  TAILWARD_CHECK(open.rate_per_s > 0);
  arrivals_until_ = start_ + open.length;
  next_arrival_ = start_;
  arrive();
}

// Starts the request that is due and arms the next; the first call only arms.
void Simulation::arrive() {
  const auto& open = std::get<OpenLoad>(config_.load);
  if (next_arrival_ > start_) {
    if (in_flight_ < open.in_flight_max) {
      start_request();
    } else {
      ++result_.dropped;
    }
  }
  const double mean_ns = 1e9 / open.rate_per_s;
  const bool poisson = open.arrivals == OpenLoad::Arrivals::kPoisson;
  const double gap_ns = poisson ? arrivals_rng_.exponential(mean_ns) : mean_ns;
  next_arrival_ += Duration{std::max<std::int64_t>(1, static_cast<std::int64_t>(gap_ns))};
  if (next_arrival_ >= arrivals_until_) return;
  arrival_timer_ = timers_.at(next_arrival_, [this] { arrive(); });
}

void Simulation::start_request() {
  ++result_.requests;
  ++in_flight_;
  std::uint32_t index;
  if (free_requests_.empty()) {
    index = static_cast<std::uint32_t>(requests_.size());
    requests_.emplace_back();
  } else {
    index = free_requests_.back();
    free_requests_.pop_back();
  }
  requests_[index] = Request{timers_.now(), config_.legs, false};
  for (std::uint32_t i = 0; i < config_.legs; ++i) start_leg(index);
}

void Simulation::start_leg(std::uint32_t request) {
  std::uint32_t index;
  if (free_legs_.empty()) {
    index = static_cast<std::uint32_t>(legs_.size());
    legs_.emplace_back();
  } else {
    index = free_legs_.back();
    free_legs_.pop_back();
  }
  Leg& leg = legs_[index];
  leg.race.emplace(route_);
  leg.request = request;
  leg.number = legs_started_++;
  leg.key = keys_rng_.below(config_.keys);
  leg.jobs = {};
  hedge::RequestInfo info;
  if (config_.deadline < kForever) info.deadline = timers_.now() + config_.deadline;
  carry_out(index, leg.race->start(info, timers_.now()));
}

void Simulation::attempt_ended(std::uint64_t token, const hedge::Outcome& outcome) {
  const auto index = static_cast<std::uint32_t>(token >> kAttemptBits);
  const auto attempt = static_cast<hedge::AttemptIndex>(token & ((1 << kAttemptBits) - 1));
  Leg& leg = legs_[index];
  log(0x10 + static_cast<std::uint64_t>(outcome.result), leg.number << kAttemptBits | attempt);
  leg.jobs[attempt] = {};
  --attempts_in_flight_;
  carry_out(index, leg.race->on_outcome(attempt, outcome, timers_.now()));
}

void Simulation::leg_timer(std::uint32_t index) {
  log(0x20, legs_[index].number);
  carry_out(index, legs_[index].race->on_timer(timers_.now()));
}

void Simulation::carry_out(std::uint32_t index, const hedge::Actions& actions) {
  Leg& leg = legs_[index];
  for (const hedge::Action& action : actions) {
    log(static_cast<std::uint64_t>(action.kind) << 16 | action.host,
        leg.number << kAttemptBits | action.attempt);
    switch (action.kind) {
      case hedge::Action::Kind::kStart:
        start_attempt(index, action);
        break;
      case hedge::Action::Kind::kCancel: {
        Service::JobId& job = leg.jobs[action.attempt];
        // A failure that was held back has no job any more, only its response.
        if (job.generation == 0) break;
        service_.cancel(job);
        job = {};
        --attempts_in_flight_;
        break;
      }
      case hedge::Action::Kind::kArm:
        if (action.at >= kNever) {
          leg.timer.cancel();
        } else {
          leg.timer = timers_.at(action.at, [this, index] { leg_timer(index); });
        }
        break;
      case hedge::Action::Kind::kFinish:
        leg_over(index, action.ending == hedge::Ending::kAnswered);
        break;
    }
  }
  observe();
}

void Simulation::start_attempt(std::uint32_t index, const hedge::Action& action) {
  Leg& leg = legs_[index];
  const std::uint64_t token = std::uint64_t{index} << kAttemptBits | action.attempt;
  ++attempts_in_flight_;
  leg.jobs[action.attempt] = service_.send(action.host, leg.key, token);
}

void Simulation::leg_over(std::uint32_t index, bool answered) {
  Leg& leg = legs_[index];
  leg.timer.cancel();
  leg.race.reset();
  Request& request = requests_[leg.request];
  if (!answered) request.failed = true;
  // Free only now: request_over() starts legs.
  const std::uint32_t request_index = leg.request;
  free_legs_.push_back(index);
  if (--request.legs_left == 0) request_over(request_index);
}

void Simulation::request_over(std::uint32_t index) {
  const Request& request = requests_[index];
  const bool answered = !request.failed;
  const Duration latency = timers_.now() - request.started;
  free_requests_.push_back(index);
  --in_flight_;
  ++second_requests_;
  last_over_ = timers_.now();
  if (answered) {
    ++result_.answered;
    result_.latency.record(latency);
    second_latency_.record(latency);
  } else {
    ++result_.failed;
  }
  if (request_observer_) request_observer_(latency, answered);
  if (requests_left_ > 0) {
    --requests_left_;
    start_request();
  }
}

void Simulation::tick() {
  route_.tick(timers_.now());
  tick_timer_ = timers_.after(config_.route.tick, [this] { tick(); });
  observe();
}

Second Simulation::this_second() const {
  const hedge::Counters& now = route_.counters();
  const hedge::Counters& before = second_counters_;
  Second second;
  second.at = second_began_ - start_;
  second.requests = second_requests_;
  second.attempts = now.attempts - before.attempts;
  const std::uint64_t eligible = now.eligible - before.eligible;
  const std::uint64_t hedged = now.hedged_requests - before.hedged_requests;
  if (eligible > 0) {
    second.trigger_rate =
        std::min(1.0, static_cast<double>(hedged) / static_cast<double>(eligible));
  }
  second.lock_wait = service_.lock_wait() - second_lock_wait_;
  second.p50 = second_latency_.quantile(0.5);
  second.p99 = second_latency_.quantile(0.99);
  second.in_flight = in_flight_;
  return second;
}

void Simulation::second() {
  if (result_.seconds.size() < kSecondsMax) {
    result_.seconds.push_back(this_second());
  } else {
    ++result_.seconds_dropped;
  }
  second_began_ = timers_.now();
  second_latency_.clear();
  second_requests_ = 0;
  second_counters_ = route_.counters();
  second_lock_wait_ = service_.lock_wait();
  second_timer_ = timers_.after(std::chrono::seconds(1), [this] { second(); });
}

void Simulation::log(std::uint64_t what, std::uint64_t number) {
  const auto time = static_cast<std::uint64_t>(timers_.now().time_since_epoch().count());
  result_.digest = mix64(result_.digest ^ mix64(time ^ what << 40) ^ number);
}

bool Simulation::step() {
  if (timers_.armed_count() <= kOwnTimers) return false;
  timers_.advance_to(timers_.next_event());
  return true;
}

void Simulation::run_until(TimePoint time) {
  while (timers_.next_event() <= time && step()) {
  }
}

void Simulation::run() {
  while (step()) {
  }
}

SimulationResult Simulation::result() {
  SimulationResult result = result_;
  result.length = last_over_ - start_;
  result.unfinished = in_flight_;
  result.counters = route_.counters();
  result.verdict = route_.verdict(last_over_);
  result.service = service_.counters();
  result.lock_wait = service_.lock_wait();
  for (std::size_t i = 0; i < config_.service.locks.size(); ++i) {
    result.locks.push_back(service_.lock_counters(i));
  }
  if (timers_.now() > second_began_) {
    if (result.seconds.size() < kSecondsMax) {
      result.seconds.push_back(this_second());
    } else {
      ++result.seconds_dropped;
    }
  }
  return result;
}

SimulationResult simulate(const SimulationConfig& config) {
  Simulation simulation(config);
  simulation.run();
  return simulation.result();
}

}  // namespace tailward::sim
