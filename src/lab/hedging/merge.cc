#include "lab/hedging/merge.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

namespace tailward::lab {
namespace {

double mean(double a, double weight_a, double b, double weight_b) {
  const double weight = weight_a + weight_b;
  return weight > 0 ? (a * weight_a + b * weight_b) / weight : a;
}

Duration mean(Duration a, double weight_a, Duration b, double weight_b) {
  return from_ms(mean(to_ms(a), weight_a, to_ms(b), weight_b));
}

// The half-width of a weighted mean of two independent estimates: their errors add up in squares.
// Pooling run by run gives the same as pooling all runs at once, since weight × half-width is the
// root of a sum of squares.
double pooled_half(double a, double weight_a, double b, double weight_b) {
  const double weight = weight_a + weight_b;
  return weight > 0 ? std::hypot(a * weight_a, b * weight_b) / weight : a;
}

// An estimate with the ends of its interval, which need not be symmetric.
struct Estimate {
  double value;
  double low;
  double high;
};

Estimate pool(const Estimate& a, double weight_a, const Estimate& b, double weight_b) {
  const double value = mean(a.value, weight_a, b.value, weight_b);
  return {value, value - pooled_half(a.value - a.low, weight_a, b.value - b.low, weight_b),
          value + pooled_half(a.high - a.value, weight_a, b.high - b.value, weight_b)};
}

void pool(Duration& value, Duration& low, Duration& high, double weight, const Estimate& run,
          double run_weight) {
  const Estimate pooled = pool({to_ms(value), to_ms(low), to_ms(high)}, weight, run, run_weight);
  value = from_ms(pooled.value);
  low = from_ms(pooled.low);
  high = from_ms(pooled.high);
}

void merge_saving(hedge::Saving& into, double weight, const hedge::Saving& run, double run_weight) {
  into.control = mean(into.control, weight, run.control, run_weight);
  into.hedged = mean(into.hedged, weight, run.hedged, run_weight);
  pool(into.saved, into.low, into.high, weight, {to_ms(run.saved), to_ms(run.low), to_ms(run.high)},
       run_weight);
  into.bounded = into.bounded && run.bounded;
}

void merge_switchback(hedge::SwitchbackEffect& into, const hedge::SwitchbackEffect& run) {
  if (!run.known) return;
  if (!into.known) {
    into = run;
    return;
  }
  const auto weight = static_cast<double>(into.pairs);
  const auto run_weight = static_cast<double>(run.pairs);
  pool(into.p50, into.p50_low, into.p50_high, weight,
       {to_ms(run.p50), to_ms(run.p50_low), to_ms(run.p50_high)}, run_weight);
  if (into.p99_known && run.p99_known) {
    pool(into.p99, into.p99_low, into.p99_high, weight,
         {to_ms(run.p99), to_ms(run.p99_low), to_ms(run.p99_high)}, run_weight);
  } else if (run.p99_known) {
    into.p99 = run.p99;
    into.p99_low = run.p99_low;
    into.p99_high = run.p99_high;
    into.p99_known = true;
  }
  into.p50_without = mean(into.p50_without, weight, run.p50_without, run_weight);
  into.extra_load = mean(into.extra_load, weight, run.extra_load, run_weight);
  into.pairs += run.pairs;
}

void merge_dependence(hedge::DependenceEstimate& into, const hedge::DependenceEstimate& run) {
  if (run.pairs <= 0) return;
  if (into.pairs <= 0) {
    into = run;
    return;
  }
  const Estimate pooled = pool({into.ratio, into.low, into.high}, into.pairs,
                               {run.ratio, run.low, run.high}, run.pairs);
  into.ratio = pooled.value;
  into.low = pooled.low;
  into.high = pooled.high;
  into.slow = mean(into.slow, into.pairs, run.slow, run.pairs);
  into.pairs += run.pairs;
}

void merge_heap(HeapUse& into, const HeapUse& run) {
  into.allocations += run.allocations;
  into.allocated_bytes += run.allocated_bytes;
  into.peak_bytes = std::max(into.peak_bytes, run.peak_bytes);
}

void append(std::vector<TimelinePoint>& into, double seconds, std::vector<TimelinePoint>&& run) {
  for (TimelinePoint& point : run) {
    point.seconds += seconds;
    into.push_back(point);
  }
}

// The figures that are neither sums nor peaks. REQUIRES: `into` has not yet the run's requests.
void merge_means(ArmResult& into, const ArmResult& run) {
  const auto weight = static_cast<double>(into.requests);
  const auto run_weight = static_cast<double>(run.requests);
  if (into.first_median && run.first_median) {
    into.first_median = mean(*into.first_median, weight, *run.first_median, run_weight);
  }
  if (into.baseline_rate && run.baseline_rate) {
    into.baseline_rate = mean(*into.baseline_rate, weight, *run.baseline_rate, run_weight);
  }
  if (into.plan && run.plan) {
    merge(*into.plan, into.requests, *run.plan, run.requests);
  } else if (run.plan) {
    into.plan = run.plan;
  }
  if (into.proof && run.proof) {
    merge(*into.proof, *run.proof);
  } else if (run.proof) {
    into.proof = run.proof;
  }
  if (into.off_after_seconds && run.off_after_seconds) {
    into.off_after_seconds = std::max(*into.off_after_seconds, *run.off_after_seconds);
  } else {
    into.off_after_seconds.reset();
  }
}

}  // namespace

void merge(hedge::Proof& into, const hedge::Proof& run) {
  const auto weight = static_cast<double>(into.control_requests);
  const auto run_weight = static_cast<double>(run.control_requests);
  for (std::size_t i = 0; i < into.savings.size() && run_weight > 0; ++i) {
    if (weight > 0) {
      merge_saving(into.savings[i], weight, run.savings[i], run_weight);
    } else {
      into.savings[i] = run.savings[i];
    }
  }
  into.control_requests += run.control_requests;
  merge_switchback(into.switchback, run.switchback);
  merge_dependence(into.dependence, run.dependence);
  into.harm = into.harm || run.harm;
}

void merge(hedge::Plan& into, std::uint64_t into_requests, const hedge::Plan& run,
           std::uint64_t run_requests) {
  const auto weight = static_cast<double>(into_requests);
  const auto run_weight = static_cast<double>(run_requests);
  const int stages = std::max(into.stages, run.stages);
  for (int i = 0; i < stages; ++i) {
    hedge::Stage& stage = into.stage[static_cast<std::size_t>(i)];
    const hedge::Stage& other = run.stage[static_cast<std::size_t>(i)];
    const double here = i < into.stages ? stage.probability : 0;
    const double there = i < run.stages ? other.probability : 0;
    stage.delay = mean(stage.delay, weight * here, other.delay, run_weight * there);
    stage.probability = mean(here, weight, there, run_weight);
  }
  into.stages = stages;
  // 0 is unknown, not short.
  if (into.fresh_median == Duration{0}) into.fresh_median = run.fresh_median;
  if (run.fresh_median > Duration{0}) {
    into.fresh_median = mean(into.fresh_median, weight, run.fresh_median, run_weight);
  }
}

void merge(ArmResult& into, ArmResult&& run) {
  into.partial = into.partial || run.partial;
  merge_means(into, run);
  append(into.timeline, into.seconds, std::move(run.timeline));
  into.error_rate = std::max(into.error_rate, run.error_rate);
  into.requests += run.requests;
  into.failed += run.failed;
  into.latency.merge(run.latency);
  into.call_latency.merge(run.call_latency);
  into.counters += run.counters;
  into.server += run.server;
  into.server_peak_bytes = std::max(into.server_peak_bytes, run.server_peak_bytes);
  into.server_cpu_seconds += run.server_cpu_seconds;
  merge_heap(into.heap, run.heap);
  into.connections_opened += run.connections_opened;
  into.seconds += run.seconds;
}

}  // namespace tailward::lab
