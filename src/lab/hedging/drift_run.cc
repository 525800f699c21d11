#include "lab/hedging/drift_run.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/client.h"
#include "faults/server_process.h"
#include "faults/work_model.h"
#include "faults/work_server.h"
#include "lab/hedging/stats_client.h"
#include "load/open_loop.h"
#include "net/loop.h"
#include "net/socket_transport.h"

namespace tailward::lab {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kHosts = 3;
constexpr hedge::HostIndex kSlowHost = 1;
constexpr Duration kSample = 10ms;  // how precisely the end and the return of hedging are timed
constexpr Duration kSlice = 500ms;  // of the timeline: 300 requests, enough for a P99
constexpr Duration kDrain = 3s;     // for the requests in flight at the end

std::string fault_target(DriftFault fault, hedge::HostIndex host) {
  if (fault == DriftFault::kAllFail) return "/lab/fault?fail=1";
  const int slow = fault == DriftFault::kAllSlow                        ? kAllSlowBy
                   : fault == DriftFault::kOneSlow && host == kSlowHost ? kOneSlowBy
                                                                        : 1;
  return fmt::format("/lab/fault?slow={}", slow);
}

hedge::RouteConfig route_config(const DriftSpec& spec, std::uint64_t seed) {
  hedge::RouteConfig config;
  config.name = spec.name;
  config.policy = spec.policy;
  config.budget.share = kDriftBudget;
  config.seed = seed;
  return config;
}

client::ClientOptions client_options() {
  client::ClientOptions options;
  options.pool.max_connections = 1024;
  options.pool.max_idle = 1024;
  return options;
}

using Servers = std::vector<faults::ServerProcess>;

std::vector<io::HostPort> endpoints_of(const Servers& servers) {
  std::vector<io::HostPort> endpoints;
  for (const faults::ServerProcess& server : servers)
    endpoints.push_back({"127.0.0.1", server.port()});
  return endpoints;
}

class DriftArmRun {
 public:
  DriftArmRun(const DriftSpec& spec, const std::vector<PhasePlan>& plan, std::uint64_t seed,
              Context& context, Servers& servers)
      : spec_(spec),
        plan_(plan),
        context_(context),
        servers_(servers),
        transport_(loop_),
        client_(transport_, loop_.timers(), route_config(spec, seed), endpoints_of(servers),
                client_options()),
        requests_(client_, load(seed)) {
    for (const io::HostPort& endpoint : endpoints_of(servers)) {
      controls_.push_back(std::make_unique<StatsClient>(transport_, loop_.timers(), endpoint));
    }
  }

  Result<DriftRun> run() {
    const auto interrupt = loop_.on_signals({SIGINT, SIGTERM}, [this](int) {
      context_.interrupted = true;
      loop_.stop();
    });
    next_phase();
    loop_.run();
    if (trouble_) return fail(*trouble_);
    if (!phases().empty()) end_phase(since_start());
    phase_timer_.cancel();
    requests_.stop();
    if (!context_.interrupted) {
      loop_.run_until([this] { return requests_.in_flight() == 0; }, kDrain);
    }
    sample_timer_.cancel();
    read_stats();
    if (trouble_) return fail(*trouble_);
    fill();
    return std::move(result_);
  }

 private:
  // Where the run's counters stand.
  struct Mark {
    hedge::Counters counters;
    std::uint64_t slow_host_attempts = 0;
    std::uint64_t brownouts = 0;
  };

  load::OpenLoop::Options load(std::uint64_t seed) {
    load::OpenLoop::Options options;
    options.per_s = kDriftPerSecond;
    options.seed = seed;
    options.request = [](std::uint64_t n) { return get(fmt::format("/work?key={}", n)); };
    options.observe = [this](const load::Observation& one) { observed(one); };
    return options;
  }

  std::vector<DriftPhase>& phases() { return result_.drift.phases; }
  [[nodiscard]] Duration since_start() const { return loop_.precise_now() - started_; }
  [[nodiscard]] Mark mark() const {
    const hedge::Route& route = client_.route();
    return {route.counters(), route.hosts().at(kSlowHost).attempts, route.overload().times()};
  }

