#include "faults/work_server.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "client/client.h"
#include "faults/server_process.h"
#include "net/loop.h"
#include "net/socket_transport.h"
#include "sync/pprof.h"

namespace tailward::faults {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kSlowMax = 1000;  // 1000 × 500 ms is longer than any experiment

// The number behind `name=` in a target's query.
std::optional<std::uint64_t> query_number(std::string_view target, std::string_view name) {
  const std::size_t query = target.find('?');
  if (query == std::string_view::npos) return std::nullopt;
  std::string_view rest = target.substr(query + 1);
  while (!rest.empty()) {
    const std::string_view pair = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), pair.size() + 1));
    if (pair.size() <= name.size() || pair.substr(0, name.size()) != name ||
        pair[name.size()] != '=') {
      continue;
    }
    std::uint64_t number = 0;
    const char* end = pair.data() + pair.size();
    const auto [at, error] = std::from_chars(pair.data() + name.size() + 1, end, number);
    if (error == std::errc{} && at == end) return number;
  }
  return std::nullopt;
}

Duration scaled(Duration length, double factor) {
  return Duration{static_cast<Duration::rep>(static_cast<double>(length.count()) * factor)};
}

}  // namespace

WorkServer::WorkServer(const WorkModel& model, io::Transport& transport, io::Timers& timers,
                       Post post)
    : model_(model),
      timers_(timers),
      post_(std::move(post)),
      rng_(model.seed),
      locks_(profile_),
      log_(model.access_log ? std::tmpfile() : nullptr),
      http_(transport, timers, [this](net::CallRef call) { handle(std::move(call)); }) {}

WorkServer::~WorkServer() {
  if (log_ != nullptr) std::fclose(log_);
}

void WorkServer::handle(net::CallRef call) {
  const std::string& target = call->request().target;
  if (target.rfind("/work", 0) == 0) {
    begin(std::move(call));
  } else if (target.rfind("/lab/fault?", 0) == 0) {
    switch_faults(call);
  } else if (target == "/lab/stats") {
    call->respond(200, "application/json", to_json_text(stats()));
  } else if (target == "/lab/pprof") {
    const Result<std::string> bytes = sync::pprof_bytes(profile_.snapshot());
    bytes ? call->respond(200, "application/octet-stream", *bytes)
          : call->respond(500, "text/plain", bytes.error().message + "\n");
  } else {
    call->respond(404, "text/plain", "this server knows /work?key=N\n");
  }
}

void WorkServer::begin(net::CallRef call) {
  const std::uint64_t id = next_id_++;
  Work& work = works_[id];
  ++stats_.requests;
  work.target = call->request().target;
  work.attempt = client::attempt_number(call->request().fields);
  if (work.attempt > 0) ++stats_.hedges;
  const std::optional<std::uint64_t> draw = query_number(work.target, "draw");
  Rng keyed = Rng::stream(model_.seed, draw.value_or(0));
  Rng& rng = draw ? keyed : rng_;
  const bool locks = model_.shards > 0 && (model_.lock_share >= 1 || rng.chance(model_.lock_share));
  const Duration hold = locks ? model_.hold.draw(rng) : Duration{};
  work.length = model_.work.draw(rng);
  call->on_cancel([this, id] { cancelled(id); });
  work.call = std::move(call);
  if (failing_) {
    respond(work, 503);
    works_.erase(id);
    return;
  }
  if (!locks) {
    do_work(id);
    return;
  }
  const auto shards = static_cast<std::uint64_t>(model_.shards);
  const std::uint64_t key = query_number(work.target, "key").value_or(0);
  workers_.hold(locks_.shard(key % shards), hold,
                [this, id] { post_([this, id] { do_work(id); }); });
}

void WorkServer::do_work(std::uint64_t id) {
  const auto found = works_.find(id);
  // Gone: its client went away while it had the lock, or the server was told to fail.
  if (found == works_.end()) return;
  Work& work = found->second;
  run_until(id, work, timers_.precise_now() + scaled(work.length, slow_));
}

void WorkServer::run_until(std::uint64_t id, Work& work, TimePoint done_at) {
  work.done_at = done_at;
  work.timer = timers_.at(done_at, [this, id] { finish(id); });
}

void WorkServer::finish(std::uint64_t id) {
  const auto found = works_.find(id);
  const Work work = std::move(found->second);
  works_.erase(found);
  respond(work, 200);
}

void WorkServer::respond(const Work& work, int status) {
  ++stats_.answered;
  log_line(work, status);
  work.call->respond(status, "text/plain", status == 200 ? "ok\n" : "failing\n");
}

void WorkServer::cancelled(std::uint64_t id) {
  const auto found = works_.find(id);
  if (found == works_.end()) return;
  ++stats_.cancelled;
  log_line(found->second, 499);
  works_.erase(found);
}

