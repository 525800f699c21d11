#include "hedge/planning/calibration.h"

#include <algorithm>
#include <cmath>

namespace tailward::hedge {

void Calibration::record(double expected, double asked, Duration elapsed) {
  // Long against a tick of 100 ms, short against the 30 s in which the estimators forget.
  constexpr Duration kHalfLife = std::chrono::seconds(10);
  // 50 hedges vary by a seventh (one standard deviation): fewer would be noise, not calibration.
  constexpr double kKnown = 50;
  // A factor beyond these limits is no late timer: the estimate itself is wrong, and the next plans
  // correct that.
  constexpr double kLowest = 0.7;
  constexpr double kHighest = 1.4;
  const double fade = std::exp2(-to_seconds(elapsed) / to_seconds(kHalfLife));
  expected_ = expected_ * fade + expected;
  asked_ = asked_ * fade + asked;
  factor_ = expected_ < kKnown ? 1 : std::clamp(asked_ / expected_, kLowest, kHighest);
}

}  // namespace tailward::hedge
