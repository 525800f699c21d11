#include "lab/tcp/buffers.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "lab/checks.h"
#include "lab/tcp/run.h"
#include "lab/tcp/tcp_result.h"
#include "lab/tcp/transfer.h"

namespace tailward::lab {
namespace {

using namespace std::chrono_literals;

constexpr std::array<Duration, 3> kRtts{0ms, 1ms, 10ms};

constexpr std::size_t kWriteBytes = 4096;
constexpr std::uint64_t kTransferBytes = 100'000'000;

// The sizes and the figures on loopback are the article's.
struct Pinned {
  std::string_view option;
  std::optional<int> bytes;
  double article_mb_per_s;
};
constexpr std::array<Pinned, 5> kPinned{{{"default", std::nullopt, 578.3},
                                         {"8KiB", 8 << 10, 238.1},
                                         {"64KiB", 64 << 10, 321.7},
                                         {"256KiB", 256 << 10, 546.2},
                                         {"1MiB", 1 << 20, 557.7}}};

TransferPlan buffer_plan(const Pinned& pinned, Duration at_most) {
  TransferPlan plan{kWriteBytes, kTransferBytes / kWriteBytes, at_most, tcp_options()};
  plan.buffers = pinned.bytes;
  return plan;
}

findings::Statement verdict_on(std::span<const TcpArm> arms) {
  findings::Statement verdict;
  const TcpArm* small = find_arm(arms, "8KiB", kWriteBytes, 0ms);
  const TcpArm* free = find_arm(arms, "default", kWriteBytes, 0ms);
  if (small == nullptr || free == nullptr) return verdict;
  verdict.layer = findings::Layer::kCause;
  verdict.sentence = fmt::format(
      "Buffers pinned at 8 KiB carry {:.3g} MB/s on loopback, the kernel's own {:.0f} MB/s.",
      small->throughput(), free->throughput());
  verdict.evidence = {
      {fmt::format(
          "of {} writes at 8 KiB on loopback, {} waited for a timer of the sender's kernel, "
          "200 ms each, {} ACKs were delayed and the window closed {} times: a window "
          "smaller than one segment of loopback is not written into at once",
          small->counts.messages, small->counts.timer_waits, small->counts.delayed_acks,
          small->counts.zero_windows)},
      {"with round-trip time a pinned buffer is a limit: one window in each round trip"},
      {"leaving the sizes to the kernel brings its autotuning back"}};
  return verdict;
}

Result<TcpResult> run(Context& context) {
  const Duration at_most = context.quick ? 2s : 4s;
  const Duration counted_for = 1s;
  const auto runs = static_cast<std::uint64_t>(context.runs);
  TcpRun run(context, kRtts.size() * kPinned.size() * (runs + 1));
  Result<std::vector<TcpPlace>> places = run.places({kRtts.begin(), kRtts.end()}, true);
  if (!places) return fail(places.error());
  std::vector<TcpArm> arms(places->size() * kPinned.size());
  // The last round counts packets, and is shorter.
  for (std::uint64_t round = 0; round <= runs; ++round) {
    const bool counted = round == runs;
    for (std::size_t i = 0; i < arms.size() && !run.stopped(); ++i) {
      TcpPlace& place = (*places)[i / kPinned.size()];
      const Pinned& pinned = kPinned[i % kPinned.size()];
      TcpArm& arm = arms[i];
      arm.option = pinned.option;
      arm.size = kWriteBytes;
      arm.rtt = place.rtt();
      arm.name = tcp_arm_name(arm.option, 0, arm.rtt);
      if (arm.rtt == 0ms) arm.article.mb_per_s = pinned.article_mb_per_s;
      run.begin("arm " + arm.name);
      run.step(0);
      const TransferPlan plan = buffer_plan(pinned, counted ? counted_for : at_most);
      Result<Transfer> transfer = run_transfer(place, plan, run, counted);
      if (!transfer) return fail(transfer.error().in("arm " + arm.name));
      if (counted) {
        arm.counts = transfer->counts;
      } else {
        record(*transfer, arm);
      }
      run.step();
    }
  }
  TcpResult result = run.finish(std::move(arms));
  result.shows_throughput = true;
  result.verdict = verdict_on(result.arms);
  result.checks = buffers_checks(result.arms);
  return result;
}

}  // namespace

std::vector<report::Check> buffers_checks(std::span<const TcpArm> arms) {
  std::vector<report::Check> checks;
  for (const TcpArm& arm : arms) {
    const TcpArm* free = find_arm(arms, "default", arm.size, arm.rtt);
    if (arm.option == "8KiB" && free != nullptr) {
      checks.push_back(
          check_below(fmt::format("8 KiB, {}: throughput ÷ the default's", rtt_text(arm.rtt)),
                      ratio(arm.throughput(), free->throughput()), 0.6));
    }
  }
  for (const TcpArm& arm : arms) {
    if (arm.option == "default" || arm.rtt < 10ms || arm.window_limit() <= 0) continue;
    checks.push_back(check_between(
        fmt::format("{}, {}: steady throughput ÷ (window ÷ RTT)", arm.option, rtt_text(arm.rtt)),
        ratio(arm.steady_throughput(), arm.window_limit()), 0.75, 1.25));
  }
  return checks;
}

Experiment buffers() {
  return {.name = "buffers",
          .title = "Buffers pinned small: what is left of the throughput?",
          .about = "socket buffers from 8 KiB to 1 MiB and the kernel's own, at 0, 1 and 10 ms",
          .arms = tcp_arm_names({"default", "8KiB", "64KiB", "256KiB", "1MiB"}, {0},
                                {kRtts.begin(), kRtts.end()}),
          .about_time = "about 45 s, 30 with --quick",
          .run = [](Context& context) { return any_result(run(context)); }};
}

}  // namespace tailward::lab
