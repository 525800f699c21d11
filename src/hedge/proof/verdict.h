// What the figures mean: is hedging treating a tail, or feeding a cause?
//
// Pure functions of figures; every limit is in VerdictLimits and is named in the sentences.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "findings/statement.h"
#include "hedge/proof/proof.h"

namespace tailward::hedge {

struct VerdictLimits {
  double healthy_below = 0.15;  // trigger rate
  double cause_above = 0.50;
  double error_rate = 0.10;
  double confidence = 0.95;
  std::uint64_t requests_min = 200;
  // Server evidence: how many times its value without hedging makes it count as worse.
  double lock_wait_worse = 2.0;
  double median_worse = 1.5;
};

// The figures of one window. Rates are given as counts, so that their intervals can be known.
struct VerdictInput {
  bool hedging = true;         // false: the policy is off, there is nothing to judge
  bool breaker_open = false;   // or half-open
  std::uint64_t eligible = 0;  // requests that could be hedged
  std::uint64_t hedged = 0;    // requests that got a hedge because their delay had passed
  std::uint64_t due = 0;       // requests whose delay passed, whether or not a hedge was allowed
  std::uint64_t attempts = 0;
  std::uint64_t requests = 0;
  // Share of first attempts longer than the baseline delay; empty while no baseline is known.
  std::optional<double> baseline_rate;
  double error_rate = 0;
  // First attempts' median now and while healthy or unhedged.
  std::optional<Duration> median;
  std::optional<Duration> baseline_median;
  // The server's lock wait per request ÷ the same without hedging.
  std::optional<double> lock_wait_ratio;
  // Of the adaptive policy.
  std::optional<Proof> proof = {};
  bool off_by_verdict = false;                 // hedging has been switched off because it did harm
  bool overloaded = false;                     // hedging is held back: everything is slow
  std::vector<std::string> on_probation = {};  // hosts
};

// Its layer is one of four. kUnknown: too few requests. kHealthy: hedges catch a tail. kWatch: more
// than a tail, or too uncertain to call. kCause: the fault is in the servers; hedging hides it and
// feeds it. The evidence is the figures behind the sentence.
struct Verdict : findings::Statement {
  double trigger_rate = 0;  // hedged ÷ eligible
  double trigger_low = 0;
  double trigger_high = 1;
};

// The layer follows from the highest of the three rates: measured, due, and at the baseline.
// Its interval (Wilson) decides: all of it below healthy_below: healthy; all of it above
// cause_above: cause; anything else: watch. Server evidence that got worse turns healthy into watch
// and watch into cause.
Verdict judge(const VerdictInput& input, const VerdictLimits& limits = {});

}  // namespace tailward::hedge
