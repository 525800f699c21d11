// Does hedging pay on this route, and what does it cost? Everything that is known, as figures.
//
// Plain data.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "hedge/proof/control_group.h"
#include "hedge/proof/switchback.h"
#include "hedge/proof/tail_dependence.h"

namespace tailward::hedge {

struct ProofConfig {
  double control_share = 0.01;  // of eligible requests, never hedged
  Duration control_window = std::chrono::minutes(10);
  SwitchbackConfig switchback;
};

inline constexpr std::array<double, 4> kProofQuantiles{0.5, 0.9, 0.99, 0.999};

struct Proof {
  std::array<Saving, kProofQuantiles.size()> savings;
  std::uint64_t control_requests = 0;
  SwitchbackEffect switchback;
  DependenceEstimate dependence;
  bool harm = false;  // hedging does harm, beyond doubt (kHarmConfidence)
};

}  // namespace tailward::hedge
