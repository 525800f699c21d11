#include "hedge/safety/budget.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace tailward::hedge {

// Rounded down, so that rounding never adds a token.
Budget::Budget(const BudgetConfig& config, Budget* parent)
    : config_(config),
      parent_(parent),
      deposit_(static_cast<std::int64_t>(std::floor(config.share * kToken * (1 + 1e-12)))),
      burst_(static_cast<std::int64_t>(std::floor(config.burst * kToken))),
      balance_(
          static_cast<std::int64_t>(std::floor(std::min(config.floor, config.burst) * kToken))) {
  TAILWARD_CHECK(config.share >= 0 && config.burst >= 0 && config.floor >= 0);
}

void Budget::request_begins() {
  balance_ = std::min(balance_ + deposit_, burst_);
  ++primaries_;
  if (parent_ != nullptr) parent_->request_begins();
}

void Budget::primary_ends() {
  TAILWARD_CHECK(primaries_ > 0);
  --primaries_;
  if (parent_ != nullptr) parent_->primary_ends();
}

bool Budget::allows() const {
  if (config_.unlimited) return true;
  const double in_flight_max =
      config_.in_flight_share * static_cast<double>(primaries_) + config_.in_flight_floor;
  return balance_ >= kToken && static_cast<double>(hedges_ + 1) <= in_flight_max;
}

bool Budget::could_hedge() const {
  for (const Budget* budget = this; budget != nullptr; budget = budget->parent_) {
    if (!budget->allows()) return false;
  }
  return true;
}

bool Budget::try_hedge() {
  if (!could_hedge()) return false;
  for (Budget* budget = this; budget != nullptr; budget = budget->parent_) {
    if (!budget->config_.unlimited) budget->balance_ -= kToken;
    ++budget->hedges_;
  }
  return true;
}

void Budget::hedge_ends() {
  TAILWARD_CHECK(hedges_ > 0);
  --hedges_;
  if (parent_ != nullptr) parent_->hedge_ends();
}

}  // namespace tailward::hedge
