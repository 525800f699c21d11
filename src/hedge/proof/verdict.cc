#include "hedge/proof/verdict.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "stats/interval.h"

namespace tailward::hedge {
namespace {

using findings::Evidence;
using findings::Layer;

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// The rate that decides, with its interval and its name in the sentence.
struct Rate {
  double value = 0;
  stats::ShareInterval interval;
  std::string_view name;
};

Rate deciding_rate(const VerdictInput& input, const VerdictLimits& limits) {
  const auto n = static_cast<double>(input.eligible);
  const auto rate = [&](double value, std::string_view name) {
    return Rate{value, stats::share_interval(value * n, n, limits.confidence), name};
  };
  Rate highest = rate(share(input.hedged, input.eligible), "of the requests were hedged");
  const Rate due =
      rate(share(input.due, input.eligible), "of the requests outlasted their hedge delay");
  const Rate baseline = rate(input.baseline_rate.value_or(0),
                             "of the first attempts are slower than the healthy baseline delay");
  if (due.value > highest.value) highest = due;
  if (baseline.value > highest.value) highest = baseline;
  return highest;
}

// One line for each piece of evidence from the server's side that got worse.
std::vector<Evidence> server_evidence(const VerdictInput& input, const VerdictLimits& limits) {
  std::vector<Evidence> lines;
  if (input.lock_wait_ratio && *input.lock_wait_ratio >= limits.lock_wait_worse) {
    lines.push_back(
        {fmt::format("lock wait per request is {:.1f}× what it is without hedging (limit {:g}×)",
                     *input.lock_wait_ratio, limits.lock_wait_worse)});
  }
  if (input.median && input.baseline_median && input.baseline_median->count() > 0) {
    const double ratio = to_ms(*input.median) / to_ms(*input.baseline_median);
    if (ratio >= limits.median_worse) {
      lines.push_back(
          {fmt::format("the median of first attempts is {:.1f}× its baseline: {} against {}", ratio,
                       format_duration(*input.median), format_duration(*input.baseline_median))});
    }
  }
  return lines;
}

std::string signed_duration(Duration duration) {
  return fmt::format("{}{}", duration < Duration{} ? "−" : "+",
                     format_duration(duration < Duration{} ? -duration : duration));
}

std::string switchback_text(const SwitchbackEffect& effect) {
  return fmt::format("first attempts' P50 {} ({} to {}) of {} with hedging on, for {} extra load",
                     signed_duration(effect.p50), signed_duration(effect.p50_low),
                     signed_duration(effect.p50_high), format_duration(effect.p50_without),
                     format_share(effect.extra_load));
}

std::string dependence_text(const DependenceEstimate& dependence) {
  return fmt::format("a second attempt is slow {:.1f} times as often as any", dependence.ratio);
}

// What only the adaptive policy knows, one figure a line.
void add_proof(const VerdictInput& input, std::vector<Evidence>& lines) {
  if (input.overloaded) {
    lines.push_back({"overload: everything is slower than its baseline, hedging is held back"});
  }
  for (const std::string& host : input.on_probation) {
    lines.push_back({fmt::format("on probation, slower than the pool: {}", host)});
  }
  if (!input.proof) return;
  const Proof& proof = *input.proof;
  for (const Saving& saving : proof.savings) {
    if (!saving.bounded || saving.quantile < 0.99) continue;
    lines.push_back({fmt::format("control group of {}: hedging saves {} at P{:g} ({} to {})",
                                 format_count(proof.control_requests),
                                 signed_duration(saving.saved), saving.quantile * 100,
                                 signed_duration(saving.low), signed_duration(saving.high))});
  }
  if (proof.switchback.known) {
    lines.push_back({fmt::format("switchback, {} pairs of slices: {}", proof.switchback.pairs,
                                 switchback_text(proof.switchback))});
  }
  if (proof.dependence.pairs >= 1) {
    lines.push_back({fmt::format("tail dependence, {:.0f} pairs: {} ({:.1f} to {:.1f})",
                                 proof.dependence.pairs, dependence_text(proof.dependence),
                                 proof.dependence.low, proof.dependence.high)});
  }
}

std::string harm_sentence(const VerdictInput& input) {
  const Proof& proof = *input.proof;
  return fmt::format(
      "The fault is in the servers, not in a tail: {}, so what they wait for is contended; {} "
      "trigger at the baseline, {}. {}: find the cause (tailward diagnose), then hedge.",
      switchback_text(proof.switchback), format_share(input.baseline_rate.value_or(0)),
      dependence_text(proof.dependence),
      input.off_by_verdict ? "Hedging has switched itself off" : "Hedging does harm");
}

Layer layer_of(const Rate& rate, bool evidence_worse, const VerdictLimits& limits) {
  if (rate.interval.low > limits.cause_above) return Layer::kCause;
  if (rate.interval.high < limits.healthy_below) {
    return evidence_worse ? Layer::kWatch : Layer::kHealthy;
  }
  const bool surely_more_than_a_tail = rate.interval.low > limits.healthy_below;
  return evidence_worse && surely_more_than_a_tail ? Layer::kCause : Layer::kWatch;
}

std::string sentence_of(Layer layer, const Rate& rate, double extra_load, bool evidence_worse,
                        const VerdictLimits& limits) {
  const std::string measured = fmt::format("{} {}", format_share(rate.value), rate.name);
  switch (layer) {
    case Layer::kHealthy:
      return fmt::format("Hedging treats a tail: {}, below the {} limit, for {} extra load.",
                         measured, format_share(limits.healthy_below), format_share(extra_load));
    case Layer::kWatch:
      if (evidence_worse) {
        return fmt::format(
            "{}, and the servers' own figures are worse than their baseline: look at them "
            "before trusting the P99.",
            measured);
      }
      return fmt::format(
          "{} (95 % interval {} to {}), not clearly below {} nor above {}: look at the "
          "servers' own figures before trusting the P99.",
          measured, format_share(rate.interval.low), format_share(rate.interval.high),
          format_share(limits.healthy_below), format_share(limits.cause_above));
    case Layer::kCause:
      return fmt::format(
          "The fault is in the servers, not in a tail: {}. Hedging adds {} load to what "
          "is already slow; a better P99 hides it. Find the cause (tailward diagnose), "
          "then hedge.",
          measured, format_share(extra_load));
    case Layer::kUnknown:
    case Layer::kSymptom:
    case Layer::kAmplification:
      break;
  }
  return "Too few requests to judge.";
}

}  // namespace

Verdict judge(const VerdictInput& input, const VerdictLimits& limits) {
  Verdict verdict;
  verdict.trigger_rate = share(input.hedged, input.eligible);
  const stats::ShareInterval trigger = stats::share_interval(
      static_cast<double>(input.hedged), static_cast<double>(input.eligible), limits.confidence);
  verdict.trigger_low = trigger.low;
  verdict.trigger_high = trigger.high;
  if (!input.hedging) {
    verdict.sentence = "Nothing is hedged: the policy is off.";
    return verdict;
  }
  const bool harm = input.proof && (input.off_by_verdict || input.proof->harm);
  if (input.eligible < limits.requests_min && !harm) {
    verdict.sentence = fmt::format("Too few requests to judge: {} of the {} that it takes.",
                                   format_count(input.eligible), format_count(limits.requests_min));
    return verdict;
  }

  const Rate rate = deciding_rate(input, limits);
  const std::vector<Evidence> worse = server_evidence(input, limits);
  const double extra_load =
      std::max(0.0, share(input.attempts, input.requests) - (input.requests > 0 ? 1.0 : 0.0));
  verdict.layer = layer_of(rate, !worse.empty(), limits);
  verdict.sentence = sentence_of(verdict.layer, rate, extra_load, !worse.empty(), limits);
  if (harm) {
    verdict.layer = Layer::kCause;
    verdict.sentence = harm_sentence(input);
  }

  verdict.evidence.push_back({fmt::format(
      "trigger rate {} (95 % interval {} to {}; healthy below {}, cause above {})",
      format_share(verdict.trigger_rate), format_share(trigger.low), format_share(trigger.high),
      format_share(limits.healthy_below), format_share(limits.cause_above))});
  if (input.due > input.hedged) {
    verdict.evidence.push_back(
        {fmt::format("{} outlasted their delay; the rest of those hedges were denied",
                     format_share(share(input.due, input.eligible)))});
  }
  if (input.baseline_rate) {
    verdict.evidence.push_back({fmt::format("trigger rate at the healthy baseline {}",
                                            format_share(*input.baseline_rate))});
  }
  verdict.evidence.push_back({fmt::format("extra load {}", format_share(extra_load))});
  if (input.breaker_open) {
    verdict.evidence.push_back(
        {fmt::format("the breaker has stopped hedging: error rate {} (limit {})",
                     format_share(input.error_rate), format_share(limits.error_rate))});
  } else if (input.error_rate > limits.error_rate) {
    verdict.evidence.push_back(
        {fmt::format("error rate {} (limit {})", format_share(input.error_rate),
                     format_share(limits.error_rate))});
  }
  add_proof(input, verdict.evidence);
  verdict.evidence.insert(verdict.evidence.end(), worse.begin(), worse.end());
  return verdict;
}

}  // namespace tailward::hedge
