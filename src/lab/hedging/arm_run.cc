#include "lab/hedging/arm_run.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/client.h"
#include "faults/server_process.h"
#include "lab/hedging/stats_client.h"
#include "load/closed_loop.h"
#include "net/loop.h"
#include "net/socket_transport.h"

namespace tailward::lab {
namespace {

using namespace std::chrono_literals;

constexpr Duration kSlice = 250ms;  // of the timeline
// The longest hold of a lock is 2 ms, and 100 wait for it at most: 3 s is far more than the losers
// need to leave the server.
constexpr Duration kSettle = 3s;

// Reads the statistics of the server, once or periodically.
class StatsPoller {
 public:
  StatsPoller(io::Transport& transport, io::Timers& timers, const io::HostPort& server)
      : timers_(timers), client_(transport, timers, server) {}

  void read(UniqueFunction<void()> done) {
    // After a failure the last statistics stand: the load itself notices a dead server.
    client_.request("/lab/stats", [this, done = std::move(done)](bool ok) mutable {
      if (Result<faults::ServerStats> stats = faults::parse_stats(client_.body()); ok && stats)
        stats_ = *stats;
      done();
    });
  }
  void stop() {
    client_.stop();
    timer_.cancel();
  }
  // Reads them every `every`, and calls `slice` each time.
  void read_every(Duration every, std::function<void(const faults::ServerStats&)> slice) {
    timer_ = timers_.after(every, [this, every, slice = std::move(slice)]() mutable {
      read([this, every, slice = std::move(slice)]() mutable {
        slice(stats_);
        read_every(every, std::move(slice));
      });
    });
  }
  [[nodiscard]] const faults::ServerStats& stats() const { return stats_; }

 private:
  io::Timers& timers_;
  StatsClient client_;
  faults::ServerStats stats_;
  io::Timer timer_;
};

http::Request work_request(std::uint64_t n, bool numbered) {
  return get(numbered ? fmt::format("/work?key={}&draw={}", n, n) : fmt::format("/work?key={}", n));
}

// One run of an arm: warm-up, the requests that count, the wait for the losers.
class ArmRun {
 public:
  ArmRun(const ArmSpec& spec, Context& context, faults::ServerProcess& server)
      : spec_(spec),
        context_(context),
        server_(server),
        transport_(loop_),
        endpoint_{"127.0.0.1", server.port()},
        client_(transport_, loop_.timers(), spec.route,
                std::vector<io::HostPort>(spec.hosts, endpoint_), client_options(spec)),
        poller_(transport_, loop_.timers(), endpoint_) {}

  Result<ArmResult> run() {
    const auto interrupt = loop_.on_signals({SIGINT, SIGTERM}, [this](int) {
      context_.interrupted = true;
      loop_.stop();
    });
    began_ = loop_.precise_now();
    if (spec_.warm_up > 0 && !run_loop(spec_.warm_up, false)) return gone();
    note_start();
    if (!context_.interrupted && !run_loop(spec_.requests, true)) return gone();
    note_heap();
    settle();
    if (!server_.running()) return gone();
    fill();
    return std::move(result_);
  }

 private:
  static client::ClientOptions client_options(const ArmSpec& spec) {
    client::ClientOptions options;
    options.pool.max_connections = 4 * spec.in_flight * spec.width + 16;
    options.pool.max_idle = options.pool.max_connections;
    return options;
  }

  // False when the server went away.
  bool run_loop(std::uint64_t total, bool counts) {
    load::ClosedLoop::Options options;
    options.total = total;
    options.in_flight = spec_.in_flight;
    // Low enough that a short arm reaches it when its server has gone.
    options.failures_in_a_row_max = std::clamp<std::uint64_t>(total / 10, 1, 200);
    options.width = spec_.width;
    options.request = [numbered = spec_.numbered_draws](std::uint64_t n) {
      return work_request(n, numbered);
    };
    load::ClosedLoop requests(client_, options);
    started_ = loop_.precise_now();
    last_ = {0, before_.answered, before_.hedged_requests, server_before_.lock_wait};
    if (counts) {
      poller_.read_every(kSlice, [this](const faults::ServerStats& stats) { slice(stats); });
    }
    show_progress(requests, total);
    bool done = false;
    requests.start([this, &done] {
      done = true;
      loop_.stop();
    });
    loop_.run();
    poller_.stop();
    progress_timer_.cancel();
    result_.seconds = to_seconds(loop_.precise_now() - started_);
    if (counts) {
      result_.latency = requests.latency();
      result_.call_latency = requests.call_latency();
      result_.requests = requests.counts().answered;
      result_.failed = requests.counts().failed;
      result_.partial = !done;
    }
    requests.stop();
    last_error_ = requests.last_error();
    return !requests.gave_up();
  }

  void show_progress(const load::ClosedLoop& requests, std::uint64_t total) {
    if (!context_.progress) return;
    report::Progress progress;
    progress.label = "arm " + spec_.name;
    progress.done = requests.counts().answered + requests.counts().failed;
    progress.total = total;
    progress.elapsed = loop_.now() - started_;
    context_.progress(progress);
    progress_timer_ =
        loop_.timers().after(200ms, [this, &requests, total] { show_progress(requests, total); });
  }

