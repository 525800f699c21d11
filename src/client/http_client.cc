#include "tailward/http_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <future>
#include <list>
#include <span>
#include <utility>

#include "base/check.h"
#include "client/client.h"
#include "findings/statement.h"
#include "http/codec.h"
#include "net/loop.h"
#include "net/loop_thread.h"
#include "net/real_clock.h"
#include "net/socket_transport.h"

namespace tailward {
namespace {

using Done = UniqueFunction<void(Result<HttpResponse>)>;

// Longer than any call, and short enough that adding it to a time cannot overflow.
constexpr Duration kDeadlineMax = std::chrono::hours(24 * 365);

struct Config {
  hedge::RouteConfig route;
  client::ClientOptions client;
  std::vector<io::HostPort> hosts;
  Duration deadline{};
  std::size_t response_bytes_max = 0;
};

Result<std::vector<io::HostPort>> read_hosts(const std::vector<std::string>& texts) {
  if (texts.empty()) {
    return fail(ErrorKind::kInvalid, "hosts: there is none",
                "give the servers of the service, each as HOST:PORT");
  }
  if (texts.size() > hedge::kHostsMax) {
    return fail(ErrorKind::kInvalid, fmt::format("hosts: more than {} servers", hedge::kHostsMax),
                "make one client for each part of them");
  }
  std::vector<io::HostPort> hosts;
  for (const std::string& text : texts) {
    Result<io::HostPort> host = client::parse_host(text);
    if (!host) return fail(host.error().in("hosts"));
    hosts.push_back(std::move(*host));
  }
  return hosts;
}

// The clock's nanoseconds differ from one client to the next, in one process and among several.
std::uint64_t fresh_seed() {
  return static_cast<std::uint64_t>(net::real_now().time_since_epoch().count());
}

Result<Config> read_options(const HttpClientOptions& options) {
  Config config;
  Result<std::vector<io::HostPort>> hosts = read_hosts(options.hosts);
  if (!hosts) return fail(std::move(hosts).error());
  const Result<hedge::Policy> policy = hedge::parse_policy(options.policy);
  if (!policy) return fail(policy.error().in("policy"));
  if (!(options.budget >= 0 && options.budget <= 1)) {  // NaN is refused as well
    return fail(ErrorKind::kInvalid, fmt::format("budget: {} is not in 0…1", options.budget),
                "0.05 allows one hedge for every 20 requests");
  }
  if (options.deadline <= Duration{0}) {
    return fail(ErrorKind::kInvalid, "deadline: no call can end in no time",
                "give what a caller waits for at most, such as 10 s");
  }
  if (options.connections_max == 0) {
    return fail(ErrorKind::kInvalid, "connections_max: no call could be sent", "1 or more");
  }
  config.hosts = std::move(*hosts);
  config.route.policy = *policy;
  config.route.budget.share = options.budget;
  // A budget of nothing has no tokens to start with either.
  if (options.budget == 0) config.route.budget.burst = config.route.budget.floor = 0;
  config.route.dry_run = options.dry_run;
  config.route.seed = options.seed.value_or(fresh_seed());
  config.client.pool.max_connections = options.connections_max;
  config.client.pool.max_idle = options.connections_max;
  config.client.pool.max_waiting = 4096;
  // Below the 5 s after which many servers close an idle connection: a POST should not meet that
  // closing, since it may not be sent twice.
  config.client.pool.idle_timeout = std::chrono::seconds(4);
  config.deadline = std::min<Duration>(options.deadline, kDeadlineMax);
  config.response_bytes_max = options.response_bytes_max;
  return config;
}

bool is_target(std::string_view target, std::string_view method) {
  if (target == "*") return method == "OPTIONS";
  return target.starts_with('/') && std::all_of(target.begin(), target.end(), [](char c) {
           return c > ' ' && c < '\x7f' && c != '#';  // a fragment stays with the user agent
         });
}

bool is_framing(std::string_view name) {
  return http::equals_ignoring_case(name, "content-length") ||
         http::equals_ignoring_case(name, "transfer-encoding") ||
         http::equals_ignoring_case(name, "connection");
}

// RFC 9110 §8.6: a method that anticipates a body says so even when the body is empty.
bool anticipates_body(std::string_view method) {
  return method == "POST" || method == "PUT" || method == "PATCH";
}

Result<http::Request> read_head(const HttpRequest& request) {
  http::Request head;
  if (!http::is_token(request.method)) {
    return fail(ErrorKind::kInvalid, fmt::format("\"{}\" is no method", request.method));
  }
  if (request.method == "CONNECT") {
    return fail(ErrorKind::kUnsupported, "CONNECT opens a tunnel, which cannot be hedged");
  }
  if (!is_target(request.target, request.method)) {
    return fail(ErrorKind::kInvalid, fmt::format("\"{}\" is no target", request.target),
                "write the path with its slash in front, percent-encoded; no scheme, no host");
  }
  for (const HttpField& field : request.fields) {
    if (!http::is_token(field.name)) {
      return fail(ErrorKind::kInvalid, fmt::format("\"{}\" is no field name", field.name));
    }
    if (!http::is_field_value(field.value)) {
      return fail(ErrorKind::kInvalid,
                  fmt::format("the value of {} holds what no field may hold", field.name),
                  "no control characters, no white space at either end");
    }
    if (is_framing(field.name)) {
      return fail(ErrorKind::kInvalid, fmt::format("the client writes {} itself", field.name),
                  "leave it out");
    }
    head.fields.add(field.name, field.value);
  }
  if (request.deadline && *request.deadline <= Duration{0}) {
    return fail(ErrorKind::kInvalid, "the deadline of a request must be above 0");
  }
  head.method = request.method;
  head.target = request.target;
  return head;
}

}  // namespace

std::optional<std::string_view> HttpResponse::field(std::string_view name) const {
  for (const HttpField& field : fields) {
    if (http::equals_ignoring_case(field.name, name)) return field.value;
  }
  return std::nullopt;
}

// Everything but the functions called by users belongs to the loop's thread, which `thread_` starts
// last and ends first.
class HttpClient::Core {
 public:
  explicit Core(Config config)
      : deadline_(config.deadline),
        response_bytes_max_(config.response_bytes_max),
        transport_(loop_),
        client_(transport_, loop_.timers(), std::move(config.route), config.hosts,
                std::move(config.client)),
        thread_(loop_) {}
  ~Core() { close(); }

