// The engine's figures as JSON: what it plans, what it has proved, why it decided as it did. Times
// in milliseconds, shares 0…1; what is not known is null.
//
// Thread safety: pure functions.
#pragma once

#include "hedge/engine/decisions.h"
#include "hedge/engine/route.h"
#include "hedge/proof/proof.h"
#include "report/json.h"

namespace tailward::hedge_report {

// {"stages":[{"delay_ms","probability"}],"extra_load","goal_without_ms","goal_with_ms"}
report::Json plan_json(const hedge::PlannedHedges& planned);
report::Json plan_json(const hedge::Plan& plan);

// {"control":{"requests","saved":[{"quantile","control_ms","hedged_ms","saved_ms","low_ms",
//   "high_ms"}]},"switchback":{"pairs","p50_effect_ms","p50_low_ms","p50_high_ms",…},
//   "dependence":{"ratio","low","high","pairs"}}
report::Json proof_json(const hedge::Proof& proof);

// The last requests, the newest first: when, how long, hedged or why not.
report::Json decisions_json(const hedge::Route& route, TimePoint now);

}  // namespace tailward::hedge_report
