#include <fmt/format.h>

#include <iterator>

#include "proxy/admin.h"

namespace tailward::proxy {
namespace {

// Seconds; the bucket without a bound is added.
constexpr double kBounds[] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                              0.25,  0.5,    1,     2.5,  5,     10};

class Page {
 public:
  void head(std::string_view name, std::string_view type, std::string_view help) {
    fmt::format_to(std::back_inserter(text_), "# HELP {} {}\n# TYPE {} {}\n", name, help, name,
                   type);
  }
  template <class Value>
  void sample(std::string_view name, std::string_view labels, const Value& value) {
    text_ += name;
    if (!labels.empty()) text_.append("{").append(labels).append("}");
    fmt::format_to(std::back_inserter(text_), " {}\n", value);
  }
  template <class Value>
  void single(std::string_view name, std::string_view type, std::string_view help,
              const Value& value) {
    head(name, type, help);
    sample(name, "", value);
  }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

void add_durations(Page& page, const stats::Histogram& durations) {
  constexpr std::string_view kName = "tailward_request_duration_seconds";
  page.head(kName, "histogram", "From the first byte of a request to the beginning of its answer.");
  const std::string bucket = fmt::format("{}_bucket", kName);
  for (const double bound : kBounds) {
    const std::uint64_t above = durations.count_above(from_ms(bound * 1e3));
    page.sample(bucket, fmt::format("le=\"{:g}\"", bound), durations.count() - above);
  }
  page.sample(bucket, "le=\"+Inf\"", durations.count());
  page.sample(fmt::format("{}_sum", kName), "",
              durations.mean_ns() * static_cast<double>(durations.count()) / 1e9);
  page.sample(fmt::format("{}_count", kName), "", durations.count());
}

void add_hedging(Page& page, const hedge::Counters& counters) {
  page.single("tailward_requests_total", "counter", "Requests that were sent on to a host.",
              counters.requests);
  page.head("tailward_attempts_total", "counter",
            "Attempts sent to hosts; each request has one primary.");
  page.sample("tailward_attempts_total", "kind=\"primary\"", counters.attempts - counters.hedges);
  page.sample("tailward_attempts_total", "kind=\"hedge\"", counters.hedges);
  page.single("tailward_hedge_wins_total", "counter", "Requests answered by a hedge.",
              counters.hedge_wins);
  page.head("tailward_hedges_denied_total", "counter",
            "Hedges that were due and not sent, by the reason.");
  for (std::size_t i = 0; i < hedge::kDeniedCount; ++i) {
    const std::string_view reason = to_string(static_cast<hedge::Denied>(i));
    page.sample("tailward_hedges_denied_total", fmt::format("reason=\"{}\"", reason),
                counters.denied[i]);
  }
  page.single("tailward_superseded_total", "counter", "Attempts cancelled because another one won.",
              counters.superseded);
  page.single("tailward_wasted_seconds_total", "counter",
              "Time that superseded attempts had been running for.", to_seconds(counters.wasted));
}

}  // namespace

std::string metrics_text(Proxy& proxy) {
  Page page;
  hedge::Route& route = proxy.client().route();
  add_hedging(page, route.counters());
  page.single("tailward_brownout", "gauge", "1 while hedging is held up because all is slow.",
              route.overload().state() == hedge::Overload::State::kOverloaded ? 1 : 0);
  page.single("tailward_hedging_off", "gauge",
              "1 while hedging has switched itself off because it did harm.",
              route.off_since() ? 1 : 0);
  page.single("tailward_hosts_on_probation", "gauge", "Hosts that are slower than the pool.",
              route.overload().state() == hedge::Overload::State::kOverloaded
                  ? 0
                  : route.hosts().shifted());
  const Figures& figures = proxy.figures();
  page.head("tailward_answers_total", "counter",
            "Answers begun towards clients, by the class of their status.");
  for (std::size_t i = 2; i < figures.answers.size(); ++i) {
    page.sample("tailward_answers_total", fmt::format("class=\"{}xx\"", i), figures.answers[i]);
  }
  page.sample("tailward_answers_total", "class=\"other\"", figures.answers[Figures::kOther]);
  add_durations(page, figures.durations);
  page.single("tailward_requests_in_flight", "gauge", "Requests without a whole answer.",
              proxy.in_flight());
  page.single("tailward_client_connections", "gauge", "Open connections of clients.",
              proxy.server().counters().connections);
  return page.take();
}

}  // namespace tailward::proxy