  // Ends every call under way, and those that their callbacks begin.
  void close();
  void send(HttpRequest&& request, Done done);
  Result<HttpResponse> send_and_wait(HttpRequest&& request);
  HttpClientStats stats();

 private:
  class PendingCall;

  void end_all();
  void finish(PendingCall& call, Result<HttpResponse> result);
  void tell(Done& done, Result<HttpResponse> result);
  HttpClientStats stats_now();

  const Duration deadline_;
  const std::size_t response_bytes_max_;
  net::Loop loop_;
  net::SocketTransport transport_;
  client::Client client_;
  std::list<std::unique_ptr<PendingCall>> calls_;
  bool closing_ = false;
  // Calls whose `done` has not returned yet; counted up by any thread, down by the loop's.
  std::atomic<std::size_t> untold_{0};
  net::LoopThread thread_;
};

// One call on the loop: gathers the response and holds it to its deadline and its size.
class HttpClient::Core::PendingCall final : public client::CallHandler {
 public:
  PendingCall(Core& core, Done told, TimePoint deadline)
      : done(std::move(told)), core_(core), deadline_(deadline), call_(core.client_, *this) {}

  void start(http::Request head, std::shared_ptr<const std::string> body,
             std::optional<bool> idempotent) {
    call_.start(std::move(head), std::move(body),
                {.deadline = deadline_, .idempotent = idempotent});
  }

  void on_response_head(http::Response&& head) override {
    response_.status = head.status;
    response_.fields.reserve(head.fields.size());
    for (std::size_t i = 0; i < head.fields.size(); ++i) {
      const http::Fields::Field field = head.fields.at(i);
      response_.fields.push_back({std::string(field.name), std::string(field.value)});
    }
    if (head.body == http::BodyKind::kLength && head.content_length > core_.response_bytes_max_) {
      return too_long();
    }
    // The race keeps the deadline until here; the rest of the body has nobody else to keep it.
    timer_ = core_.client_.timers().at(deadline_, [this] {
      core_.finish(*this, fail(ErrorKind::kTimedOut, "the response was incomplete at the deadline",
                               "allow more time, or ask for less"));
    });
  }
  void on_body(std::span<const char> piece) override {
    if (piece.size() > core_.response_bytes_max_ - response_.body.size()) return too_long();
    response_.body.append(piece.data(), piece.size());
  }
  void on_end() override {
    response_.attempt = call_.answered_by();
    response_.attempts = call_.attempts();
    core_.finish(*this, std::move(response_));
  }
  void on_error(Error error) override { core_.finish(*this, fail(std::move(error))); }

  Done done;
  std::list<std::unique_ptr<PendingCall>>::iterator at;  // in calls_

 private:
  void too_long() {
    core_.finish(*this, fail(ErrorKind::kInvalid,
                             fmt::format("the response's body is longer than {} bytes",
                                         core_.response_bytes_max_),
                             "raise response_bytes_max, or ask for less"));
  }

