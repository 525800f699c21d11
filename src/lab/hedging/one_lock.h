// What the experiments on one contended lock share: `falsification`, `three-layer` and `cost`.
//
// Thread safety: pure functions.
#pragma once

#include <string>

#include "lab/context.h"
#include "lab/hedging/arm.h"
#include "lab/hedging/hedging_result.h"

namespace tailward::lab {

// Article A's arm: 50 in flight, `shards` locks; hedged after 50 ms without a budget, or not at
// all.
ArmSpec lock_arm(std::string name, int shards, bool hedged, const Context& context);
// The adaptive policy in front of the same lock, with a budget (a share of the requests). It runs
// longer than the articles' arms and all of it counts: it learns, tries hedging in turns with none,
// and decides.
ArmSpec adaptive_lock_arm(std::string name, int shards, double budget, const Context& context);

report::Check check_layer(std::string name, const ArmResult& arm, findings::Layer layer);
// What hedging alone does to one lock: the same claims in all three experiments. Adds nothing if
// one of the arms "none" and "fixed" has not run.
void check_one_lock(HedgingResult& result);
// Says that a cancelled request still takes its turn in the lock.
void note_lock_semantics(HedgingResult& result);

}  // namespace tailward::lab
