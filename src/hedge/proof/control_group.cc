#include "hedge/proof/control_group.h"

#include <cmath>

namespace tailward::hedge {
namespace {

Duration from_ns(double ns) { return Duration{std::llround(ns)}; }

double ns(Duration duration) { return static_cast<double>(duration.count()); }

}  // namespace

Saving saving_between(const stats::Histogram& control, const stats::Histogram& hedged,
                      double quantile, double confidence) {
  Saving saving;
  saving.quantile = quantile;
  if (control.count() == 0 || hedged.count() == 0) return saving;
  saving.control = control.quantile(quantile);
  saving.hedged = hedged.quantile(quantile);
  saving.saved = saving.control - saving.hedged;
  const stats::DurationInterval a = control.quantile_interval(quantile, confidence);
  const stats::DurationInterval b = hedged.quantile_interval(quantile, confidence);
  saving.bounded = a.bounded && b.bounded;
  saving.low =
      saving.saved - from_ns(std::hypot(ns(saving.control - a.low), ns(b.high - saving.hedged)));
  saving.high =
      saving.saved + from_ns(std::hypot(ns(a.high - saving.control), ns(saving.hedged - b.low)));
  return saving;
}

Saving ControlGroup::saving(double quantile, TimePoint now, double confidence) {
  return saving_between(control_.merged(now), hedged_.merged(now), quantile, confidence);
}

}  // namespace tailward::hedge
