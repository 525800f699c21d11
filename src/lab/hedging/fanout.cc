#include "lab/hedging/fanout.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <string>
#include <utility>

#include "base/units.h"
#include "lab/hedging/run_arms.h"
#include "sim/fanout.h"
#include "stats/interval.h"

namespace tailward::lab {
namespace {

using namespace std::chrono_literals;

constexpr double kNodeSlow = 0.01;
// No call takes between 100 ms and 1 s; half a second keeps clear of both ends' noise.
constexpr Duration kSlow = 500ms;
// Six arms are checked at once: each gets the level at which all six hold together in 95 % of runs.
constexpr double kArms = 6;

double theory(std::uint64_t n) { return 1 - std::pow(1 - kNodeSlow, static_cast<double>(n)); }

Fanout figures(std::uint64_t n, bool live, std::uint64_t slow, std::uint64_t samples) {
  Fanout fanout;
  fanout.n = n;
  fanout.live = live;
  fanout.slow = slow;
  fanout.share = samples == 0 ? 0 : static_cast<double>(slow) / static_cast<double>(samples);
  const stats::ShareInterval interval =
      stats::share_interval(static_cast<double>(slow), static_cast<double>(samples));
  fanout.low = interval.low;
  fanout.high = interval.high;
  fanout.theory = theory(n);
  return fanout;
}

ArmSpec live_arm(std::size_t n, std::size_t in_flight, const Context& context) {
  ArmSpec spec;
  spec.name = fmt::format("n{}", n);
  // A different seed for every width makes the arms independent samples.
  spec.model = faults::fanout_model(context.seed + n);
  spec.width = n;
  spec.in_flight = in_flight;
  spec.requests = context.quick ? 60 : 200;
  spec.numbered_draws = true;
  return spec;
}

void add_simulated(std::uint64_t n, Context& context, HedgingResult& result) {
  ArmResult arm;
  arm.name = fmt::format("n{}", n);
  const std::uint64_t samples = context.quick ? 60 : 200;
  sim::FanoutResult simulated =
      sim::simulate_fanout(static_cast<std::uint32_t>(n), samples, context.seed + n);
  arm.requests = samples;
  arm.latency = simulated.latency;
  arm.counters.requests = samples * n;
  arm.counters.attempts = samples * n;
  arm.server.requests = samples * n;
  arm.fanout = figures(n, false, simulated.slow, samples);
  result.arms.push_back(std::move(arm));
}

void check_arm(const ArmResult& arm, HedgingResult& result) {
  const double confidence = std::pow(0.95, 1 / kArms);
  const stats::ShareInterval interval = stats::share_interval(
      static_cast<double>(arm.fanout->slow), static_cast<double>(arm.requests), confidence);
  report::Check check;
  check.name = fmt::format("{}: 1 − 0.99^{} lies in the interval of the slow share", arm.name,
                           arm.fanout->n);
  check.ok = interval.low <= arm.fanout->theory && arm.fanout->theory <= interval.high;
  check.value = fmt::format("{:.3f}", arm.fanout->theory);
  check.number = arm.fanout->theory;
  check.bound = fmt::format("{:.3f} to {:.3f}", interval.low, interval.high);
  result.checks.push_back(check);
}

// The layer is "watch" when a request to a hundred nodes is slow ten times as often as one node.
findings::Statement verdict_of_hundred(const ArmResult* hundred) {
  findings::Statement verdict;
  if (hundred == nullptr || hundred->requests == 0) {
    verdict.sentence = "Too few widths were measured to judge.";
    return verdict;
  }
  verdict.layer =
      hundred->fanout->low > 10 * kNodeSlow ? findings::Layer::kWatch : findings::Layer::kHealthy;
  verdict.evidence = {
      {fmt::format("one node is slow in {} of its responses, a request to a hundred in {}",
                   format_share(kNodeSlow), format_share(hundred->fanout->share))}};
  verdict.sentence =
      verdict.layer == findings::Layer::kWatch
          ? "Amplification: every node's own tail is 1 %, and the requests that wait for many of "
            "them "
            "are slow most of the time; a faster median of the nodes would change nothing."
          : "No amplification was seen: a request to a hundred nodes was hardly slower than one "
            "node.";
  return verdict;
}

Result<HedgingResult> run(Context& context) {
  // Several samples at once, with at most 400 calls in flight: samples share nothing but the
  // machine.
  Result<HedgingResult> result = run_arms({live_arm(1, 40, context), live_arm(10, 20, context),
                                           live_arm(50, 8, context), live_arm(100, 4, context)},
                                          context);
  if (!result) return result;
  for (ArmResult& arm : result->arms) {
    const std::uint64_t n = arm.name == "n1" ? 1 : std::stoull(arm.name.substr(1));
    arm.fanout = figures(n, true, arm.latency.count_above(kSlow), arm.requests);
    if (n == 1) arm.published = {.p50_ms = 54.0, .p99_ms = 100.7};
    if (n == 10) arm.published = {.p50_ms = 96.9, .p99_ms = 1975, .slow_share = 0.0956};
    if (n == 50) arm.published = {.p50_ms = 104.4, .p99_ms = 1971, .slow_share = 0.395};
  }
  if (!context.interrupted) {
    add_simulated(1000, context, *result);
    add_simulated(10'000, context, *result);
  }
  for (const ArmResult& arm : result->arms) check_arm(arm, *result);
  result->verdict = verdict_of_hundred(result->find("n100"));
  result->notes.push_back(
      "The checks use the level at which all six intervals hold together in 95 % of runs; the "
      "table shows each "
      "arm's own 95 % interval. The author of the article could not complete N = 100.");
  return result;
}

}  // namespace

Experiment fanout() {
  return {.name = "fanout",
          .title = "One node in a hundred is slow: how many requests are?",
          .about = "requests that wait for N nodes, live up to 100, in virtual time up to 10,000",
          .arms = {"n1", "n10", "n50", "n100", "n1000", "n10000"},
          .about_time = "about 80 s",
          .run = [](Context& context) { return any_result(run(context)); }};
}

}  // namespace tailward::lab
