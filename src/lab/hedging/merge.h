// Several runs of the same arm as one: what `--runs N` shows.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>

#include "hedge/planning/policy.h"
#include "hedge/proof/proof.h"
#include "lab/hedging/arm.h"

namespace tailward::lab {

// Adds a further run to those before it. What merging means for each field:
// - Counts, sums and histograms add up, and so do `seconds`, CPU time and allocations.
// - Peaks (memory) and the error rate are the worst run's.
// - Medians and rates are means, weighted by the requests of each run.
// - `proof` and `plan`: see below. A run without one leaves the other's as it is.
// - `off_after_seconds` is the latest; empty if hedging stayed on in one of the runs.
// - `timeline`: the runs follow each other. The points of this run come behind those before it,
//   shifted by the seconds of the runs so far.
// - The name, `hedging`, the published figures and `fanout` are the first run's. The verdict is not
//   merged: judge the merged arm.
void merge(ArmResult& into, ArmResult&& run);

// The runs measured the same thing independently, so their effects are pooled: the mean, weighted
// by the samples (requests of the control group, pairs of slices, pairs of attempts), with an
// interval whose half-widths add up in squares, weighted alike. Samples add up. An effect that only
// one run knows is that run's; a saving has an interval only if all runs have one. Harm in one run
// is harm.
void merge(hedge::Proof& into, const hedge::Proof& run);

// The mean plan, weighted by requests: a stage's probability is its mean over all runs (0 where a
// run does not have the stage), its delay the mean over the attempts that the stage would send.
void merge(hedge::Plan& into, std::uint64_t into_requests, const hedge::Plan& run,
           std::uint64_t run_requests);

}  // namespace tailward::lab
