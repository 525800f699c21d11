#include "proxy_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <csignal>

#include "base/units.h"
#include "console.h"
#include "net/loop.h"
#include "net/socket_transport.h"
#include "proxy/proxy.h"

namespace tailward {
namespace {

constexpr const char* kAbout =
    "Stands before the servers of one HTTP/1.1 service and hedges slow requests: when an answer\n"
    "takes longer than nearly all others do, the request is sent to a second server too, and the\n"
    "first good answer wins. What that brings, what it costs, and whether the fault lies in the\n"
    "servers instead, is said at --admin under /stats.\n";

constexpr const char* kFooter =
    "What is hedged: GET, HEAD, OPTIONS, TRACE, and any request with an Idempotency-Key, unless\n"
    "its body is longer than --body-limit. Everything else goes to one server only. Each attempt\n"
    "carries x-tailward-attempt: 0 is the original, 1 and above are hedges; a request that "
    "arrives\n"
    "with a number above 0 is not hedged again.\n"
    "\n"
    "What the proxy answers itself: 502 no server gave an answer, 503 its own limits, 504 the\n"
    "deadline, 501 CONNECT and Upgrade; each with one line of text. All other answers are the\n"
    "servers', unchanged.\n"
    "\n"
    "Admin address: /healthz  /readyz (503 while draining)  /stats (JSON)  /decisions (JSON:\n"
    "the last requests, and why each was hedged or not)  /config (JSON)  /metrics (Prometheus).\n"
    "\n"
    "Signals: SIGTERM and SIGINT stop accepting, finish what is in flight, and exit; a second one\n"
    "exits at once.\n"
    "\n"
    "Example:\n"
    "  tailward proxy --listen :8080 --to 10.0.0.1:80,10.0.0.2:80 --admin :9090\n"
    "  curl -s localhost:9090/stats\n"
    "\n"
    "Exit status: 0 ended by a signal, 2 it could not be run.";

struct Texts {
  std::string listen = "127.0.0.1:8080";
  std::string to;
  std::string policy = "adaptive:p99";
  std::string budget = "5%";
  std::string admin;
  std::string deadline;
  std::string drain_timeout = "30s";
  std::string body_limit = "64KiB";
};

void add_options(CLI::App& app, Texts& texts, proxy::Options& options) {
  app.add_option("--to", texts.to, "the servers, all of the same service; hedging needs two")
      ->type_name("HOST:PORT[,...]")
      ->required();
  app.add_option("--listen", texts.listen,
                 "where clients connect; :PORT is loopback, 0.0.0.0:PORT every address")
      ->type_name("ADDR")
      ->capture_default_str();
  app.add_option("--policy", texts.policy,
                 "when to hedge: off; fixed:50ms after so long; quantile:0.95 when it\n"
                 "takes longer than such a share of the first attempts does, learned;\n"
                 "adaptive:p99 when that makes the P99 smallest within the budget;\n"
                 "a further :N sends up to N hedges")
      ->type_name("POLICY")
      ->capture_default_str();
  app.add_option("--budget", texts.budget,
                 "hedges per request at most: the extra load that hedging may cause")
      ->type_name("SHARE")
      ->capture_default_str();
  app.add_flag("--dry-run", options.dry_run,
               "decide and count everything, send no hedge: what would have happened");
  app.add_flag("!--no-auto-off", options.auto_off,
               "go on hedging (adaptive) even where that makes the servers slower");
  app.add_option("--admin", texts.admin,
                 "where /healthz, /stats and /metrics are; off if not given")
      ->type_name("ADDR");
  app.add_option("--deadline", texts.deadline,
                 "a request whose answer has not begun by then is answered 504;\n"
                 "none if not given")
      ->type_name("TIME");
  app.add_option("--drain-timeout", texts.drain_timeout,
                 "how long requests in flight may still take after SIGTERM")
      ->type_name("TIME")
      ->capture_default_str();
  app.add_option("--body-limit", texts.body_limit,
                 "the longest request body that is kept, for its request to be hedged")
      ->type_name("SIZE")
      ->capture_default_str();
  app.add_option("--seed", options.seed,
                 "seed of all that is drawn, such as the choice between servers;\n"
                 "the process's id if not given, so that no two proxies keep in step");
}

// Reads `text` into `into`; the error names the option.
template <class Value, class Into>
Result<void> take(const char* option, Result<Value> value, Into& into) {
  if (!value) return fail(value.error().in(option));
  into = std::move(*value);
  return {};
}

Result<Duration> some_time(const std::string& text) {
  Result<Duration> time = parse_duration(text);
  if (time && *time == Duration{0}) {
    return fail(ErrorKind::kInvalid, "0 would answer nothing in time", "leave it out for none");
  }
  return time;
}

Result<io::HostPort> address(const std::string& text) {
  Result<io::HostPort> endpoint = io::parse_host_port(text);
  if (endpoint && endpoint->host.empty()) endpoint->host = "127.0.0.1";
  return endpoint;
}

Result<proxy::Options> read_options(const Texts& texts, proxy::Options options) {
  options.version = TAILWARD_VERSION;
  options.pid = static_cast<std::uint64_t>(::getpid());
  Result<void> read = take("--listen", address(texts.listen), options.listen);
  if (read) read = take("--to", proxy::parse_hosts(texts.to), options.to);
  if (read) read = take("--policy", hedge::parse_policy(texts.policy), options.policy);
  if (read) read = take("--budget", parse_share(texts.budget), options.budget);
  if (read && !texts.admin.empty()) read = take("--admin", address(texts.admin), options.admin);
  if (read && !texts.deadline.empty()) {
    read = take("--deadline", some_time(texts.deadline), options.deadline);
  }
  if (read) {
    read = take("--drain-timeout", parse_duration(texts.drain_timeout), options.drain_timeout);
  }
  if (read) read = take("--body-limit", parse_size(texts.body_limit), options.body_limit);
  if (!read) return fail(std::move(read).error());
  return options;
}

// A log whose reader has gone, or whose disk is full, must not disturb the service or its exit
// status: hence past end_output(), which would report it.
void say(const std::string& line) {
  const std::string text = fmt::format("tailward proxy: {}\n", line);
  const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
  static_cast<void>(written);
}

void end_on_signals(net::Loop& loop, proxy::Proxy& proxy) {
  if (proxy.draining()) {
    say(fmt::format("ended by a second signal, {} requests were cut",
                    proxy.server().counters().in_flight));
    return loop.stop();
  }
  say(fmt::format("draining, {} requests in flight", proxy.server().counters().in_flight));
  proxy.drain([&loop, &proxy](std::size_t cut) {
    if (cut == 0) {
      say("drained");
    } else {
      say(fmt::format("{} requests were cut after {}", cut,
                      format_duration(proxy.options().drain_timeout)));
    }
    loop.stop();
  });
}

}  // namespace

int run_proxy(int argc, const char* const* argv) {
  CLI::App app{kAbout, "tailward proxy"};
  Texts texts;
  proxy::Options flags;
  flags.seed = static_cast<std::uint64_t>(::getpid());
  add_options(app, texts, flags);
  app.footer(kFooter);
  if (const std::optional<int> status = parse_command_line(app, argc, argv)) return *status;
  const Result<proxy::Options> options = read_options(texts, flags);
  if (!options) return complain(options.error());

  net::Loop loop;
  net::SocketTransport transport(loop);
  proxy::Proxy proxy(transport, loop.timers(), *options);
  if (const Result<void> listening = proxy.listen(); !listening) {
    return complain(listening.error());
  }
  const auto signals =
      loop.on_signals({SIGTERM, SIGINT}, [&loop, &proxy](int) { end_on_signals(loop, proxy); });
  say(proxy::summary(proxy.options(), proxy.local(), proxy.admin_local()));
  loop.run();
  return kDone;
}

}  // namespace tailward
