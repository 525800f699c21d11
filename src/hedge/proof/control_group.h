// What hedging does for a request: a small random share of the requests is never hedged, and the
// difference between their latency and that of the others is the effect, whatever else happens to
// the service meanwhile.
//
// The interval of a difference of quantiles joins the two quantiles' own distribution-free
// intervals (stats/histogram.h) by MOVER (Zou and Donner, "Construction of confidence limits about
// effect measures", Statistics in Medicine 2008): it needs no law, and holds for skewed ones.
//
// What it cannot see: the two groups share the servers. What hedging costs everybody is the
// switchback's to find (hedge/proof/switchback.h).
//
// Thread safety: one loop. Memory: four histograms.
#pragma once

#include <cstdint>

#include "base/time.h"
#include "stats/window.h"

namespace tailward::hedge {

// What is saved at a quantile: control − hedged.
struct Saving {
  double quantile = 0;
  Duration control{};
  Duration hedged{};
  Duration saved{};
  Duration low{};  // of `saved`
  Duration high{};
  bool bounded = false;  // false: too few requests for an interval
};

class ControlGroup {
 public:
  // REQUIRES: window > 0.
  explicit ControlGroup(Duration window) : control_(window), hedged_(window) {}

  void record(TimePoint now, bool control, Duration latency) {
    (control ? control_ : hedged_).record(now, latency);
  }
  [[nodiscard]] Saving saving(double quantile, TimePoint now, double confidence = 0.95);
  [[nodiscard]] std::uint64_t control_requests(TimePoint now) { return control_.count(now); }

 private:
  stats::WindowedHistogram control_;
  stats::WindowedHistogram hedged_;
};

// Of any two samples.
Saving saving_between(const stats::Histogram& control, const stats::Histogram& hedged,
                      double quantile, double confidence = 0.95);

}  // namespace tailward::hedge
