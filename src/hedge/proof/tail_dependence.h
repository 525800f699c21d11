// Does a second attempt help when the first is slow? Measured, not assumed.
//
// Every hedge that was sent because a delay had passed is one observation of Y given that X was
// slow; losers are censored. Where the two wait for the same thing (one lock, one query, one large
// answer), Y is slow whenever X is, and a hedge only adds load.
//
// Thread safety: one loop. 9 KiB.
#pragma once

#include <cstdint>

#include "base/time.h"
#include "stats/curve.h"
#include "stats/survival.h"

namespace tailward::hedge {

// P(second attempt slow | first slow) ÷ P(slow); slow: longer than the slowest tenth of first
// attempts. 1: independent, hedging works.
struct DependenceEstimate {
  double ratio = 1;
  double low = 0;  // 95 %
  double high = 0;
  double pairs = 0;  // observations, decayed; 0: nothing is known
  Duration slow{};
};

class TailDependence {
 public:
  void record(Duration latency, bool censored) {
    censored ? second_.record_censored(latency) : second_.record(latency);
  }
  void decay(double factor) { second_.decay(factor); }

  // The curve of second attempts, shrunk towards `fresh` (independence) while pairs are few: as
  // though kPrior pairs had been seen that behaved like fresh attempts.
  [[nodiscard]] stats::Curve second(const stats::Curve& fresh) const;
  [[nodiscard]] DependenceEstimate ratio(const stats::Curve& first) const;
  [[nodiscard]] const stats::Survival& pairs() const { return second_; }

  static constexpr double kPrior = 100;

 private:
  stats::Survival second_;
};

}  // namespace tailward::hedge
