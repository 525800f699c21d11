#include "proxy/admin.h"

#include <cmath>
#include <optional>

#include "base/units.h"
#include "findings/statement.h"
#include "hedge_report/hedging_json.h"

namespace tailward::proxy {
namespace {

using report::Json;

using report::ms_or_null;

Json share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? Json() : Json(static_cast<double>(part) / static_cast<double>(whole));
}

// A name in JSON and its quantile.
struct Percentile {
  const char* name;
  double quantile;
};
constexpr Percentile kPercentiles[] = {
    {"p50_ms", 0.5}, {"p95_ms", 0.95}, {"p99_ms", 0.99}, {"p999_ms", 0.999}};

Json percentiles(const stats::Histogram& histogram) {
  Json json;
  for (const Percentile& one : kPercentiles) {
    const bool known = histogram.count() > 0;
    json[one.name] = known ? ms_or_null(histogram.quantile(one.quantile)) : Json();
  }
  json["samples"] = histogram.count();
  return json;
}

// Samples fade with time, so their number is a weight.
Json percentiles(const stats::Survival& survival) {
  Json json;
  for (const Percentile& one : kPercentiles)
    json[one.name] = ms_or_null(survival.quantile(one.quantile));
  json["samples"] = std::llround(survival.weight());
  json["finished"] = std::llround(survival.finished_weight());
  return json;
}

Json pool_json(const net::PoolCounters& pool) {
  return {{"opened", pool.opened},
          {"connect_errors", pool.connect_errors},
          {"reused", pool.reused},
          {"closed", pool.closed},
          {"stale_retries", pool.stale_retries},
          {"cancelled", pool.cancelled},
          {"queued", pool.queued},
          {"limit_hits", pool.limit_hits},
          {"in_use", pool.in_use},
          {"idle", pool.idle},
          {"connecting", pool.connecting},
          {"waiting", pool.waiting}};
}

Json hosts_json(client::Client& client, TimePoint now) {
  Json hosts = Json::array();
  for (std::size_t i = 0; i < client.hosts(); ++i) {
    const auto index = static_cast<hedge::HostIndex>(i);
    const hedge::Host& host = client.route().hosts().at(index);
    const bool known = host.first_attempts != nullptr;
    hosts.push_back({{"name", host.name},
                     {"in_flight", host.in_flight},
                     {"attempts", host.attempts},
                     {"failures", host.failures},
                     {"suspended", host.suspended_until > now},
                     {"on_probation", client.route().hosts().on_probation(index)},
                     {"first_attempt", known ? percentiles(*host.first_attempts) : Json()},
                     {"pool", pool_json(client.pool(index).counters())}});
  }
  return hosts;
}

Json denied_json(const hedge::Counters& counters) {
  Json json;
  for (std::size_t i = 0; i < hedge::kDeniedCount; ++i) {
    json[std::string(to_string(static_cast<hedge::Denied>(i)))] = counters.denied[i];
  }
  return json;
}

Json verdict_json(const hedge::Verdict& verdict) {
  const bool known = verdict.layer != findings::Layer::kUnknown;
  Json json = report::to_json(verdict);
  json["trigger_rate"] = known ? Json(verdict.trigger_rate) : Json();
  json["trigger_low"] = known ? Json(verdict.trigger_low) : Json();
  json["trigger_high"] = known ? Json(verdict.trigger_high) : Json();
  return json;
}

const char* breaker_state(const hedge::Breaker& breaker) {
  switch (breaker.state()) {
    case hedge::Breaker::State::kClosed:
      return "closed";
    case hedge::Breaker::State::kOpen:
      return "open";
    case hedge::Breaker::State::kHalfOpen:
      return "half-open";
  }
  return "unknown";
}

std::optional<Duration> delay_now(const hedge::Route& route) {
  const hedge::Plan plan = route.plan_board().read();
  return plan.stages == 0 ? std::nullopt : std::optional(plan.stage[0].delay);
}

Json route_json(Proxy& proxy) {
  hedge::Route& route = proxy.client().route();
  const TimePoint now = proxy.timers().now();
  const hedge::Counters& counters = route.counters();
  const hedge::Baseline& baseline = route.baseline();
  const bool adaptive = route.config().policy.kind == hedge::Policy::Kind::kAdaptive;
  const std::optional<TimePoint> off = route.off_since();
  return {{"name", route.config().name},
          {"policy", hedge::to_string(route.config().policy)},
          {"budget", route.config().budget.share},
          {"requests", counters.requests},
          {"eligible", counters.eligible},
          {"attempts", counters.attempts},
          {"hedges", counters.hedges},
          {"hedges_after_delay", counters.hedges_after_delay},
          {"hedges_after_failure", counters.hedges_after_failure},
          {"hedged_requests", counters.hedged_requests},
          {"hedge_wins", counters.hedge_wins},
          {"trigger_rate", share(counters.hedged_requests, counters.eligible)},
          {"extra_load", share(counters.hedges, counters.requests)},
          {"denied", denied_json(counters)},
          {"delay_ms", ms_or_null(delay_now(route))},
          {"baseline_delay_ms", ms_or_null(baseline.delay())},
          {"baseline_trigger_rate", baseline.learned() ? Json(baseline.trigger_rate()) : Json()},
          {"breaker", breaker_state(route.breaker())},
          {"budget_balance", route.budget().balance()},
          {"succeeded", counters.succeeded},
          {"failed", counters.failed},
          {"superseded", counters.superseded},
          {"cancelled", counters.cancelled},
          {"wasted_ms", to_ms(counters.wasted)},
          {"answered", counters.answered},
          {"answered_badly", counters.answered_badly},
          {"timed_out", counters.timed_out},
          {"caller_gone", counters.caller_gone},
          {"window_s", to_seconds(route.config().window)},
          {"client", percentiles(route.client_latency(now))},
          {"first_attempt", percentiles(route.first_attempts())},
          {"verdict", verdict_json(route.verdict(now))},
          {"dry_run", route.config().dry_run},
          {"plan", adaptive ? hedge_report::plan_json(route.planned())
                            : hedge_report::plan_json(route.plan_board().read())},
          {"brownout", to_string(route.overload().state())},
          {"off_for_s", off ? Json(to_seconds(now - *off)) : Json()},
          {"proof", adaptive ? hedge_report::proof_json(route.proof(now)) : Json()},
          {"hosts", hosts_json(proxy.client(), now)}};
}

Json server_json(const net::ServerCounters& server) {
  return {{"accepted", server.accepted},
          {"refused", server.refused},
          {"requests", server.requests},
          {"answered", server.answered},
          {"cancelled", server.cancelled},
          {"aborted", server.aborted},
          {"malformed", server.malformed},
          {"truncated", server.truncated},
          {"timed_out", server.timed_out},
          {"idle_closed", server.idle_closed},
          {"early_limit_hits", server.early_limit_hits},
          {"buffered_limit_hits", server.buffered_limit_hits},
          {"connections", server.connections},
          {"in_flight", server.in_flight}};
}

Json proxy_json(const Figures& figures) {
  return {{"bad_gateway", figures.bad_gateway}, {"timed_out", figures.timed_out},
          {"overloaded", figures.overloaded},   {"unsupported", figures.unsupported},
          {"broken_off", figures.broken_off},   {"client_gone", figures.client_gone},
          {"held_up", figures.held_up}};
}

void respond_json(net::ServerCall& call, const Json& json) {
  call.respond(200, "application/json", report::to_text(json));
}

void respond_text(net::ServerCall& call, int status, std::string text) {
  call.respond(status, "text/plain; charset=utf-8", std::move(text));
}

}  // namespace

