// What the engine itself costs: one unhedged request, one record, one reading of the plan, one
// quantile, one plan.
//
//   bench/run hot-path [--json FILE]      (- for standard output; the table goes to standard error)
//
// Each figure is the median over batches of many calls, with the quartiles of the batches beside
// it, and the number of allocations that the batches made, counted by a replaced operator new.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/file.h"
#include "base/heap_count/heap_count.h"
#include "base/rng.h"
#include "hedge/engine/race.h"
#include "hedge/planning/planner.h"
#include "net/real_clock.h"
#include "report/json.h"

namespace tailward {
namespace {

using namespace std::chrono_literals;

// Batches are far shorter than a time slice, so that on a busy machine most of them are
// undisturbed.
constexpr int kBatches = 1001;
constexpr Duration kBatch = 200us;
constexpr int kCalls = 20'000;  // of the warm-up, and values that are drawn before

struct Measured {
  std::string name;
  double ns = 0;
  double low = 0;  // quartiles of the batches
  double high = 0;
  double allocations = 0;  // of one call
  double bar = 0;
};

// Keeps a value from being optimised away.
template <class T>
void keep(const T& value) {
  asm volatile("" : : "r,m"(value) : "memory");
}

template <class F>
Measured measure(std::string name, double bar, F&& call) {
  const TimePoint warm = net::real_now();
  for (int i = 0; i < kCalls; ++i) call(i);
  const double rough_ns = static_cast<double>((net::real_now() - warm).count()) / kCalls;
  const int calls = std::clamp(
      static_cast<int>(static_cast<double>(kBatch.count()) / (rough_ns + 1)), 20, kCalls);

  std::vector<double> ns;
  ns.reserve(kBatches);
  const std::uint64_t before = heap_use().allocations;
  for (int batch = 0; batch < kBatches; ++batch) {
    const TimePoint start = net::real_now();
    for (int i = 0; i < calls; ++i) call(i);
    ns.push_back(static_cast<double>((net::real_now() - start).count()) / calls);
  }
  const std::uint64_t allocations = heap_use().allocations - before;
  std::sort(ns.begin(), ns.end());
  return {std::move(name),
          ns[kBatches / 2],
          ns[kBatches / 4],
          ns[3 * kBatches / 4],
          static_cast<double>(allocations) / (static_cast<double>(kBatches) * calls),
          bar};
}

// The reference benchmark's law: what the engine sees in earnest.
std::vector<Duration> latencies() {
  Rng rng(1);
  std::vector<Duration> values;
  for (int i = 0; i < kCalls; ++i) {
    const double ms = rng.lognormal(5, 2) * (rng.chance(0.05) ? 10 : 1);
    values.push_back(from_ms(ms));
  }
  return values;
}

// One unhedged request: admit, plan, arm, finish, record; with all that the policy keeps.
Measured unhedged_request(const std::string& name, const hedge::Policy& policy,
                          const std::vector<Duration>& values) {
  hedge::RouteConfig config;
  config.policy = policy;
  hedge::Route route(config);
  for (const char* host : {"a", "b", "c"}) (void)route.add_host(host);
  TimePoint now{1s};
  const auto request = [&](int i) {
    now += 10us;
    hedge::Race race(route);
    const hedge::Actions began = race.start({}, now);
    keep(began.size());
    // Answered before the delay, as nineteen of twenty are.
    const Duration latency = std::min<Duration>(values[static_cast<std::size_t>(i)], 8ms);
    const hedge::Actions ended = race.on_outcome(0, {}, now + latency);
    keep(ended.size());
  };
  // As in earnest, stragglers included, so that there is something to plan for.
  for (int i = 0; i < kCalls; ++i) {
    now += 10us;
    hedge::Race race(route);
    static_cast<void>(race.start({}, now));
    static_cast<void>(race.on_outcome(0, {}, now + values[static_cast<std::size_t>(i)]));
  }
  for (int tick = 0; tick < 3; ++tick) route.tick(now += config.tick);
  // Without a delay there would be no timer to arm, and the figures would flatter.
  TAILWARD_CHECK(route.plan_board().read().stages >= 1);
  return measure(name, 100, request);
}

std::vector<Measured> run() {
  const std::vector<Duration> values = latencies();
  const auto value = [&values](int i) { return values[static_cast<std::size_t>(i)]; };
  std::vector<Measured> results;
  using Kind = hedge::Policy::Kind;
  results.push_back(
      unhedged_request("unhedged-request", {.kind = Kind::kAdaptive, .copies = 2}, values));
  results.push_back(unhedged_request("unhedged-quantile", {.kind = Kind::kQuantile}, values));

  stats::Survival survival;
  results.push_back(measure("record", 10, [&](int i) { survival.record(value(i)); }));
  keep(survival.weight());
  stats::Histogram histogram;
  results.push_back(measure("record-histogram", 10, [&](int i) { histogram.record(value(i)); }));
  keep(histogram.quantile(0.5).count());

  hedge::PlanBoard board;
  board.publish({.stages = 1, .stage = {hedge::Stage{8ms, 1}}});
  results.push_back(measure("read-plan", 20, [&](int) {
    const hedge::Plan plan = board.read();
    keep(plan.stage[0].delay.count());
  }));

  // A spread as wide as the scale: every bucket holds something, losers among it.
  stats::Survival wide;
  Rng rng(2);
  for (int i = 0; i < 200'000; ++i) {
    const Duration latency{static_cast<std::int64_t>(1000 * std::exp2(rng.uniform(0, 31.745)))};
    rng.chance(0.1) ? wide.record_censored(latency) : wide.record(latency);
  }
  results.push_back(measure("quantile", 2000, [&](int i) {
    keep(wide.quantile(i % 2 == 0 ? 0.99 : 0.9).value_or(Duration{}).count());
  }));

  // Both copies and the furthest quantile: the longest search.
  const stats::Curve curve(wide);
  const hedge::PlannerInput input{
      .first = &curve, .second = &curve, .goal = 0.999, .budget = 0.1, .copies = 2};
  TAILWARD_CHECK(plan_hedges(input).kind == hedge::PlannedHedges::Kind::kStaged);
  results.push_back(measure("plan", 1'000'000,
                            [&](int) { keep(plan_hedges(input).plan.stage[0].delay.count()); }));

  return results;
}

// Failures are for the end, as the stream remembers them.
void put(std::FILE* to, const std::string& text) {
  static_cast<void>(std::fwrite(text.data(), 1, text.size(), to));
}

int print(const std::vector<Measured>& results, const std::string& json_path) {
  std::string table = fmt::format("{:<20} {:>10} {:>18} {:>12} {:>10}\n", "what", "ns", "quartiles",
                                  "allocations", "bar ns");
  bool ok = true;
  report::Json json{{"tailward", TAILWARD_VERSION},
                    {"command", "bench/run hot-path"},
                    {"seed", 1},
                    {"started", net::wall_time_iso8601()},
                    {"partial", false},
                    {"results", report::Json::array()}};
  for (const Measured& one : results) {
    const bool good = one.bar <= 0 || (one.ns <= one.bar && one.allocations == 0);
    ok = ok && good;
    table += fmt::format("{:<20} {:>10.1f} {:>18} {:>12.4f} {:>10} {}\n", one.name, one.ns,
                         fmt::format("{:.1f}–{:.1f}", one.low, one.high), one.allocations,
                         one.bar > 0 ? fmt::format("≤ {:.0f}", one.bar) : "", good ? "" : "✗");
    json["results"].push_back({{"name", one.name},
                               {"ns", one.ns},
                               {"ns_low", one.low},
                               {"ns_high", one.high},
                               {"allocations", one.allocations},
                               {"bar_ns", one.bar}});
  }
  // JSON on standard output stays alone there.
  put(json_path == "-" ? stderr : stdout, table);
  if (json_path == "-") put(stdout, report::to_text(json));
  if (!json_path.empty() && json_path != "-") {
    const Result<void> written = write_file_atomically(json_path, report::to_text(json));
    if (!written) {
      put(stderr, fmt::format("bench: {}\n", written.error().message));
      return 2;
    }
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    put(stderr, "bench: standard output took no more\n");
    return 2;
  }
  return ok ? 0 : 1;
}

}  // namespace
}  // namespace tailward

int main(int argc, char** argv) {
  std::string json;
  if (argc == 3 && std::string(argv[1]) == "--json") {
    json = argv[2];
  } else if (argc != 1) {
    tailward::put(stderr, "usage: bench/run hot-path [--json FILE]\n");
    return 2;
  }
  return tailward::print(tailward::run(), json);
}
