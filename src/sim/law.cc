#include "sim/law.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "base/check.h"

namespace tailward::sim {
namespace {

constexpr auto kLongestNs = static_cast<double>(kLongestDraw.count());

double ns(Duration duration) {
  TAILWARD_CHECK(duration >= Duration{0});
  return static_cast<double>(duration.count());
}

}  // namespace

Law Law::constant(Duration value) { return {Kind::kConstant, ns(value), 0}; }

Law Law::uniform(Duration low, Duration high) {
  TAILWARD_CHECK(low <= high);
  return {Kind::kUniform, ns(low), ns(high)};
}

Law Law::exponential(Duration mean) {
  TAILWARD_CHECK(mean > Duration{0});
  return {Kind::kExponential, ns(mean), 0};
}

Law Law::lognormal(Duration mean, Duration sd) {
  TAILWARD_CHECK(mean > Duration{0});
  const double spread = ns(sd) / ns(mean);
  const double variance_log = std::log1p(spread * spread);
  return {Kind::kLognormal, std::log(ns(mean)) - variance_log / 2, std::sqrt(variance_log)};
}

Law Law::pareto(Duration lowest, double shape) {
  TAILWARD_CHECK(lowest > Duration{0} && shape > 0);
  return {Kind::kPareto, ns(lowest), shape};
}

Law Law::mixture(std::vector<Part> parts) {
  Law law(Kind::kMixture, 0, 0);
  double sum = 0;
  for (Part& part : parts) {
    TAILWARD_CHECK(part.share >= 0);
    sum += part.share;
    law.shares_.push_back(sum);
    law.parts_.push_back(std::move(part.law));
  }
  TAILWARD_CHECK(sum > 0);
  for (double& share : law.shares_) share /= sum;
  law.shares_.back() = 1;
  return law;
}

Law Law::scaled(double factor) const {
  TAILWARD_CHECK(factor >= 0);
  Law law = *this;
  law.factor_ *= factor;
  return law;
}

Duration Law::draw(Rng& rng) const {
  return Duration{static_cast<std::int64_t>(std::clamp(draw_ns(rng), 0.0, kLongestNs))};
}

double Law::draw_ns(Rng& rng) const {
  switch (kind_) {
    case Kind::kConstant:
      return factor_ * a_;
    case Kind::kUniform:
      return factor_ * rng.uniform(a_, b_);
    case Kind::kExponential:
      return factor_ * rng.exponential(a_);
    case Kind::kLognormal:
      return factor_ * std::exp(a_ + b_ * rng.normal());
    case Kind::kPareto:
      return factor_ * a_ * std::pow(1 - rng.uniform(), -1 / b_);
    case Kind::kMixture: {
      const double at = rng.uniform();
      std::size_t part = 0;
      while (at >= shares_[part]) ++part;
      return factor_ * parts_[part].draw_ns(rng);
    }
  }
  return 0;
}

double Law::above(Duration t) const { return above_ns(static_cast<double>(t.count())); }

double Law::above_ns(double t) const {
  if (t < 0) return 1;
  if (factor_ == 0) return 0;
  t /= factor_;
  switch (kind_) {
    case Kind::kConstant:
      return a_ > t ? 1 : 0;
    case Kind::kUniform:
      return a_ == b_ ? (a_ > t ? 1 : 0) : std::clamp((b_ - t) / (b_ - a_), 0.0, 1.0);
    case Kind::kExponential:
      return std::exp(-t / a_);
    case Kind::kLognormal:
      if (t == 0) return 1;
      if (b_ == 0) return a_ > std::log(t) ? 1 : 0;
      return std::erfc((std::log(t) - a_) / (b_ * std::numbers::sqrt2)) / 2;
    case Kind::kPareto:
      return t <= a_ ? 1 : std::pow(a_ / t, b_);
    case Kind::kMixture: {
      double above = 0;
      double before = 0;
      for (std::size_t i = 0; i < parts_.size(); ++i) {
        above += (shares_[i] - before) * parts_[i].above_ns(t);
        before = shares_[i];
      }
      return above;
    }
  }
  return 0;
}

Duration Law::quantile(double q) const {
  TAILWARD_CHECK(q >= 0 && q < 1);
  std::int64_t low = 0;
  std::int64_t high = kLongestDraw.count();
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (above(Duration{middle}) <= 1 - q) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return Duration{low};
}

}  // namespace tailward::sim
