#include "lab/tcp/nodelay_reqresp.h"

#include <fmt/format.h>

#include <algorithm>
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

// How many rounds at a round-trip time, and how many in one turn.
struct PathPlan {
  Duration rtt;
  std::uint64_t rounds;
  std::uint64_t block;
};

// The article's medians on loopback, µs.
struct ArticleRow {
  std::size_t size;
  double nodelay_us;
  double nagle_us;
};
constexpr std::array<ArticleRow, 4> kArticle{
    {{32, 42, 39}, {64, 40, 40}, {512, 40, 40}, {4096, 38, 37}}};

Result<TcpResult> run(Context& context) {
  const bool quick = context.quick;
  const std::vector<PathPlan> plans{{0ms, quick ? 1000U : 5000U, 25},
                                    {1ms, quick ? 200U : 5000U, 50},
                                    {10ms, quick ? 40U : 200U, 10}};
  std::vector<Duration> rtts;
  std::uint64_t steps = 0;
  for (const PathPlan& plan : plans) {
    rtts.push_back(plan.rtt);
    steps += static_cast<std::uint64_t>(context.runs) * plan.rounds + kCountedRounds;
  }
  TcpRun run(context, steps * kArticle.size() * 2);
  Result<std::vector<TcpPlace>> places = run.places(rtts);
  if (!places) return fail(places.error());
  std::vector<TcpArm> arms;
  std::vector<std::vector<RoundVariant>> variants;  // those of one place and size
  for (const TcpPlace& place : *places) {
    for (const ArticleRow& article : kArticle) {
      variants.push_back({{"nodelay", true, {article.size}, article.size},
                          {"nagle", false, {article.size}, article.size}});
      for (const RoundVariant& variant : variants.back()) {
        arms.push_back(arm_for(variant, place.rtt()));
        arms.back().name = tcp_arm_name(variant.option, article.size, place.rtt());
        if (place.rtt() != Duration{0}) continue;
        arms.back().article.median_ms =
            (variant.nodelay ? article.nodelay_us : article.nagle_us) / 1000;
      }
    }
  }
  for (int i = 0; i < context.runs && !run.stopped(); ++i) {
    for (std::size_t at = 0; at < variants.size() && !run.stopped(); ++at) {
      TcpPlace& place = (*places)[at / kArticle.size()];
      const auto plan = std::find_if(plans.begin(), plans.end(),
                                     [&](const PathPlan& one) { return one.rtt == place.rtt(); });
      const Result<void> ran = run_variants(place, variants[at], plan->rounds, plan->block, run,
                                            std::span(arms).subspan(at * 2, 2));
      if (!ran) return fail(ran.error());
    }
  }
  TcpResult result = run.finish(std::move(arms));
  result.checks = nodelay_reqresp_checks(result.arms);
  if (result.ok()) {
    result.verdict.layer = findings::Layer::kHealthy;
    result.verdict.sentence =
        "With one write for each request and each response, Nagle has nothing to hold back: the "
        "option makes no difference, with or without round-trip time.";
  }
  return result;
}

}  // namespace

std::vector<report::Check> nodelay_reqresp_checks(std::span<const TcpArm> arms) {
  std::vector<report::Check> checks;
  for (const TcpArm& nagle : arms) {
    const TcpArm* nodelay = find_arm(arms, "nodelay", nagle.size, nagle.rtt);
    if (nagle.option != "nagle" || nodelay == nullptr) continue;
    checks.push_back(check_between(
        fmt::format("{} B, {}: Nagle's P50 ÷ NODELAY's", nagle.size, rtt_text(nagle.rtt)),
        paired_ratio(nagle.medians, nodelay->medians), 0.85, 1.15));
  }
  return checks;
}

Experiment nodelay_reqresp() {
  return {.name = "nodelay-reqresp",
          .title = "One write for each request: does NODELAY matter?",
          .about =
              "one write each way, with NODELAY and with Nagle, at round-trip times of 0, 1 and "
              "10 ms",
          .arms = tcp_arm_names({"nodelay", "nagle"}, {32, 64, 512, 4096}, {0ms, 1ms, 10ms}),
          .about_time = "about 75 s, 10 with --quick",
          .run = [](Context& context) { return any_result(run(context)); }};
}

}  // namespace tailward::lab
