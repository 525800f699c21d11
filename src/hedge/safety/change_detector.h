// Whether a stream of latencies has shifted against what is healthy: found within a dozen samples.
//
// Every latency is reduced to one bit: longer than a limit (twice the healthy median), or not.
// While healthy a share `normal` of them is longer; after a shift at least `shifted`. The detector
// is Page's cumulative sum of log-likelihood ratios ("Continuous inspection schemes", Biometrika
// 1954), run in both directions: it starts at zero, rises with every sample that speaks for a
// shift, and says so at `threshold`; then it watches for the way back in the same manner, at half
// the threshold: samples of a host that is avoided are dear, and one that is well again is as far
// from `shifted` as can be. Among all tests with as few false alarms this one needs the fewest
// samples (Moustakides 1986). e^threshold bounds the mean number of samples between false alarms
// from below.
//
// Thread safety: one thread. 8 bytes, O(1), no clock.
#pragma once

namespace tailward::hedge {

// What one sample adds: made once, when the healthy share is known, for many detectors.
class ChangeScale {
 public:
  // No detector says anything on this scale.
  ChangeScale() = default;
  // REQUIRES: 0 < normal < shifted < 1.
  ChangeScale(double normal, double shifted, double threshold);

 private:
  friend class ChangeDetector;
  float longer_ = 0;
  float shorter_ = 0;
  float threshold_ = 0;
};

class ChangeDetector {
 public:
  void sample(bool longer, const ChangeScale& scale);
  // A sample that says nothing definite in time: a stream that has run dry keeps its state.
  [[nodiscard]] bool shifted() const { return shifted_; }
  void reset() { *this = ChangeDetector(); }

 private:
  float sum_ = 0;
  bool shifted_ = false;
};

}  // namespace tailward::hedge
