#include "stats/interval.h"

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace tailward::stats {
namespace {

// Doubles all the way: long double costs ten times as much, for digits that nobody sees.
using Policy = boost::math::policies::policy<boost::math::policies::promote_double<false>>;
using Binomial = boost::math::binomial_distribution<double, Policy>;
using Normal = boost::math::normal_distribution<double, Policy>;

double share_within(double q) { return q > 0 ? std::min(q, 1.0) : 0.0; }  // NaN becomes 0

// The smallest k in 0…n with P(B ≤ k) > p, or ≥ p where `reaching`, for B binomial(n, q). Starts at
// the normal approximation, corrected for skewness, and walks to the exact place: for all n that is
// a step or two.
double binomial_quantile(double n, double q, double p, bool reaching) {
  if (q <= 0) return 0;
  if (q >= 1) return n;
  const Binomial binomial(n, q);
  const auto enough = [&](double k) {
    // The smaller tail, because 1 − 10⁻¹² and the like have lost their digits.
    if (k >= n) return true;
    if (p < 0.5) {
      const double below = boost::math::cdf(binomial, k);
      return reaching ? below >= p : below > p;
    }
    const double above = boost::math::cdf(boost::math::complement(binomial, k));
    return reaching ? above <= 1 - p : above < 1 - p;
  };
  const double z = normal_quantile(p);
  const double sd = std::sqrt(n * q * (1 - q));
  const double guess = n * q + z * sd + (1 - 2 * q) * (z * z - 1) / 6 - 0.5;
  double k = std::clamp(std::round(guess), 0.0, n);
  while (!enough(k)) ++k;
  while (k > 0 && enough(k - 1)) --k;
  return k;
}

}  // namespace

double normal_quantile(double p) {
  TAILWARD_CHECK(p > 0 && p < 1);
  return boost::math::quantile(Normal(), p);
}

MeanInterval mean_interval(std::span<const double> values, double confidence) {
  const auto n = static_cast<double>(values.size());
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (values.empty()) return {0, -kInfinity, kInfinity};
  double mean = 0;
  for (const double value : values) mean += value / n;
  if (values.size() < 2) return {mean, -kInfinity, kInfinity};
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const boost::math::students_t_distribution<double, Policy> student(n - 1);
  const double t = boost::math::quantile(student, (1 + confidence) / 2);
  const double half = t * std::sqrt(squares / (n - 1) / n);
  return {mean, mean - half, mean + half};
}

ShareInterval share_interval(double successes, double n, double confidence) {
  if (!(n > 0)) return {};
  const double p = std::clamp(successes / n, 0.0, 1.0);
  const double z = normal_quantile((1 + confidence) / 2);
  const double z2 = z * z;
  const double scale = 1 / (1 + z2 / n);
  const double centre = scale * (p + z2 / (2 * n));
  const double half = scale * z * std::sqrt(p * (1 - p) / n + z2 / (4 * n * n));
  // At the ends the formula is exact but for rounding.
  return {p == 0 ? 0.0 : std::max(0.0, centre - half), p == 1 ? 1.0 : std::min(1.0, centre + half)};
}

RankInterval quantile_ranks(std::uint64_t n, double q, double confidence) {
  TAILWARD_CHECK(confidence > 0 && confidence < 1);
  if (n == 0) return {0, 1};
  // Let B of the n values be at or below the quantile. The value of rank r lies above it when B <
  // r, so `low` is the largest rank with P(B < low) ≤ tail; and `high` is the smallest with P(B ≥
  // high) ≤ tail. With ties B can only be larger for the one and smaller for the other.
  const double tail = (1 - confidence) / 2;
  const double share = share_within(q);
  const auto count = static_cast<double>(n);
  const auto low = static_cast<std::uint64_t>(binomial_quantile(count, share, tail, false));
  const auto high = static_cast<std::uint64_t>(binomial_quantile(count, share, 1 - tail, true));
  return {low, high + 1};
}

std::uint64_t nearest_rank(std::uint64_t n, double q) {
  if (n == 0) return 0;
  if (q >= 1) return n;
  const double rank = std::ceil(share_within(q) * static_cast<double>(n) * (1 - 1e-14));
  if (rank >= static_cast<double>(n)) return n;
  return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(rank));
}

}  // namespace tailward::stats
