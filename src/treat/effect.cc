#include "treat/effect.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "stats/interval.h"

namespace tailward::treat {
namespace {

constexpr std::size_t kDraws = 2000;
// How many quantiles of a cluster stand for all its latencies.
constexpr std::size_t kPointsMax = 64;
// More clusters are laid together: that keeps them independent, and the work bounded.
constexpr std::size_t kClustersMax = 500;
constexpr double kConfidence = 0.95;

struct Point {
  Duration value{};
  std::uint32_t cluster = 0;
  double weight = 0;  // latencies that it stands for
};

struct Clusters {
  std::size_t clusters = 0;
  std::vector<Point> points;  // by rising value
};

Clusters prepare(std::span<const Cluster> given) {
  std::vector<Cluster> clusters;
  std::size_t next = 0;
  for (const Cluster& one : given) {
    if (one.empty()) continue;
    if (clusters.size() < kClustersMax) {
      clusters.push_back(one);
    } else {
      Cluster& into = clusters[next++ % kClustersMax];
      into.insert(into.end(), one.begin(), one.end());
    }
  }
  Clusters group{clusters.size(), {}};
  for (std::uint32_t c = 0; c < clusters.size(); ++c) {
    Cluster& sorted = clusters[c];
    std::sort(sorted.begin(), sorted.end());
    const std::size_t points = std::min(sorted.size(), kPointsMax);
    const double weight = static_cast<double>(sorted.size()) / static_cast<double>(points);
    for (std::size_t i = 0; i < points; ++i) {
      group.points.push_back({sorted[(2 * i + 1) * sorted.size() / (2 * points)], c, weight});
    }
  }
  std::sort(group.points.begin(), group.points.end(),
            [](const Point& a, const Point& b) { return a.value < b.value; });
  return group;
}

Duration median_of(std::span<const Cluster> clusters) {
  std::vector<Duration> all;
  for (const Cluster& one : clusters) all.insert(all.end(), one.begin(), one.end());
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>((all.size() - 1) / 2);
  std::nth_element(all.begin(), middle, all.end());
  return *middle;
}

Duration drawn_median(const Clusters& group, Rng& rng, std::vector<std::uint32_t>& times) {
  times.assign(group.clusters, 0);
  for (std::size_t i = 0; i < group.clusters; ++i) ++times[rng.below(group.clusters)];
  double all = 0;
  for (const Point& point : group.points) all += point.weight * times[point.cluster];
  double below = 0;
  for (const Point& point : group.points) {
    below += point.weight * times[point.cluster];
    if (2 * below >= all && times[point.cluster] > 0) return point.value;
  }
  return group.points.back().value;
}

// The share of the draws to leave out at either end.
double expanded_tail(std::size_t clusters) {
  // Student's quantile, from the interval of values whose standard deviation is 1/√n.
  std::vector<double> values(clusters, 0.0);
  values[0] = 1;
  const auto n = static_cast<double>(clusters);
  const stats::MeanInterval interval = stats::mean_interval(values, kConfidence);
  const double student = n * (interval.high - interval.mean);
  const double expanded = std::sqrt(n / (n - 1)) * student;
  return 0.5 * std::erfc(expanded / std::sqrt(2.0));
}

}  // namespace

std::optional<Effect> median_effect(std::span<const Cluster> treated,
                                    std::span<const Cluster> untreated, Rng& rng) {
  const Clusters one = prepare(treated);
  const Clusters two = prepare(untreated);
  if (one.clusters == 0 || two.clusters == 0) return std::nullopt;
  Effect effect{median_of(treated), median_of(untreated)};
  effect.difference = effect.treated - effect.untreated;
  effect.low = effect.high = effect.difference;
  effect.bounded = one.clusters > 1 && two.clusters > 1;
  if (!effect.bounded) return effect;
  std::vector<Duration> draws;
  std::vector<std::uint32_t> times;
  for (std::size_t i = 0; i < kDraws; ++i) {
    const Duration first = drawn_median(one, rng, times);
    draws.push_back(first - drawn_median(two, rng, times));
  }
  std::sort(draws.begin(), draws.end());
  const double tail = expanded_tail(std::min(one.clusters, two.clusters));
  const auto out = static_cast<std::size_t>(tail * static_cast<double>(kDraws));
  effect.low = std::min(draws[out], effect.difference);
  effect.high = std::max(draws[kDraws - 1 - out], effect.difference);
  return effect;
}

}  // namespace tailward::treat
