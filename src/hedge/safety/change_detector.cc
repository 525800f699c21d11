#include "hedge/safety/change_detector.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace tailward::hedge {

ChangeScale::ChangeScale(double normal, double shifted, double threshold) {
  TAILWARD_CHECK(normal > 0 && normal < shifted && shifted < 1 && threshold > 0);
  longer_ = static_cast<float>(std::log(shifted / normal));
  shorter_ = static_cast<float>(std::log((1 - shifted) / (1 - normal)));
  threshold_ = static_cast<float>(threshold);
}

void ChangeDetector::sample(bool longer, const ChangeScale& scale) {
  if (scale.threshold_ == 0) return;
  const float step = longer ? scale.longer_ : scale.shorter_;
  sum_ = std::max(0.0F, sum_ + (shifted_ ? -step : step));
  if (sum_ < (shifted_ ? scale.threshold_ / 2 : scale.threshold_)) return;
  shifted_ = !shifted_;
  sum_ = 0;
}

}  // namespace tailward::hedge
