#include "lab/tcp/nodelay_batch.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <string>
#include <utility>

#include "lab/checks.h"
#include "lab/tcp/run.h"
#include "lab/tcp/tcp_result.h"
#include "lab/tcp/transfer.h"

namespace tailward::lab {
namespace {

using namespace std::chrono_literals;

// Sizes and numbers are the article's.
struct Batch {
  std::size_t size;
  std::uint64_t messages;
  double nodelay_ms;  // the article's
  double nagle_ms;
};
constexpr std::array<Batch, 3> kBatches{
    {{64, 10'000, 126.5, 41.3}, {512, 10'000, 121.9, 39.7}, {4096, 5'000, 42.7, 28.1}}};

TransferPlan batch_plan(const Batch& batch, bool nodelay) {
  TransferPlan plan{batch.size, batch.messages, 30s, tcp_options()};
  plan.options.nodelay = nodelay;
  return plan;
}

findings::Statement verdict_on(std::span<const TcpArm> arms) {
  findings::Statement verdict;
  const TcpArm* nagle = find_arm(arms, "nagle", kBatches[0].size, 0ms);
  const TcpArm* nodelay = find_arm(arms, "nodelay", kBatches[0].size, 0ms);
  if (nagle == nullptr || nodelay == nullptr) return verdict;
  verdict.layer = findings::Layer::kCause;
  verdict.sentence = fmt::format(
      "A stream of 64-byte writes takes {:.1f} ms with NODELAY and {:.1f} ms with Nagle: {:.2f} "
      "and {:.2f} segments for each write.",
      nodelay->median_ms(), nagle->median_ms(), nodelay->counts.segments_per_message(),
      nagle->counts.segments_per_message());
  verdict.evidence = {{"the system calls are the same for both: Nagle saves segments, not calls"},
                      {"writing larger pieces from a buffer in the application saves both"}};
  return verdict;
}

Result<TcpResult> run(Context& context) {
  const std::uint64_t pairs = (context.quick ? 9U : 25U) * static_cast<unsigned>(context.runs);
  TcpRun run(context, kBatches.size() * pairs);
  Result<std::vector<TcpPlace>> places = run.places({0ms});
  if (!places) return fail(places.error());
  TcpPlace& place = places->front();
  std::vector<TcpArm> arms;
  for (const Batch& batch : kBatches) {
    for (const bool nodelay : {true, false}) {
      TcpArm arm;
      arm.option = nodelay ? "nodelay" : "nagle";
      arm.size = batch.size;
      arm.name = tcp_arm_name(arm.option, batch.size, std::nullopt);
      arm.article.median_ms = nodelay ? batch.nodelay_ms : batch.nagle_ms;
      arms.push_back(std::move(arm));
    }
  }
  for (std::size_t at = 0; at < kBatches.size(); ++at) {
    const Batch& batch = kBatches[at];
    run.begin(fmt::format("{} B × {}", batch.size, batch.messages));
    // One more than counts: the first of each warms up.
    for (std::uint64_t pair = 0; pair <= pairs && !run.stopped(); ++pair) {
      for (const std::size_t turn : {0U, 1U}) {
        const std::size_t option = (turn + pair) % 2;  // the options take turns to go first
        Result<Transfer> transfer = run_transfer(place, batch_plan(batch, option == 0), run, false);
        if (!transfer) return fail(transfer.error());
        if (pair > 0 && !run.stopped()) record(*transfer, arms[at * 2 + option]);
      }
      if (pair > 0) run.step();
    }
    for (const std::size_t option : {0U, 1U}) {
      if (run.stopped()) break;
      Result<Transfer> transfer = run_transfer(place, batch_plan(batch, option == 0), run, true);
      if (!transfer) return fail(transfer.error());
      arms[at * 2 + option].counts = transfer->counts;
    }
  }
  TcpResult result = run.finish(std::move(arms));
  result.verdict = verdict_on(result.arms);
  result.checks = nodelay_batch_checks(result.arms);
  return result;
}

}  // namespace

std::vector<report::Check> nodelay_batch_checks(std::span<const TcpArm> arms) {
  std::vector<report::Check> checks;
  for (const TcpArm& nagle : arms) {
    const TcpArm* nodelay = find_arm(arms, "nodelay", nagle.size, nagle.rtt);
    // The article's third size fills most of a segment by itself: there is little to gain.
    if (nagle.option != "nagle" || nodelay == nullptr || nagle.size > 512) continue;
    checks.push_back(check_below(fmt::format("{} B one way: Nagle's time ÷ NODELAY's", nagle.size),
                                 paired_ratio(nagle.medians, nodelay->medians), 1));
  }
  return checks;
}

Experiment nodelay_batch() {
  return {
      .name = "nodelay-batch",
      .title = "Many small writes one way: does NODELAY help?",
      .about = "small writes one way, with NODELAY and with Nagle: time, segments, system calls",
      .arms = tcp_arm_names({"nodelay", "nagle"}, {64, 512, 4096}, {}),
      .about_time = "about 5 s",
      .run = [](Context& context) { return any_result(run(context)); }};
}

}  // namespace tailward::lab
