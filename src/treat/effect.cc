#include "treat/effect.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "stats/interval.h"

namespace tailward::treat {
namespace {

// Enough that the 2.5 % percentile rests on 50 draws and moves by about seven of them from seed to
// seed. A draw is one pass over at most 500 × 64 points.
constexpr std::size_t kDraws = 2000;
// How many quantiles of a cluster stand for all its latencies.
constexpr std::size_t kPointsMax = 64;
// More clusters are laid together: that keeps them independent, and the work bounded.
constexpr std::size_t kClustersMax = 500;
// As everywhere in Tailward; stats::mean_interval() takes it, too.
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

// Sorted once, so that each draw only adds up weights and needs no sort of its own.
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
      // The middle of each of `points` equal parts: the quantiles (i + ½) / points.
      group.points.push_back({sorted[(2 * i + 1) * sorted.size() / (2 * points)], c, weight});
    }
  }
  std::sort(group.points.begin(), group.points.end(),
            [](const Point& a, const Point& b) { return a.value < b.value; });
  return group;
}

// The lower middle of an even number, as by nearest rank: a latency that was measured.
Duration median_of(std::span<const Cluster> clusters) {
  std::vector<Duration> all;
  for (const Cluster& one : clusters) all.insert(all.end(), one.begin(), one.end());
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>((all.size() - 1) / 2);
  std::nth_element(all.begin(), middle, all.end());
  return *middle;
}

// One draw of the bootstrap: whole clusters are drawn with replacement, never single latencies,
// because those of one connection are alike. `times` says how often each was drawn; it is an
// argument so that 2,000 draws share one allocation.
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
  // Hesterberg (2015), "What Teachers Should Know About the Bootstrap", section 3.3: the percentile
  // interval is too narrow by √((n − 1) / n) and by Student against normal. Both are made good by
  // percentiles further out. At n = 4 that leaves out 0.01 % at either end, at n = 30 1.9 %.
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
  // One cluster says nothing about how clusters differ.
  effect.bounded = one.clusters > 1 && two.clusters > 1;
  if (!effect.bounded) return effect;
  std::vector<Duration> draws;
  std::vector<std::uint32_t> times;
  for (std::size_t i = 0; i < kDraws; ++i) {
    const Duration first = drawn_median(one, rng, times);
    draws.push_back(first - drawn_median(two, rng, times));
  }
  std::sort(draws.begin(), draws.end());
  // The smaller half decides: its median is the less certain one.
  const double tail = expanded_tail(std::min(one.clusters, two.clusters));
  const auto out = static_cast<std::size_t>(tail * static_cast<double>(kDraws));
  // The quantiles of a cluster are fewer than its latencies, so the interval of the draws may miss
  // the difference of the true medians by a rounding. It always contains it.
  effect.low = std::min(draws[out], effect.difference);
  effect.high = std::max(draws[kDraws - 1 - out], effect.difference);
  return effect;
}

}  // namespace tailward::treat
