#include "base/rng.h"

#include <cmath>
#include <numbers>

namespace tailward {

std::uint64_t mix64(std::uint64_t x) {
  // The constants of splitmix64: 2^64 divided by the golden ratio, and the multipliers of
  // Stafford's Mix13.
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

Rng::Rng(std::uint64_t seed) {
  // As its authors advise: all zero, which xoshiro could not leave, does not come out of it.
  for (std::uint64_t& word : state_) {
    word = mix64(seed);
    seed += 0x9e3779b97f4a7c15u;
  }
}

Rng Rng::stream(std::uint64_t seed, std::uint64_t stream) {
  // The complement, so that stream and seed of one value do not cancel out.
  return Rng(mix64(seed) ^ mix64(~stream));
}

// uniform() may be 0 and is never 1, so log1p(−u) is finite.
double Rng::exponential(double mean) { return -mean * std::log1p(-uniform()); }

double Rng::normal() {
  // Box–Muller; the second value is dropped, so that one call draws a fixed count of numbers.
  const double radius = std::sqrt(-2.0 * std::log1p(-uniform()));
  return radius * std::cos(2.0 * std::numbers::pi * uniform());
}

double Rng::lognormal(double mean, double sd) {
  // From the moments of a lognormal: mean = e^(μ + σ²/2), variance = (e^σ² − 1) · mean².
  const double variance_log = std::log1p(sd * sd / (mean * mean));
  const double mean_log = std::log(mean) - variance_log / 2;
  return std::exp(mean_log + std::sqrt(variance_log) * normal());
}

}  // namespace tailward
