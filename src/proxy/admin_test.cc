#include "proxy/admin.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "hedge/engine/hosts.h"
#include "proxy/proxy_testing.h"

namespace tailward::proxy {
namespace {

using namespace std::chrono_literals;
using client::answer_hedges;
using client::ignore;
using report::Json;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

class AdminTest : public ProxyFixture {
 protected:
  Json stats() { return Json::parse(body_of(admin("/stats"))); }
  Json route() { return stats()["routes"][0]; }
};

TEST_F(AdminTest, ShowsNullWhereNothingIsKnown) {
  start();
  const Json route = this->route();
  EXPECT_EQ(route["requests"], 0);
  for (const char* const key :
       {"trigger_rate", "extra_load", "delay_ms", "baseline_delay_ms", "baseline_trigger_rate"}) {
    EXPECT_TRUE(route.contains(key)) << key;
    EXPECT_TRUE(route[key].is_null()) << key;
  }
  for (const char* const part : {"client", "first_attempt"}) {
    for (const char* const key : {"p50_ms", "p95_ms", "p99_ms", "p999_ms"}) {
      EXPECT_TRUE(route[part].contains(key)) << part << key;
      EXPECT_TRUE(route[part][key].is_null()) << part << key;
    }
    EXPECT_EQ(route[part]["samples"], 0);
  }
  EXPECT_EQ(route["verdict"]["layer"], "unknown");
  EXPECT_TRUE(route["verdict"]["trigger_rate"].is_null());
}

TEST_F(AdminTest, KeepsTheContractOfStats) {
  service.answer = answer_hedges;
  Options options = hedging();
  options.version = "9.8.7";
  options.pid = 77;
  start(options);
  const auto peer = client();
  for (int i = 0; i < 4; ++i) {
    peer->send(kGet);
    pass(60ms);
  }
  pass(200ms);  // the figures of first attempts are as of the last tick
  const Json all = stats();
  EXPECT_EQ(all["tailward"], "9.8.7");
  EXPECT_EQ(all["command"], "proxy");
  EXPECT_EQ(all["pid"], 77);
  EXPECT_GT(all["uptime_s"], 0.4);
  const Json& route = all["routes"][0];
  EXPECT_EQ(route["name"], "default");
  EXPECT_EQ(route["requests"], 4);
  EXPECT_EQ(route["attempts"], 8);
  EXPECT_EQ(route["hedges"], 4);
  EXPECT_EQ(route["hedge_wins"], 4);
  EXPECT_EQ(route["trigger_rate"], 1.0);
  EXPECT_EQ(route["superseded"], 4);
  EXPECT_EQ(route["delay_ms"], 50.0);
  EXPECT_EQ(route["wasted_ms"], 200.0);
  EXPECT_EQ(route["window_s"], 60.0);
  for (const char* const reason :
       {"budget", "no_other_host", "not_idempotent", "breaker", "brownout"}) {
    EXPECT_EQ(route["denied"][reason], 0) << reason;
  }
  EXPECT_NEAR(route["client"]["p50_ms"].get<double>(), 50, 1);
  EXPECT_NEAR(route["client"]["p99_ms"].get<double>(), 50, 1);
  EXPECT_EQ(route["client"]["samples"], 4);
  // All first attempts were losers: their latency is not known.
  EXPECT_TRUE(route["first_attempt"]["p50_ms"].is_null());
  EXPECT_EQ(route["first_attempt"]["samples"], 4);
  EXPECT_EQ(route["first_attempt"]["finished"], 0);
  EXPECT_TRUE(route["verdict"]["sentence"].is_string());
  EXPECT_TRUE(route["verdict"]["findings"].is_array());
  ASSERT_EQ(route["hosts"].size(), 2U);
  for (const Json& host : route["hosts"]) {
    EXPECT_EQ(host["in_flight"], 0);
    EXPECT_EQ(host["attempts"], 4);
    EXPECT_EQ(host["failures"], 0);
    EXPECT_EQ(host["suspended"], false);
    EXPECT_TRUE(host["pool"].contains("opened"));
  }
  EXPECT_EQ(all["server"]["accepted"], 1);
  EXPECT_EQ(all["server"]["requests"], 4);
}

TEST_F(AdminTest, TellsWhyEachOfTheLastRequestsWasHedgedOrNot) {
  service.answer = ignore;
  start(hedging());
  auto peer = client();
  peer->send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi");
  pass(60ms);
  const Json before = Json::parse(body_of(admin("/decisions")))["decisions"];
  EXPECT_TRUE(before.empty()) << "it is still under way";
  peer.reset();
  pass(10ms);
  const Json after = Json::parse(body_of(admin("/decisions")))["decisions"];
  ASSERT_EQ(after.size(), 1U);
  EXPECT_EQ(after[0]["request"], 1);
  EXPECT_EQ(after[0]["due"], true);
  EXPECT_EQ(after[0]["hedges"], 0);
  EXPECT_EQ(after[0]["denied"], "not_idempotent");
  EXPECT_TRUE(after[0]["winner"].is_null());
}

TEST_F(AdminTest, CountsWhyAHedgeWasDenied) {
  service.answer = ignore;
  start(hedging());
  const auto peer = client();
  peer->send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi");
  pass(60ms);
  EXPECT_EQ(route()["denied"]["not_idempotent"], 1);
  EXPECT_EQ(route()["hosts"].size(), 2U);
  EXPECT_EQ(route()["eligible"], 0);
  EXPECT_TRUE(route()["trigger_rate"].is_null());
}

TEST_F(AdminTest, ShowsTheConfigurationInEffect) {
  Options options = hedging();
  options.deadline = 3s;
  start(options);
  const Json config = Json::parse(body_of(admin("/config")));
  EXPECT_EQ(config["listen"], "127.0.0.1:8080");
  EXPECT_EQ(config["to"], Json::array({"10.0.0.1:80", "10.0.0.2:80"}));
  EXPECT_EQ(config["admin"], "127.0.0.1:9090");
  EXPECT_EQ(config["policy"], "fixed:50ms");
  EXPECT_EQ(config["deadline_ms"], 3000.0);
  EXPECT_EQ(config["body_limit_bytes"], 65'536);
}

// The value of a sample; NaN where there is none.
double sample(const std::string& page, const std::string& name) {
  const std::size_t at = page.find("\n" + name + " ");
  return at == std::string::npos ? std::nan("") : std::stod(page.substr(at + name.size() + 2));
}

TEST_F(AdminTest, WritesMetricsForPrometheus) {
  service.answer = answer_hedges;
  start(hedging());
  const auto peer = client();
  for (int i = 0; i < 3; ++i) {
    peer->send(kGet);
    pass(60ms);
  }
  const std::string answer = admin("/metrics");
  EXPECT_THAT(answer, HasSubstr("Content-Type: text/plain; version=0.0.4"));
  const std::string page = "\n" + body_of(answer);
  EXPECT_EQ(sample(page, "tailward_requests_total"), 3);
  EXPECT_EQ(sample(page, "tailward_attempts_total{kind=\"primary\"}"), 3);
  EXPECT_EQ(sample(page, "tailward_attempts_total{kind=\"hedge\"}"), 3);
  EXPECT_EQ(sample(page, "tailward_superseded_total"), 3);
  EXPECT_EQ(sample(page, "tailward_hedges_denied_total{reason=\"budget\"}"), 0);
  EXPECT_EQ(sample(page, "tailward_answers_total{class=\"2xx\"}"), 3);
  const std::string bucket = "tailward_request_duration_seconds_bucket";
  EXPECT_EQ(sample(page, bucket + "{le=\"0.025\"}"), 0);
  EXPECT_EQ(sample(page, bucket + "{le=\"0.1\"}"), 3);
  EXPECT_EQ(sample(page, bucket + "{le=\"+Inf\"}"), 3);
  EXPECT_EQ(sample(page, "tailward_request_duration_seconds_count"), 3);
  EXPECT_NEAR(sample(page, "tailward_request_duration_seconds_sum"), 0.15, 1e-6);
  // Every name is introduced once, before its samples.
  for (const char* const name :
       {"tailward_requests_total", "tailward_attempts_total", "tailward_hedges_denied_total",
        "tailward_request_duration_seconds"}) {
    const std::size_t type = page.find(std::string("\n# TYPE ") + name + " ");
    EXPECT_NE(type, std::string::npos) << name;
    EXPECT_EQ(page.find(std::string("\n# TYPE ") + name + " ", type + 1), std::string::npos);
    EXPECT_LT(type, page.find(std::string("\n") + name)) << name;
  }
}

TEST_F(AdminTest, CountsAnswersOfAnUnknownClassApart) {
  service.answer = [](const net::CallRef& call, int) { call->respond(699, "text/plain", "odd"); };
  start(unhedged());
  EXPECT_THAT(ask(kGet), StartsWith("HTTP/1.1 699"));
  const std::string page = "\n" + body_of(admin("/metrics"));
  EXPECT_EQ(sample(page, "tailward_answers_total{class=\"other\"}"), 1);
  for (const char* const known : {"2xx", "3xx", "4xx", "5xx"}) {
    EXPECT_EQ(sample(page, fmt::format("tailward_answers_total{{class=\"{}\"}}", known)), 0);
  }
}

TEST_F(AdminTest, ABudgetOfNothingAllowsNoHedgeAtAll) {
  service.answer = ignore;
  Options options = hedging();
  options.budget = 0;
  start(options);
  const auto peer = client();
  peer->send(kGet);
  pass(200ms);
  EXPECT_EQ(service.attempts(), "0");
  const hedge::Counters& counters = proxy->client().route().counters();
  EXPECT_EQ(counters.denied[static_cast<std::size_t>(hedge::Denied::kBudget)], 1U);
}

TEST_F(AdminTest, AnswersHealthAndRefusesTheRest) {
  start();
  EXPECT_THAT(admin("/healthz"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(admin("/readyz"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(admin("/nothing"), StartsWith("HTTP/1.1 404"));
  net::RawPeer peer(connect({"127.0.0.1", 9090}));
  peer.send("POST /stats HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
  settle();
  EXPECT_THAT(peer.received, StartsWith("HTTP/1.1 405"));
}

TEST_F(AdminTest, TheAddressesAreRefusedWithTheOptionsName) {
  start();
  Proxy second(network, timers, proxy->options());
  const Result<void> listening = second.listen();
  ASSERT_FALSE(listening.has_value());
  EXPECT_THAT(listening.error().message, StartsWith("--listen: 127.0.0.1:8080"));
}

class DrainTest : public ProxyFixture {
 protected:
  void drain() {
    proxy->drain([this](std::size_t number) { cut = static_cast<int>(number); });
    settle();
  }
  int cut = -1;  // drained once it is 0 or more
};

TEST_F(DrainTest, EndsAtOnceWhenNobodyIsThere) {
  start(unhedged());
  drain();
  EXPECT_EQ(cut, 0);
  EXPECT_EQ(client(), nullptr);
}

TEST_F(DrainTest, FinishesWhatIsInFlightAndClosesAfterwards) {
  service.answer = ignore;
  start(unhedged());
  const auto peer = client();
  peer->send(kGet);
  settle();
  drain();
  EXPECT_EQ(cut, -1);
  EXPECT_EQ(client(), nullptr) << "new connections are refused";
  EXPECT_THAT(admin("/readyz"), StartsWith("HTTP/1.1 503"));
  EXPECT_THAT(admin("/healthz"), StartsWith("HTTP/1.1 200"));
  pass(5s);
  EXPECT_EQ(cut, -1);
  service.calls[0]->respond(200, "text/plain", "done");
  settle();
  EXPECT_THAT(peer->received, HasSubstr("Connection: close"));
  EXPECT_THAT(peer->received, EndsWith("done"));
  EXPECT_TRUE(peer->ended);
  pass(20ms);
  EXPECT_EQ(cut, 0);
}

TEST_F(DrainTest, AnswersTheRequestThatCrossesWithIt) {
  start(unhedged());
  const auto busy = client();
  const auto idle = client();
  busy->send(kGet);
  settle();
  busy->received.clear();
  drain();
  pass(500ms);
  EXPECT_FALSE(busy->ended);
  busy->send(kGet);
  settle();
  EXPECT_THAT(busy->received, HasSubstr("Connection: close"));
  EXPECT_THAT(busy->received, EndsWith("ok"));
  EXPECT_FALSE(idle->ended);
  pass(500ms);
  EXPECT_TRUE(idle->ended);
  EXPECT_EQ(cut, 0);
}

TEST_F(DrainTest, CutsWhatTakesLongerThanItsTimeout) {
  service.answer = ignore;
  Options options = unhedged();
  options.drain_timeout = 3s;
  start(options);
  const auto first = client();
  const auto second = client();
  first->send(kGet);
  second->send(kGet);
  settle();
  drain();
  pass(3s - 1ns);
  EXPECT_EQ(cut, -1);
  pass(1ns);
  EXPECT_EQ(cut, 2);
}

TEST(OptionsTest, ReadsLists) {
  const auto hosts = parse_hosts("a:1,[::1]:2,:3");
  ASSERT_TRUE(hosts.has_value());
  EXPECT_EQ(*hosts, (std::vector<io::HostPort>{{"a", 1}, {"::1", 2}, {"127.0.0.1", 3}}));
  for (const char* const bad : {"", "a", "a:1,", "a:0", "http://a:1", "a:1 b:2"}) {
    EXPECT_FALSE(parse_hosts(bad).has_value()) << bad;
  }
}

TEST(OptionsTest, TakesAsManyServersAsTheEngineDoes) {
  std::string list = "a:1";
  for (std::size_t i = 1; i < hedge::kHostsMax; ++i) list += ",a:1";
  EXPECT_EQ(parse_hosts(list).value().size(), hedge::kHostsMax);
  const auto hosts = parse_hosts(list + ",a:1");
  ASSERT_FALSE(hosts.has_value());
  EXPECT_EQ(hosts.error().message, "more than 4096 servers");
  EXPECT_FALSE(hosts.error().hint.empty());
}

TEST(OptionsTest, SumsItselfUpInALine) {
  Options options;
  options.to = {{"10.0.0.1", 80}, {"10.0.0.2", 80}};
  EXPECT_EQ(summary(options, {"127.0.0.1", 8080}, io::HostPort{"127.0.0.1", 9090}),
            "listening on 127.0.0.1:8080, to 10.0.0.1:80, 10.0.0.2:80; policy adaptive:p99, "
            "budget 5%, admin 127.0.0.1:9090");
}

}  // namespace
}  // namespace tailward::proxy
