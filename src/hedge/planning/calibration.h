// How many hedges the plans asked for, against how many they were expected to ask for. Timers are
// late and hosts differ, so the two are not equal, and a planner that believed its own figures
// would overspend the budget or leave a part of it unused.
//
// Thread safety: one loop. O(1).
#pragma once

#include "base/time.h"

namespace tailward::hedge {

class Calibration {
 public:
  // What happened within `elapsed`. Both fade with a half-life of 10 s.
  void record(double expected, double asked, Duration elapsed);
  // Hedges asked for ÷ expected, 0.7…1.4; 1 while little is known.
  [[nodiscard]] double factor() const { return factor_; }

 private:
  double expected_ = 0;
  double asked_ = 0;
  double factor_ = 1;
};

}  // namespace tailward::hedge