  void slice(const faults::ServerStats& stats) {
    const hedge::Counters& now = client_.route().counters();
    const double seconds = to_seconds(loop_.now() - started_);
    const double length = seconds - last_.seconds;
    const auto finished = now.answered - last_.answered;
    const auto hedged = now.hedged_requests - last_.hedged;
    if (length <= 0) return;
    TimelinePoint point;
    point.seconds = seconds;
    point.trigger_rate =
        finished == 0 ? 0
                      : std::min(1.0, static_cast<double>(hedged) / static_cast<double>(finished));
    point.lock_wait_ms_per_s = to_ms(stats.lock_wait - last_.lock_wait) / length;
    point.requests_per_s = static_cast<double>(finished) / length;
    point.p50_ms = to_ms(client_.route().first_attempts().quantile(0.5).value_or(Duration{}));
    result_.timeline.push_back(point);
    last_ = {seconds, now.answered, now.hedged_requests, stats.lock_wait};
  }

  void read_stats() {
    bool answered = false;
    poller_.read([&answered] { answered = true; });
    loop_.run_until([&answered] { return answered; }, 1s);
    poller_.stop();
  }

  // What the warm-up has cost does not count.
  void note_start() {
    read_stats();
    server_before_ = poller_.stats();
    before_ = client_.route().counters();
    connections_before_ = connections_opened();
    if (context_.heap) heap_before_ = context_.heap(true);
  }

  // Losers wait for the lock after their clients have gone, and that wait counts too: this waits
  // until the server has nothing in flight, and no lock is held or waited for.
  void settle() {
    const TimePoint until = loop_.precise_now() + kSettle;
    do {
      read_stats();
      if (poller_.stats().in_flight == 0 && poller_.stats().holds == 0) break;
      loop_.run_until([] { return false; }, 20ms);
    } while (loop_.precise_now() < until && !context_.interrupted);
  }

  void note_heap() {
    if (!context_.heap) return;
    const HeapUse& before = heap_before_;
    const HeapUse after = context_.heap(false);
    result_.heap.allocations = after.allocations - before.allocations;
    result_.heap.allocated_bytes = after.allocated_bytes - before.allocated_bytes;
    result_.heap.live_bytes = after.live_bytes;
    result_.heap.peak_bytes = after.peak_bytes - std::min(after.peak_bytes, before.live_bytes);
  }

  [[nodiscard]] std::uint64_t connections_opened() const {
    std::uint64_t opened = 0;
    for (hedge::HostIndex host = 0; host < client_.hosts(); ++host) {
      opened += client_.pool(host).counters().opened;
    }
    return opened;
  }

  void fill() {
    hedge::Route& route = client_.route();
    result_.name = spec_.name;
    result_.hedging = spec_.route.policy.kind != hedge::Policy::Kind::kOff;
    result_.partial = result_.partial || context_.interrupted;
    result_.counters = route.counters();
    result_.counters -= before_;
    result_.server = poller_.stats();
    result_.server -= server_before_;
    const faults::ServerProcess::Usage usage = server_.usage();
    result_.server_peak_bytes = usage.resident_peak_bytes;
    result_.server_cpu_seconds = usage.cpu_seconds;
    result_.connections_opened = connections_opened() - connections_before_;
    result_.first_median = route.first_attempts_now().quantile(0.5);
    result_.error_rate = route.breaker().error_rate(loop_.now());
    if (route.baseline().learned()) result_.baseline_rate = route.baseline().trigger_rate();
    if (spec_.route.policy.kind != hedge::Policy::Kind::kAdaptive) return;
    result_.proof = route.proof(loop_.now());
    result_.plan = route.plan_board().read();
    if (const std::optional<TimePoint> off = route.off_since()) {
      result_.off_after_seconds = to_seconds(*off - began_);
    }
  }

  tl::unexpected<Error> gone() {
    const bool running = server_.running();
    return fail(ErrorKind::kDisconnected,
                fmt::format("arm {}: {}", spec_.name,
                            running ? "the server stopped answering: " + last_error_.message
                                    : "the server " + server_.ended_how() + " in mid-run"),
                "run the experiment again; its figures would not mean anything");
  }

  struct Last {
    double seconds = 0;
    std::uint64_t answered = 0;
    std::uint64_t hedged = 0;
    Duration lock_wait{};
  };

  const ArmSpec& spec_;
  Context& context_;
  faults::ServerProcess& server_;
  net::Loop loop_;
  net::SocketTransport transport_;
  io::HostPort endpoint_;
  client::Client client_;
  StatsPoller poller_;
  ArmResult result_;
  hedge::Counters before_;
  faults::ServerStats server_before_;
  HeapUse heap_before_;
  std::uint64_t connections_before_ = 0;
  TimePoint began_{};    // with the warm-up
  TimePoint started_{};  // of the loop that runs now
  Last last_;
  Error last_error_;
  io::Timer progress_timer_;
};

}  // namespace

Result<ArmResult> run_arm(const ArmSpec& spec, Context& context) {
  Result<faults::ServerProcess> server =
      faults::ServerProcess::start({"lab-server", "--model", faults::to_json_text(spec.model)});
  if (!server) return fail(server.error());
  return ArmRun(spec, context, *server).run();
}

}  // namespace tailward::lab