  // Switches the fault at every server. The phase begins when all have confirmed it.
  void next_phase() {
    if (next_ == plan_.size()) {
      loop_.stop();
      return;
    }
    const PhasePlan& plan = plan_[next_];
    // From here on a server may fail requests.
    const bool fails = plan.fault == DriftFault::kAllFail;
    if (fails && !failing_from_) failing_from_ = loop_.precise_now();
    waiting_for_ = controls_.size();
    for (hedge::HostIndex host = 0; host < controls_.size(); ++host) {
      controls_[host]->request(fault_target(plan.fault, host), [this](bool ok) {
        if (!ok) return server_gone();
        if (--waiting_for_ == 0) begin_phase();
      });
    }
  }

  void begin_phase() {
    const PhasePlan& plan = plan_[next_++];
    const bool first = phases().empty();
    if (first) started_ = slice_began_ = loop_.precise_now();
    const Duration now = since_start();
    if (!first) end_phase(now);
    if (failing_from_ && !failing_until_ && plan.fault != DriftFault::kAllFail) {
      failing_until_ = loop_.precise_now();
    }
    DriftPhase phase;
    phase.name = plan.name;
    phase.from = now;
    phases().push_back(std::move(phase));
    phase_mark_ = mark();
    if (first) {
      slice_mark_ = phase_mark_;
      requests_.start();
      sample();
    } else if (plan.traffic != plan_[next_ - 2].traffic) {
      requests_.set_rate(kDriftPerSecond * plan.traffic);
    }
    phase_timer_ = loop_.timers().after(plan.length, [this] { next_phase(); });
  }

  void end_phase(Duration now) {
    // No sample may lie across the border of two phases.
    take_sample(now);
    DriftPhase& phase = phases().back();
    const Mark end = mark();
    const hedge::Counters& before = phase_mark_.counters;
    phase.to = now;
    phase.requests = end.counters.requests - before.requests;
    phase.eligible = end.counters.eligible - before.eligible;
    phase.hedged = end.counters.hedged_requests - before.hedged_requests;
    phase.hedges = end.counters.hedges - before.hedges;
    phase.attempts = end.counters.attempts - before.attempts;
    phase.slow_host_attempts = end.slow_host_attempts - phase_mark_.slow_host_attempts;
    phase.brownouts = end.brownouts - phase_mark_.brownouts;
    if (phase.name == "brown-out") result_.arm.verdict = client_.verdict();
  }

  void observed(const load::Observation& one) {
    // Requests end out of order: this one may have begun in an earlier phase.
    const Duration began = one.intended - started_;
    auto phase = phases().rbegin();
    while (phase + 1 != phases().rend() && phase->from > began) ++phase;
    if (!one.ok) {
      ++phase->failed;
      // Each server begins and stops failing at some moment between the switch and the last
      // confirmation.
      const bool expected = failing_from_ && one.ended >= *failing_from_ &&
                            !(failing_until_ && one.intended > *failing_until_);
      if (!expected) ++result_.drift.unexpected_failures;
      return;
    }
    phase->latency.record(one.response_time());
    if (began - phase->from >= kSettledAfter) phase->settled.record(one.response_time());
    result_.arm.latency.record(one.response_time());
    slice_latency_.record(one.response_time());
  }

  void sample() {
    take_sample(since_start());
    if (loop_.precise_now() - slice_began_ >= kSlice) end_slice();
    if (!trouble_) sample_timer_ = loop_.timers().after(kSample, [this] { sample(); });
  }

  void take_sample(Duration now) {
    const std::uint64_t hedges = client_.route().counters().hedges;
    if (hedges > hedges_seen_) hedges_.push_back({now, hedges - hedges_seen_});
    hedges_seen_ = hedges;
    std::vector<ProbationChange>& changes = result_.drift.probation;
    const bool on = client_.route().hosts().on_probation(kSlowHost);
    if (on != (!changes.empty() && changes.back().on)) changes.push_back({now, on});
  }

  void end_slice() {
    const Mark end = mark();
    const auto share = [](std::uint64_t part, std::uint64_t whole) {
      return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
    };
    const hedge::Counters& before = slice_mark_.counters;
    DriftPoint point;
    point.seconds = to_seconds(since_start());
    point.trigger_rate = share(end.counters.hedged_requests - before.hedged_requests,
                               end.counters.eligible - before.eligible);
    point.extra_load =
        share(end.counters.hedges - before.hedges, end.counters.requests - before.requests);
    if (slice_latency_.count() > 0) point.p99_ms = to_ms(slice_latency_.quantile(0.99));
    result_.drift.timeline.push_back(point);
    slice_latency_.clear();
    slice_mark_ = end;
    slice_began_ = loop_.precise_now();
    show_progress();
    for (faults::ServerProcess& server : servers_) {
      if (!server.running()) return server_gone();
    }
  }

