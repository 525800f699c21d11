// The rules, one for each cause: does what recurred in the packets, together with what the sockets
// say, amount to it, and how certainly? Whether it matters is for the contrast to say.
//
// Thread safety: pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "diag/analysis.h"
#include "diag/contrast.h"
#include "diag/network_diagnosis.h"

namespace tailward::diag {

// All patterns of some kinds, as one. The worst of them speaks for the others.
struct Recurrence {
  std::vector<const StallPattern*> patterns;  // the most costly first; not empty
  std::uint64_t count = 0, counterexamples = 0, connections = 0, after_full = 0, first_data = 0;
  std::uint64_t timeouts = 0, probes = 0, fast = 0, spurious = 0;
  Duration total{};
  [[nodiscard]] const StallPattern& worst() const { return *patterns.front(); }
};
std::optional<Recurrence> recurrence(const NetworkEvidence& evidence, Kinds which);

// What a rule says; empty: this is not it. cause, certainty, sentence, evidence and missing are
// filled in.
using Judgement = std::optional<Finding>;
Judgement judge_nagle(const Recurrence& seen, const NetworkEvidence& evidence);
Judgement judge_small_writes(const Recurrence& seen, const NetworkEvidence& evidence);
Judgement judge_cork(const Recurrence& seen, const NetworkEvidence& evidence);
Judgement judge_send_buffer(const Recurrence& seen, const NetworkEvidence& evidence);
Judgement judge_receive_window(const Recurrence& seen, const NetworkEvidence& evidence);
Judgement judge_slow_reader(const Recurrence& seen, const NetworkEvidence& evidence);
Judgement judge_loss(const Recurrence& seen, const NetworkEvidence& evidence);
// syn-loss or listen-overflow.
Judgement judge_syn(const Recurrence& seen, const NetworkEvidence& evidence);
Judgement judge_first_turn(const Recurrence& seen, const NetworkEvidence& evidence);
Judgement judge_wire(const Recurrence& seen, const NetworkEvidence& evidence);

// What a rule begins with: a finding in the layer of causes, remedy and verify still to come.
Finding found(Cause cause, Certainty certainty, std::string sentence);

// From sockets, listeners and counters alone, or from RSTs: findings that no stall shows.
std::vector<Finding> judge_without_stalls(const NetworkEvidence& evidence);

// Fills in remedy and verify.
void advise(Finding& finding);

}  // namespace tailward::diag
