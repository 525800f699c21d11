#include "hedge/proof/tail_dependence.h"

#include "stats/interval.h"

namespace tailward::hedge {

stats::Curve TailDependence::second(const stats::Curve& fresh) const {
  const double pairs = second_.weight();
  if (pairs <= 0) return fresh;
  return stats::Curve::mix(fresh, stats::Curve(second_), pairs / (pairs + kPrior));
}

DependenceEstimate TailDependence::ratio(const stats::Curve& first) const {
  constexpr double kSlow = 0.9;
  DependenceEstimate dependence;
  dependence.pairs = second_.weight();
  const std::optional<Duration> slow = first.quantile(kSlow);
  if (!slow || dependence.pairs <= 0) return dependence;
  dependence.slow = *slow;
  const double usual = first.above(*slow);
  if (usual <= 0) return dependence;
  const double share = second_.above(*slow);
  const stats::ShareInterval interval =
      stats::share_interval(share * dependence.pairs, dependence.pairs);
  dependence.ratio = share / usual;
  dependence.low = interval.low / usual;
  dependence.high = interval.high / usual;
  return dependence;
}

}  // namespace tailward::hedge