  void show_progress() const {
    if (!context_.progress) return;
    Duration whole{};
    for (const PhasePlan& phase : plan_) whole += phase.length;
    report::Progress progress;
    progress.label = fmt::format("arm {}, {}, second", spec_.name, plan_[next_ - 1].name);
    progress.done = static_cast<std::uint64_t>(to_seconds(since_start()));
    progress.total = static_cast<std::uint64_t>(std::ceil(to_seconds(whole)));
    progress.elapsed = since_start();
    context_.progress(progress);
  }

  void server_gone() {
    std::string how = "stopped answering";
    for (faults::ServerProcess& server : servers_) {
      if (!server.running()) how = server.ended_how();
    }
    trouble_ = Error{ErrorKind::kDisconnected,
                     fmt::format("arm {}: one of the servers {} in mid-run", spec_.name, how),
                     "run the experiment again; its figures would not mean anything"};
    loop_.stop();
  }

  void read_stats() {
    for (const auto& control : controls_) {
      std::optional<bool> ok;
      control->request("/lab/stats", [&ok](bool answered) { ok = answered; });
      loop_.run_until([&ok] { return ok.has_value(); }, 1s);
      const Result<faults::ServerStats> stats = faults::parse_stats(control->body());
      if (!ok.value_or(false) || !stats) return server_gone();
      result_.arm.server += *stats;
    }
  }

  void fill() {
    ArmResult& arm = result_.arm;
    hedge::Route& route = client_.route();
    arm.name = spec_.name;
    arm.hedging = true;
    arm.partial = context_.interrupted;
    arm.requests = requests_.counts().answered;
    arm.failed = requests_.counts().failed;
    arm.counters = route.counters();
    arm.seconds = to_seconds(since_start());
    arm.first_median = route.first_attempts_now().quantile(0.5);
    for (hedge::HostIndex host = 0; host < client_.hosts(); ++host) {
      arm.connections_opened += client_.pool(host).counters().opened;
    }
    for (const faults::ServerProcess& server : servers_) {
      const faults::ServerProcess::Usage usage = server.usage();
      arm.server_peak_bytes += usage.resident_peak_bytes;
      arm.server_cpu_seconds += usage.cpu_seconds;
    }
    Drift& drift = result_.drift;
    drift.budget_share = route.config().budget.share;
    drift.budget_burst = route.config().budget.burst;
    drift.delayed = requests_.counts().delayed;
    evaluate(drift, hedges_);
  }

  const DriftSpec& spec_;
  const std::vector<PhasePlan>& plan_;
  Context& context_;
  Servers& servers_;
  net::Loop loop_;
  net::SocketTransport transport_;
  client::Client client_;
  load::OpenLoop requests_;
  std::vector<std::unique_ptr<StatsClient>> controls_;
  DriftRun result_;
  TimePoint started_{};
  std::size_t next_ = 0;  // of the plan
  std::size_t waiting_for_ = 0;
  Mark phase_mark_;
  std::optional<TimePoint> failing_from_;
  std::optional<TimePoint> failing_until_;
  std::vector<HedgeSample> hedges_;
  std::uint64_t hedges_seen_ = 0;
  Mark slice_mark_;
  TimePoint slice_began_{};
  stats::Histogram slice_latency_;
  std::optional<Error> trouble_;
  io::Timer phase_timer_;
  io::Timer sample_timer_;
};

}  // namespace

Result<DriftRun> run_drift_arm(const DriftSpec& spec, const std::vector<PhasePlan>& plan,
                               std::uint64_t seed, Context& context) {
  Servers servers;
  for (std::size_t host = 0; host < kHosts; ++host) {
    const faults::WorkModel model = faults::reference_model(seed * kHosts + host);
    Result<faults::ServerProcess> server =
        faults::ServerProcess::start({"lab-server", "--model", faults::to_json_text(model)});
    if (!server) return fail(server.error());
    servers.push_back(std::move(*server));
  }
  return DriftArmRun(spec, plan, seed, context, servers).run();
}

}  // namespace tailward::lab
