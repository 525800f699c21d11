#include "lab/experiment.h"

#include <fmt/format.h>

#include <algorithm>

namespace tailward::lab {

void merge_runs(ArmResult& into, ArmResult&& run) {
  into.partial = into.partial || run.partial;
  // The medians and rates of the runs so far and of this one, each run weighing the same by its
  // requests.
  const double weight =
      into.requests + run.requests == 0
          ? 0
          : static_cast<double>(run.requests) / static_cast<double>(into.requests + run.requests);
  const auto mean = [weight](double before, double now) {
    return before + (now - before) * weight;
  };
  if (into.first_median && run.first_median) {
    into.first_median = from_ms(mean(to_ms(*into.first_median), to_ms(*run.first_median)));
  }
  if (into.baseline_rate && run.baseline_rate) {
    into.baseline_rate = mean(*into.baseline_rate, *run.baseline_rate);
  }
  into.error_rate = std::max(into.error_rate, run.error_rate);
  into.requests += run.requests;
  into.failed += run.failed;
  into.latency.merge(run.latency);
  into.call_latency.merge(run.call_latency);
  into.counters += run.counters;
  into.server.requests += run.server.requests;
  into.server.cancelled += run.server.cancelled;
  into.server.lock_wait += run.server.lock_wait;
  into.server.lock_contentions += run.server.lock_contentions;
  into.server.log_lines += run.server.log_lines;
  into.server.log_bytes += run.server.log_bytes;
  into.server.connections_ever += run.server.connections_ever;
  into.server_peak_bytes = std::max(into.server_peak_bytes, run.server_peak_bytes);
  into.server_cpu_seconds += run.server_cpu_seconds;
  into.heap.allocations += run.heap.allocations;
  into.heap.allocated_bytes += run.heap.allocated_bytes;
  into.heap.peak_bytes = std::max(into.heap.peak_bytes, run.heap.peak_bytes);
  into.connections_opened += run.connections_opened;
  into.seconds += run.seconds;
}

namespace {

const std::vector<std::optional<Duration>> kRtts{
    std::chrono::milliseconds(0), std::chrono::milliseconds(1), std::chrono::milliseconds(10)};

// The arms of a TCP experiment: every option with every size at every round-trip time.
std::vector<std::string> arm_names(const std::vector<std::string>& options,
                                   const std::vector<std::size_t>& sizes,
                                   std::vector<std::optional<Duration>> rtts) {
  if (rtts.empty()) rtts = {std::nullopt};
  std::vector<std::string> names;
  for (const auto& rtt : rtts) {
    for (const std::size_t size : sizes) {
      for (const std::string& option : options) names.push_back(tcp_arm_name(option, size, rtt));
    }
  }
  return names;
}

std::string format_number(double value) { return fmt::format("{:.3g}", value); }

report::Check make_check(std::string name, bool ok, double value, std::string bound) {
  report::Check check;
  check.name = std::move(name);
  check.ok = ok;
  check.value = format_number(value);
  check.bound = std::move(bound);
  check.number = value;
  return check;
}

}  // namespace

bool ExperimentResult::ok() const {
  return !partial &&
         std::all_of(checks.begin(), checks.end(), [](const auto& check) { return check.ok; });
}

const ArmResult* ExperimentResult::find(std::string_view arm) const {
  const auto found =
      std::find_if(arms.begin(), arms.end(), [&](const auto& one) { return one.name == arm; });
  return found == arms.end() ? nullptr : &*found;
}

const std::vector<Experiment>& experiments() {
  static const std::vector<Experiment> kExperiments{
      {"falsification",
       "Hedging lowers P99; does it cure the lock?",
       "one lock, with and without hedging: the P99 falls while the lock gets worse",
       {"none", "fixed"},
       "about 15 s",
       run_falsification},
      {"three-layer",
       "Treat the symptom, or the cause first?",
       "one lock and sixteen, without hedging, with a fixed delay, and adaptively",
       {"none", "fixed", "adaptive", "sharded-fixed", "sharded-adaptive"},
       "about 60 s",
       run_three_layer},
      {"cost",
       "What hedging costs besides requests",
       "memory, allocations, connections, log lines and spans of hedging before a contended lock",
       {"none", "fixed", "adaptive"},
       "about 15 s",
       run_cost},
      {"fanout",
       "One node in a hundred is slow: how many requests are?",
       "requests that wait for N nodes, live up to 100, in virtual time up to 10,000",
       {"n1", "n10", "n50", "n100", "n1000", "n10000"},
       "about 80 s",
       run_fanout},
      {"production",
       "The production story: green on the client, red on the servers",
       "an order query over 25 calls: before, hedged at P95, and cured",
       {"before", "hedged-p95", "cured"},
       "about 70 s",
       run_production},
      {"reference",
       "The reference benchmark of hedging libraries",
       "lognormal latency with 5 % stragglers: no hedging, fixed delays, the learned P90, adaptive",
       {"none", "static-10", "static-50", "quantile-90", "adaptive"},
       "about 100 s",
       run_reference,
       true},
      {"drift",
       "When the service drifts: does hedging notice, and let go?",
       "a brown-out, a slow host, little traffic, failing hosts: how hedging takes each",
       {"fixed", "quantile", "adaptive"},
       "about 8 min, 6 with --quick",
       run_drift},
      {"nodelay-batch", "Many small writes one way: does NODELAY help?",
       "small writes one way, with NODELAY and with Nagle: time, segments, system calls",
       arm_names({"nodelay", "nagle"}, {64, 512, 4096}, {}), "about 5 s", run_nodelay_batch},
      {"nodelay-reqresp", "One write for each request: does NODELAY matter?",
       "one write each way, with NODELAY and with Nagle, at round-trip times of 0, 1 and 10 ms",
       arm_names({"nodelay", "nagle"}, {32, 64, 512, 4096}, kRtts), "about 75 s, 10 with --quick",
       run_nodelay_reqresp},
      {"interlock", "Two small writes and a read: Nagle against delayed ACK",
       "write, write, read with Nagle, with NODELAY and as one write: the step of 40 ms",
       arm_names({"nagle", "nodelay", "one-write"}, {0}, kRtts), "about 25 s, 10 with --quick",
       run_interlock},
      {"buffers", "Buffers pinned small: what is left of the throughput?",
       "socket buffers from 8 KiB to 1 MiB and the kernel's own, at 0, 1 and 10 ms",
       arm_names({"default", "8KiB", "64KiB", "256KiB", "1MiB"}, {0}, kRtts),
       "about 45 s, 30 with --quick", run_buffers},
  };
  return kExperiments;
}

Result<const Experiment*> find_experiment(std::string_view name) {
  std::string names;
  for (const Experiment& experiment : experiments()) {
    if (experiment.name == name) return &experiment;
    names += (names.empty() ? "" : ", ") + experiment.name;
  }
  return fail(ErrorKind::kInvalid, fmt::format("there is no experiment '{}'", name),
              "one of: " + names);
}

Result<ExperimentResult> run_arms(const std::vector<ArmSpec>& specs, Context& context) {
  ExperimentResult result;
  const auto stopped = [&context] {
    context.interrupted = context.interrupted || (context.stop_asked && context.stop_asked());
    return context.interrupted;
  };
  for (int run = 0; run < context.runs && !stopped(); ++run) {
    for (std::size_t i = 0; i < specs.size() && !stopped(); ++i) {
      ArmSpec spec = specs[i];
      spec.model.seed += static_cast<std::uint64_t>(run);
      spec.route.seed += static_cast<std::uint64_t>(run);
      if (context.arm_begins) context.arm_begins(spec.name);
      Result<ArmResult> arm = run_arm(spec, context);
      if (!arm) return fail(arm.error());
      if (arm->requests == 0 && stopped()) break;  // ended before it began to count
      const ArmResult* none = result.find("none");
      if (arm->hedging) arm->verdict = judge_arm(*arm, none);
      if (context.arm_done) context.arm_done(*arm, none);
      if (run == 0) {
        result.arms.push_back(std::move(*arm));
      } else {
        merge_runs(result.arms[i], std::move(*arm));
      }
    }
  }
  result.partial = stopped();
  const ArmResult* unhedged = result.find("none");
  for (ArmResult& arm : result.arms) {
    if (arm.hedging) arm.verdict = judge_arm(arm, unhedged);
  }
  std::uint64_t failed = 0;
  for (const ArmResult& arm : result.arms) failed += arm.failed;
  result.checks.push_back(make_check("every request was answered (failed)", failed == 0,
                                     static_cast<double>(failed), "0"));
  return result;
}

double ratio(double value, double base) { return base > 0 ? value / base : 0; }

report::Check check_above(std::string name, double value, double bound) {
  return make_check(std::move(name), value > bound, value, "> " + format_number(bound));
}

report::Check check_below(std::string name, double value, double bound) {
  return make_check(std::move(name), value < bound, value, "< " + format_number(bound));
}

report::Check check_between(std::string name, double value, double low, double high) {
  return make_check(std::move(name), value >= low && value <= high, value,
                    fmt::format("{} to {}", format_number(low), format_number(high)));
}

}  // namespace tailward::lab
