#include "diag/network_diagnosis.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "diag/contrast.h"
#include "diag/rules.h"
#include "diag/thresholds.h"

namespace tailward::diag {
namespace {

using Rule = Judgement (*)(const Recurrence&, const NetworkEvidence&);

struct RuleOf {
  Kinds which;
  Rule judge;
};

constexpr RuleOf kRules[] = {
    {kinds(StallKind::kHeldByNagle), judge_nagle},
    {kinds(StallKind::kSmallWrites), judge_small_writes},
    {kinds(StallKind::kCorked), judge_cork},
    {kinds(StallKind::kSendBuffer), judge_send_buffer},
    {kinds(StallKind::kReceiveWindow), judge_receive_window},
    {kinds(StallKind::kZeroWindow), judge_slow_reader},
    {kinds(StallKind::kRetransmission), judge_loss},
    {kinds(StallKind::kSynUnanswered) | kinds(StallKind::kSynDropped), judge_syn},
    {kinds(StallKind::kFirstTurn), judge_first_turn},
    {kinds(StallKind::kWire), judge_wire},
};

bool matters(const Contrast& contrast, const Contrast::Loss& loss) {
  if (loss.slow < thresholds.cost.mean_min) return false;
  const bool heavy = loss.weight >= thresholds.cost.weight_alone ||
                     (loss.weight >= thresholds.cost.weight && loss.slow >= thresholds.cost.amount);
  if (!heavy) return false;
  const std::uint64_t n = contrast.requests();
  if (loss.affected < (n >= thresholds.cost.many ? 3u : n >= thresholds.cost.few ? 2u : 1u))
    return false;
  const Duration gain = contrast.p99() - loss.predicted_p99;
  const bool gains = to_ms(gain) >= thresholds.cost.gain * to_ms(contrast.p99());
  const bool nearly_all =
      static_cast<double>(loss.affected) >= thresholds.cost.nearly_all * static_cast<double>(n);
  return gains || nearly_all || loss.of_all >= thresholds.cost.of_all ||
         to_ms(loss.slow) >= thresholds.cost.lift * to_ms(loss.normal);
}

// Without requests: did it take a good part of the time that was watched?
bool matters_without_requests(const Recurrence& seen, const PacketAnalysis& packets) {
  const Duration watched = packets.last - packets.first;
  return seen.total >= thresholds.cost.amount ||
         to_ms(seen.total) >= thresholds.cost.weight * to_ms(watched);
}

void judge_stalls(const NetworkEvidence& evidence, const Contrast& contrast, Kinds& shown,
                  std::vector<Finding>& findings) {
  for (const RuleOf& rule : kRules) {
    const auto seen = recurrence(evidence, rule.which);
    if (!seen) continue;
    const Contrast::Loss loss = contrast.loss(rule.which);
    const bool requests = contrast.requests() > 0;
    if (requests ? !matters(contrast, loss) : !matters_without_requests(*seen, *evidence.packets)) {
      continue;
    }
    Judgement judged = rule.judge(*seen, evidence);
    if (!judged) continue;
    shown |= rule.which;
    judged->cost = seen->total;
    judged->share_of_slow = loss.share_of_slow;
    if (requests) {
      judged->predicted_p99 = loss.predicted_p99;
      judged->evidence.push_back(
          {fmt::format("{} of the slow requests have it; it is {} of their time, {} on average "
                       "against {} in the others",
                       format_share(loss.share_of_slow), format_share(loss.weight),
                       format_duration(loss.slow), format_duration(loss.normal))});
    }
    findings.push_back(std::move(*judged));
  }
}

void add_missing_causes(std::vector<Finding> more, std::vector<Finding>& findings) {
  for (Finding& finding : more) {
    const bool known = std::any_of(findings.begin(), findings.end(),
                                   [&](const Finding& f) { return f.cause == finding.cause; });
    // A queue that overflows is also slowly accepted from.
    const bool contained = finding.cause == Cause::kSlowAccept &&
                           std::any_of(findings.begin(), findings.end(), [](const Finding& f) {
                             return f.cause == Cause::kListenOverflow;
                           });
    if (!known && !contained) findings.push_back(std::move(finding));
  }
}

void rank(std::vector<Finding>& findings, Duration p99) {
  std::stable_sort(findings.begin(), findings.end(), [&](const Finding& a, const Finding& b) {
    const Duration gain_a = p99 - a.predicted_p99.value_or(p99);
    const Duration gain_b = p99 - b.predicted_p99.value_or(p99);
    return std::pair(gain_a, a.cost) > std::pair(gain_b, b.cost);
  });
}

std::string verdict(const NetworkDiagnosis& diagnosis, const Contrast& contrast) {
  if (!diagnosis.findings.empty()) {
    const Finding& first = diagnosis.findings.front();
    std::string text = fmt::format("{} ({}): {}", to_string(first.cause),
                                   to_string(first.certainty), first.sentence);
    if (first.predicted_p99 && *first.predicted_p99 < contrast.p99()) {
      text += fmt::format("; without it P99 would be {} instead of {}",
                          format_duration(*first.predicted_p99), format_duration(contrast.p99()));
    }
    return text;
  }
  if (contrast.requests() == 0) return "No requests were seen: nothing can be said of them.";
  if (contrast.think_share() < thresholds.cost.think_share) {
    return fmt::format(
        "No known fault of TCP was found, but only {} of the time of the slow requests (from {}) "
        "passes between the request's last byte and the answer's first: the parts below say where "
        "the rest is.",
        format_share(contrast.think_share()), format_duration(diagnosis.slow_from));
  }
  return fmt::format(
      "TCP is not at fault: of the time of the slow requests (from {}), {} passes between the "
      "request's last byte and the answer's first, above TCP. Look at pools, locks, garbage "
      "collection and what the server itself waits for, and leave the TCP options alone.",
      format_duration(diagnosis.slow_from), format_share(contrast.think_share()));
}

}  // namespace

NetworkDiagnosis diagnose_network(const NetworkEvidence& evidence) {
  NetworkDiagnosis diagnosis;
  const std::span<const Turn> turns =
      evidence.packets == nullptr ? std::span<const Turn>() : evidence.packets->turns;
  const Contrast contrast(turns);
  diagnosis.requests = evidence.packets == nullptr ? 0 : evidence.packets->turns_seen;
  diagnosis.slow_from = contrast.slow_from();
  Kinds shown = 0;
  judge_stalls(evidence, contrast, shown, diagnosis.findings);
  add_missing_causes(judge_without_stalls(evidence), diagnosis.findings);
  for (Finding& finding : diagnosis.findings) advise(finding);
  rank(diagnosis.findings, contrast.p99());
  diagnosis.parts = contrast.parts(shown);
  diagnosis.unexplained = contrast.unexplained();
  diagnosis.sentence = verdict(diagnosis, contrast);
  return diagnosis;
}

}  // namespace tailward::diag