  Core& core_;
  TimePoint deadline_;
  HttpResponse response_;
  client::Call call_;
  io::Timer timer_;
};

void HttpClient::Core::close() {
  TAILWARD_CHECK(!thread_.is_current());  // a callback would destroy its own client
  thread_.run([this] { end_all(); });
  while (untold_.load() != 0) thread_.run([] {});
}

void HttpClient::Core::end_all() {
  closing_ = true;
  while (!calls_.empty()) {
    finish(*calls_.front(), fail(ErrorKind::kCancelled, "the client was destroyed"));
  }
}

void HttpClient::Core::finish(PendingCall& call, Result<HttpResponse> result) {
  Done done = std::move(call.done);
  calls_.erase(call.at);  // which cancels what is left of its attempts
  tell(done, std::move(result));
}

void HttpClient::Core::tell(Done& done, Result<HttpResponse> result) {
  done(std::move(result));
  --untold_;
}

void HttpClient::Core::send(HttpRequest&& request, Done done) {
  ++untold_;
  Result<http::Request> head = read_head(request);
  if (!head) {
    loop_.post([this, done = std::move(done), error = std::move(head).error()]() mutable {
      tell(done, fail(std::move(error)));
    });
    return;
  }
  const Duration allowed = std::min<Duration>(request.deadline.value_or(deadline_), kDeadlineMax);
  std::shared_ptr<const std::string> body;
  if (!request.body.empty() || anticipates_body(request.method)) {
    body = std::make_shared<const std::string>(std::move(request.body));
  }
  loop_.post([this, head = std::move(*head), body = std::move(body), done = std::move(done),
              idempotent = request.idempotent, deadline = net::real_now() + allowed]() mutable {
    if (closing_) {
      return tell(done, fail(ErrorKind::kCancelled, "the client is being destroyed"));
    }
    PendingCall& call =
        *calls_.emplace_front(std::make_unique<PendingCall>(*this, std::move(done), deadline));
    call.at = calls_.begin();
    call.start(std::move(head), std::move(body), idempotent);
  });
}

Result<HttpResponse> HttpClient::Core::send_and_wait(HttpRequest&& request) {
  TAILWARD_CHECK(!thread_.is_current());  // a callback would wait for itself
  std::promise<Result<HttpResponse>> promise;
  std::future<Result<HttpResponse>> result = promise.get_future();
  send(std::move(request), [promise = std::move(promise)](Result<HttpResponse> got) mutable {
    promise.set_value(std::move(got));
  });
  return result.get();
}

HttpClientStats HttpClient::Core::stats() {
  HttpClientStats stats;
  thread_.run([&] { stats = stats_now(); });
  return stats;
}

HttpClientStats HttpClient::Core::stats_now() {
  HttpClientStats stats;
  hedge::Route& route = client_.route();
  const hedge::Counters& counters = route.counters();
  stats.requests = counters.requests;
  stats.attempts = counters.attempts;
  stats.hedges = counters.hedges;
  stats.hedge_wins = counters.hedge_wins;
  stats.timed_out = counters.timed_out;
  stats.failed = counters.answered_badly;
  stats.trigger_rate = counters.trigger_rate();
  stats.extra_load = counters.extra_load();
  const stats::Histogram latency = route.client_latency(loop_.now());
  if (latency.count() > 0) {
    stats.p50 = latency.quantile(0.50);
    stats.p99 = latency.quantile(0.99);
  }
  hedge::Verdict verdict = client_.verdict();
  stats.verdict = findings::to_string(verdict.layer);
  stats.sentence = std::move(verdict.sentence);
  for (const findings::Evidence& evidence : verdict.evidence) {
    stats.findings.push_back(findings::to_line(evidence));
  }
  return stats;
}

Result<HttpClient> HttpClient::create(HttpClientOptions options) {
  Result<Config> config = read_options(options);
  if (!config) return fail(std::move(config).error());
  try {
    return HttpClient(std::make_unique<Core>(std::move(*config)));
  } catch (const std::exception& failure) {  // of the event loop or the thread
    return fail(ErrorKind::kOverloaded,
                fmt::format("the client's thread could not be started: {}", failure.what()),
                "look at the limits of descriptors and threads: ulimit -n -u");
  }
}

HttpClient::HttpClient(std::unique_ptr<Core> core) : core_(std::move(core)) {}
HttpClient::HttpClient(HttpClient&&) noexcept = default;
HttpClient& HttpClient::operator=(HttpClient&&) noexcept = default;
// Closed while `core_` is still a member that callbacks may go through.
HttpClient::~HttpClient() {
  if (core_ != nullptr) core_->close();
}

Result<HttpResponse> HttpClient::get(std::string target) const {
  return core_->send_and_wait({.target = std::move(target)});
}

Result<HttpResponse> HttpClient::send(HttpRequest request) const {
  return core_->send_and_wait(std::move(request));
}

void HttpClient::send(HttpRequest request, Callback done) const {
  core_->send(std::move(request), std::move(done));
}

HttpClientStats HttpClient::stats() const { return core_->stats(); }

}  // namespace tailward