void WorkServer::switch_faults(const net::CallRef& call) {
  const std::string& target = call->request().target;
  const std::optional<std::uint64_t> slow = query_number(target, "slow");
  const std::optional<std::uint64_t> fail = query_number(target, "fail");
  const bool known = slow || fail;
  if (!known || slow.value_or(1) < 1 || slow.value_or(1) > kSlowMax || fail.value_or(0) > 1) {
    call->respond(400, "text/plain", fmt::format("slow=N, N from 1 to {}, or fail=1\n", kSlowMax));
    return;
  }
  failing_ = fail.value_or(0) == 1;
  const double before = std::exchange(slow_, static_cast<double>(slow.value_or(1)));
  const TimePoint now = timers_.precise_now();
  if (failing_) {
    for (const auto& [id, work] : std::exchange(works_, {})) respond(work, 503);
  } else if (slow_ != before) {
    for (auto& [id, work] : works_) {
      if (!work.timer.armed()) continue;  // it waits for the lock or holds it
      // What is left at the old pace takes slow_ ÷ before times as long at the new one.
      const Duration left = std::max(work.done_at - now, Duration{0});
      run_until(id, work, now + scaled(left, slow_ / before));
    }
  }
  call->respond(200, "text/plain", fmt::format("slow={} fail={}\n", slow_, failing_ ? 1 : 0));
}

void WorkServer::log_line(const Work& work, int status) {
  if (log_ == nullptr) return;
  const std::string line =
      fmt::format("127.0.0.1 \"GET {} HTTP/1.1\" {} 3 {:.3f} attempt={}\n", work.target, status,
                  to_seconds(timers_.now() - work.call->arrived_at()), work.attempt);
  std::fwrite(line.data(), 1, line.size(), log_);
  ++stats_.log_lines;
  stats_.log_bytes += line.size();
}

ServerStats WorkServer::stats() const {
  ServerStats stats = stats_;
  stats.in_flight = works_.size();
  stats.holds = workers_.under_way();
  stats.lock_threads_short = workers_.limit_hits();
  stats.lock_wait = profile_.totals().wait;
  stats.lock_contentions = profile_.totals().contentions;
  stats.connections = http_.counters().connections;
  stats.connections_ever = http_.counters().accepted;
  return stats;
}

ServerStats& ServerStats::operator-=(const ServerStats& before) {
  requests -= before.requests;
  answered -= before.answered;
  cancelled -= before.cancelled;
  lock_threads_short -= before.lock_threads_short;
  hedges -= before.hedges;
  lock_wait -= before.lock_wait;
  lock_contentions -= before.lock_contentions;
  connections_ever -= before.connections_ever;
  log_lines -= before.log_lines;
  log_bytes -= before.log_bytes;
  return *this;
}

ServerStats& ServerStats::operator+=(const ServerStats& other) {
  requests += other.requests;
  answered += other.answered;
  cancelled += other.cancelled;
  in_flight += other.in_flight;
  holds += other.holds;
  lock_threads_short += other.lock_threads_short;
  hedges += other.hedges;
  lock_wait += other.lock_wait;
  lock_contentions += other.lock_contentions;
  connections += other.connections;
  connections_ever += other.connections_ever;
  log_lines += other.log_lines;
  log_bytes += other.log_bytes;
  return *this;
}

std::string to_json_text(const ServerStats& stats) {
  return Json{{"requests", stats.requests},
              {"answered", stats.answered},
              {"cancelled", stats.cancelled},
              {"in_flight", stats.in_flight},
              {"holds", stats.holds},
              {"lock_threads_short", stats.lock_threads_short},
              {"hedges", stats.hedges},
              {"lock_wait_ns", stats.lock_wait.count()},
              {"lock_contentions", stats.lock_contentions},
              {"connections", stats.connections},
              {"connections_ever", stats.connections_ever},
              {"log_lines", stats.log_lines},
              {"log_bytes", stats.log_bytes}}
      .dump();
}

Result<ServerStats> parse_stats(std::string_view json_text) {
  try {
    const Json json = Json::parse(json_text);
    ServerStats stats;
    stats.requests = json.at("requests");
    stats.answered = json.at("answered");
    stats.cancelled = json.at("cancelled");
    stats.in_flight = json.at("in_flight");
    stats.holds = json.at("holds");
    stats.lock_threads_short = json.at("lock_threads_short");
    stats.hedges = json.at("hedges");
    stats.lock_wait = Duration{json.at("lock_wait_ns").get<std::int64_t>()};
    stats.lock_contentions = json.at("lock_contentions");
    stats.connections = json.at("connections");
    stats.connections_ever = json.at("connections_ever");
    stats.log_lines = json.at("log_lines");
    stats.log_bytes = json.at("log_bytes");
    return stats;
  } catch (const Json::exception& error) {
    return fail(ErrorKind::kInternal,
                fmt::format("the server's figures cannot be read: {}", error.what()));
  }
}

int run_work_server(const WorkModel& model, std::uint16_t port) {
  net::Loop loop;
  net::SocketTransport transport(loop);
  WorkServer server(model, transport, loop.timers(),
                    [&loop](UniqueFunction<void()> task) { loop.post(std::move(task)); });
  const Result<io::HostPort> at = server.listen(port);
  if (!at) {
    std::fprintf(stderr, "tailward: %s\n", at.error().message.c_str());
    return 2;
  }
  std::printf("port %u\n", static_cast<unsigned>(at->port));
  std::fflush(stdout);
  const ParentWatch parent([&loop] { loop.stop(); });
  const auto signals = loop.on_signals({SIGINT, SIGTERM}, [&loop](int) { loop.stop(); });
  loop.run();
  return 0;
}

}  // namespace tailward::faults