Json stats_json(Proxy& proxy) {
  const Options& options = proxy.options();
  return {{"tailward", options.version},
          {"command", "proxy"},
          {"pid", options.pid == 0 ? Json() : Json(options.pid)},
          {"seed", options.seed},
          {"uptime_s", to_seconds(proxy.timers().now() - proxy.started_at())},
          {"draining", proxy.draining()},
          {"routes", Json::array({route_json(proxy)})},
          {"proxy", proxy_json(proxy.figures())},
          {"server", server_json(proxy.server().counters())}};
}

Json config_json(const Proxy& proxy) {
  const Options& options = proxy.options();
  Json hosts = Json::array();
  for (const io::HostPort& host : options.to) hosts.push_back(io::to_string(host));
  const std::optional<io::HostPort>& admin = proxy.admin_local();
  return {{"listen", io::to_string(options.listen)},
          {"to", hosts},
          {"admin", admin ? Json(io::to_string(*admin)) : Json()},
          {"policy", hedge::to_string(options.policy)},
          {"budget", options.budget},
          {"dry_run", options.dry_run},
          {"auto_off", options.auto_off},
          {"deadline_ms", ms_or_null(options.deadline)},
          {"drain_timeout_ms", to_ms(options.drain_timeout)},
          {"body_limit_bytes", options.body_limit},
          {"buffered_max_bytes", options.buffered_max},
          {"connections_max", options.connections_max},
          {"host_connections_max", options.host_connections_max},
          {"host_waiting_max", options.host_waiting_max},
          {"host_idle_timeout_ms", to_ms(options.host_idle_timeout)},
          {"seed", options.seed}};
}

void answer_admin(Proxy& proxy, net::ServerCall& call) {
  const http::Request& request = call.request();
  if (request.method != "GET" && request.method != "HEAD") {
    return respond_text(call, 405, "only GET is answered here\n");
  }
  const std::string path = request.target.substr(0, request.target.find('?'));
  if (path == "/healthz") return respond_text(call, 200, "ok\n");
  if (path == "/readyz") {
    return proxy.draining() ? respond_text(call, 503, "draining\n")
                            : respond_text(call, 200, "ready\n");
  }
  if (path == "/stats") return respond_json(call, stats_json(proxy));
  if (path == "/decisions") {
    return respond_json(call, {{"decisions", hedge_report::decisions_json(proxy.client().route(),
                                                                          proxy.timers().now())}});
  }
  if (path == "/config") return respond_json(call, config_json(proxy));
  if (path == "/metrics") {
    return call.respond(200, "text/plain; version=0.0.4; charset=utf-8", metrics_text(proxy));
  }
  respond_text(call, 404, "here are /healthz /readyz /stats /decisions /config /metrics\n");
}

}  // namespace tailward::proxy
