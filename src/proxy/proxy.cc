#include "proxy/proxy.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "proxy/admin.h"

namespace tailward::proxy {
namespace {

hedge::RouteConfig route_config(const Options& options) {
  hedge::RouteConfig config;
  config.policy = options.policy;
  config.budget.share = options.budget;
  config.dry_run = options.dry_run;
  config.auto_off = options.auto_off;
  // Nor the few that a budget has from the start.
  if (options.budget <= 0) config.budget.burst = config.budget.floor = 0;
  config.seed = options.seed;
  return config;
}

client::ClientOptions client_options(const Options& options) {
  client::ClientOptions client;
  client.pool.max_connections = options.host_connections_max;
  client.pool.max_idle = options.host_connections_max;
  client.pool.max_waiting = options.host_waiting_max;
  client.pool.idle_timeout = options.host_idle_timeout;
  return client;
}

net::ServerOptions server_options(const Options& options) {
  net::ServerOptions server;
  server.max_connections = options.connections_max;
  return server;
}

}  // namespace

Proxy::Proxy(io::Transport& transport, io::Timers& timers, Options options)
    : transport_(transport),
      timers_(timers),
      options_(std::move(options)),
      started_at_(timers.now()),
      client_(transport, timers, route_config(options_), options_.to, client_options(options_)),
      requests_(client_, options_),
      server_(
          transport, timers, [this](net::CallRef call) { requests_.begin(std::move(call)); },
          server_options(options_)),
      admin_(transport, timers, [this](const net::CallRef& call) { answer_admin(*this, *call); }) {
  TAILWARD_CHECK(!options_.to.empty());
}

Result<void> Proxy::listen() {
  // The listener is the proxy's own, so that a drain can stop accepting before it closes anything.
  Result<std::unique_ptr<io::Listener>> listener = transport_.listen(
      options_.listen,
      [this](std::unique_ptr<io::Stream> stream) { server_.serve(std::move(stream)); });
  if (!listener) return fail(listener.error().in("--listen"));
  listener_ = std::move(*listener);
  if (options_.admin) {
    Result<io::HostPort> bound = admin_.listen(*options_.admin);
    if (!bound) return fail(bound.error().in("--admin"));
    admin_local_ = std::move(*bound);
  }
  return {};
}

void Proxy::drain(UniqueFunction<void(std::size_t)> done) {
  if (requests_.closing) return;
  requests_.closing = true;
  drained_ = std::move(done);
  listener_.reset();
  grace_until_ = timers_.now() + std::min(kDrainGrace, options_.drain_timeout);
  drain_timeout_ =
      timers_.after(options_.drain_timeout, [this] { drained(server_.counters().in_flight); });
  drain_step();
}

void Proxy::drain_step() {
  constexpr Duration kStep = std::chrono::milliseconds(10);
  if (server_.counters().connections > 0 && timers_.now() < grace_until_) {
    drain_step_ = timers_.after(kStep, [this] { drain_step(); });
    return;
  }
  server_.drain([this] { drained(0); });
}

void Proxy::drained(std::size_t cut) {
  drain_step_.cancel();
  drain_timeout_.cancel();
  if (UniqueFunction<void(std::size_t)> done = std::exchange(drained_, nullptr)) done(cut);
}

}  // namespace tailward::proxy
