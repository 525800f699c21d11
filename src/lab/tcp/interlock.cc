#include "lab/tcp/interlock.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <string>
#include <utility>

#include "lab/checks.h"
#include "lab/tcp/rounds.h"
#include "lab/tcp/run.h"
#include "lab/tcp/tcp_result.h"

namespace tailward::lab {
namespace {

using namespace std::chrono_literals;

constexpr std::array<Duration, 3> kRtts{0ms, 1ms, 10ms};

findings::Statement verdict_on(std::span<const TcpArm> arms) {
  findings::Statement verdict;
  const TcpArm* worst = nullptr;
  for (const TcpArm& arm : arms) {
    if (arm.option == "nagle") worst = &arm;
  }
  if (worst == nullptr) return verdict;
  verdict.layer = findings::Layer::kCause;
  verdict.sentence = fmt::format(
      "With RTT {:g} ms a request of two small writes takes {:.1f} ms: the second write waits for "
      "the ACK of the first, and the server delays that ACK because it waits for the rest.",
      to_ms(worst->rtt), worst->median_ms());
  verdict.evidence = {{"TCP_NODELAY ends the wait, and so does one write for each request"},
                      {"the delayed ACK is a timer of 40 ms: no faster network shortens it"}};
  return verdict;
}

Result<TcpResult> run(Context& context) {
  const std::uint64_t rounds = context.quick ? 30 : 100;
  const std::vector<RoundVariant> variants{{"nagle", false, {32, 32}, 64},
                                           {"nodelay", true, {32, 32}, 64},
                                           {"one-write", false, {64}, 64}};
  const auto runs = static_cast<std::uint64_t>(context.runs);
  TcpRun run(context, kRtts.size() * variants.size() * (runs * rounds + kCountedRounds));
  Result<std::vector<TcpPlace>> places = run.places({kRtts.begin(), kRtts.end()});
  if (!places) return fail(places.error());
  std::vector<TcpArm> arms;
  for (const TcpPlace& place : *places) {
    for (const RoundVariant& variant : variants) {
      arms.push_back(arm_for(variant, place.rtt()));
      arms.back().name = tcp_arm_name(variant.option, 0, place.rtt());
    }
  }
  for (int i = 0; i < context.runs && !run.stopped(); ++i) {
    for (std::size_t at = 0; at < places->size() && !run.stopped(); ++at) {
      // Not in turns: a connection that is idle for longer than its retransmission timeout gets
      // quick ACKs again (tcp_event_data_recv() in the kernel), and shows no interlock meanwhile.
      const std::span<TcpArm> here = std::span(arms).subspan(at * variants.size(), variants.size());
      const Result<void> ran = run_variants((*places)[at], variants, rounds, rounds, run, here);
      if (!ran) return fail(ran.error());
    }
  }
  TcpResult result = run.finish(std::move(arms));
  result.shows_curves = true;
  result.verdict = verdict_on(result.arms);
  result.checks = interlock_checks(result.arms);
  return result;
}

}  // namespace

std::vector<report::Check> interlock_checks(std::span<const TcpArm> arms) {
  std::vector<report::Check> checks;
  for (const TcpArm& arm : arms) {
    const double rtt = to_ms(arm.rtt);
    const std::string name = fmt::format("{}, {}: P50 in ms", arm.option, rtt_text(arm.rtt));
    // The delayed ACK is 40 ms, or 44 with jiffies of 4 ms; two round trips come on top.
    checks.push_back(arm.option == "nagle" ? check_between(name, arm.median_ms(), 35, 60 + 2 * rtt)
                                           : check_between(name, arm.median_ms(), 0, rtt + 1));
  }
  return checks;
}

Experiment interlock() {
  return {
      .name = "interlock",
      .title = "Two small writes and a read: Nagle against delayed ACK",
      .about = "write, write, read with Nagle, with NODELAY and as one write: the step of 40 ms",
      .arms = tcp_arm_names({"nagle", "nodelay", "one-write"}, {0}, {kRtts.begin(), kRtts.end()}),
      .about_time = "about 25 s, 10 with --quick",
      .run = [](Context& context) { return any_result(run(context)); }};
}

}  // namespace tailward::lab
