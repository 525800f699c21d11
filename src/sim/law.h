// Laws of latency: what a duration is drawn from.
//
// Values: copy them freely. Thread safety: a const Law may be shared, the Rng may not.
#pragma once

#include <cstdint>
#include <vector>

#include "base/rng.h"
#include "base/time.h"

namespace tailward::sim {

// No draw is longer than this, whatever the law: a Pareto tail has no end of its own.
inline constexpr Duration kLongestDraw = std::chrono::hours(24);

class Law {
 public:
  struct Part;

  Law() : Law(Kind::kConstant, 0, 0) {}

  // REQUIRES (of all): durations and spreads ≥ 0; a lognormal's or an exponential's mean > 0.
  static Law constant(Duration value);
  static Law uniform(Duration low, Duration high);
  static Law exponential(Duration mean);
  // Mean and standard deviation of the value itself, not of its logarithm.
  static Law lognormal(Duration mean, Duration sd);
  // P(X > t) = (lowest ÷ t)^shape for t ≥ lowest. REQUIRES: lowest > 0, shape > 0.
  static Law pareto(Duration lowest, double shape);
  // One of the parts, drawn by their shares; the shares need not add up to 1.
  // REQUIRES: a share > 0, none below.
  static Law mixture(std::vector<Part> parts);

  // `factor` times a draw of this law. REQUIRES: factor ≥ 0.
  [[nodiscard]] Law scaled(double factor) const;

  [[nodiscard]] Duration draw(Rng& rng) const;

  // P(X > t), exact but for the limit of kLongestDraw.
  [[nodiscard]] double above(Duration t) const;
  // Smallest t with P(X > t) ≤ 1 − q, to the nanosecond. REQUIRES: 0 ≤ q < 1.
  [[nodiscard]] Duration quantile(double q) const;

 private:
  enum class Kind : std::uint8_t {
    kConstant,     // a: the value
    kUniform,      // a, b: the ends
    kExponential,  // a: the mean
    kLognormal,    // a, b: mean and standard deviation of the logarithm
    kPareto,       // a: lowest, b: shape
    kMixture,
  };
  // Nanoseconds, but for a lognormal's and a Pareto's shape.
  Law(Kind kind, double a, double b) : kind_(kind), a_(a), b_(b) {}
  [[nodiscard]] double draw_ns(Rng& rng) const;
  [[nodiscard]] double above_ns(double t) const;

  Kind kind_;
  double a_;
  double b_;
  double factor_ = 1;
  // Of a mixture. The shares are cumulative and end at 1.
  std::vector<double> shares_;
  std::vector<Law> parts_;
};

struct Law::Part {
  double share = 0;
  Law law;
};

}  // namespace tailward::sim
