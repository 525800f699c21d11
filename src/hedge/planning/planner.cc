#include "hedge/planning/planner.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

namespace tailward::hedge {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
// Delays on the coarse grid. Each time that is tried costs half its square.
constexpr std::size_t kGrid = 64;
// Each zoom halves the distance between the delays tried, from at most twice the grid's.
constexpr int kZooms = 7;
constexpr std::size_t kZoomPoints = 5;
// The earliest reachable time is found to this many binary places, on a grid up to the quantile
// without hedging and then on one up to what was found.
constexpr int kCoarseBits = 4;
constexpr int kFineBits = 13;
// Two stages must save this share of the load of one to be worth their greater complexity.
constexpr double kStagedGain = 0.001;
// What is not answered within all that is known lasts for nobody knows how long: this many times
// longer, for the sake of weighing it. With less, hedges into an upstream of which part hangs would
// be worth sending before the healthy have had the time to answer.
constexpr int kUnknownLasts = 10;
constexpr int kFreshPoints = 64;

// Delays between which to choose, in the order of their length, with P(X > d).
struct Grid {
  std::size_t size = 0;
  std::array<Duration, kGrid> delay;
  std::array<double, kGrid> first_above;

  void add(Duration d, const stats::Curve& first) {
    if (size == kGrid || (size > 0 && d <= delay[size - 1])) return;
    delay[size] = d;
    first_above[size++] = first.above(d);
  }
  // Around one of its delays, what lies between its neighbours.
  [[nodiscard]] Duration spacing(std::size_t i) const {
    const Duration before = i == 0 ? Duration{0} : delay[i] - delay[i - 1];
    const Duration after = i + 1 == size ? Duration{0} : delay[i + 1] - delay[i];
    return std::max(before, after);
  }
};

// The first bucket after which P falls.
std::size_t shortest_bucket(const stats::Curve& curve) {
  std::size_t i = 0;
  while (i + 1 < stats::kBucketCount && curve.at(i) >= 1) ++i;
  return i;
}

// At 0 and then up to `last`, dense where there are many buckets and also where S falls steeply: by
// the share of the buckets, of S and of log S that lies between two delays.
Grid make_grid(const stats::Curve& first, const stats::Curve& second, Duration last) {
  last = std::min(last, kLastHedgeMax);
  Grid grid;
  grid.add(Duration{0}, first);
  const std::size_t begin = std::min(shortest_bucket(first), shortest_bucket(second));
  const std::size_t end = stats::bucket_of(last);
  if (begin >= end) {
    grid.add(last, first);
    return grid;
  }
  const double buckets = static_cast<double>(end - begin);
  const double lowest = std::max(first.above(last), 1e-6);
  const auto measure = [&](std::size_t i) {
    const double above = std::max(first.at(i), lowest);
    return static_cast<double>(i - begin) / buckets + (1 - above) / (1 - lowest) +
           std::log(above) / std::log(lowest);
  };
  const double step = (lowest < 1 ? 3.0 : 1.0) / (kGrid - 3);
  grid.add(stats::bucket_low(begin), first);
  double next = step;
  for (std::size_t i = begin; i < end; ++i) {
    const double reached = lowest < 1 ? measure(i) : static_cast<double>(i - begin) / buckets;
    if (reached < next) continue;
    grid.add(stats::bucket_high(i), first);
    next = (std::floor(reached / step) + 1) * step;
  }
  grid.add(last, first);
  return grid;
}

// Some stages and what they cost; not less than infinite: none that would do.
struct Choice {
  double load = kInfinite;
  int stages = 0;
  std::array<Stage, 2> stage{};
};

// What must be known of each of some delays so that they can be weighed at time t.
template <std::size_t kSize>
struct Weights {
  std::array<Duration, kSize> delay;
  std::array<double, kSize> first_above;  // S(d)
  std::array<double, kSize> inverse;      // 1 ÷ P(a hedge sent at d is answered by t)
  // By how much the hedges beside a certain one at d must still lower P(latency > t); ≤ 0: it
  // suffices alone.
  std::array<double, kSize> rest;

  void set(std::size_t i, Duration d, double above, double still, double share) {
    delay[i] = d;
    first_above[i] = above;
    inverse[i] = 1 / (1 - still);
    rest[i] = 1 - share / still;
  }
};

// The cheapest stages that bring P(latency > t) down to what the goal allows.
class Search {
 public:
  explicit Search(const PlannerInput& input)
      : first_(*input.first),
        second_(*input.second),
        allowed_((1 - input.goal) * stats::Curve::kRounding),
        unhedged_(input.unhedged),
        copies_(input.copies) {}

  // Chooses among delays up to that one.
  void spread(Duration last) {
    grid_ = make_grid(first_, second_, last);
    if (copies_ < 2) return;
    for (std::size_t i = 0; i < grid_.size; ++i) {
      for (std::size_t j = i; j < grid_.size; ++j) {
        still_[i][j] = static_cast<float>(second_.above(grid_.delay[j] - grid_.delay[i]));
      }
    }
  }
  [[nodiscard]] const Grid& grid() const { return grid_; }

  [[nodiscard]] Choice cheapest(Duration t) const {
    // Of what outlasts t unhedged, so much may outlast it hedged.
    const double share = (allowed_ / first_.above(t) - unhedged_) / (1 - unhedged_);
    if (share >= 1) return {.load = 0};
    if (share <= 0) return {};
    Weights<kGrid> weights;
    std::size_t size = 0;
    for (; size < grid_.size && grid_.delay[size] < t; ++size) {
      const Duration d = grid_.delay[size];
      weights.set(size, d, grid_.first_above[size], second_.above(t - d), share);
    }
    const Choice best = single(t, share, weights, size);
    if (copies_ < 2) return best;
    const Cell cell = scan(weights, size);
    if (cell.load == kInfinite) return best;
    const Choice staged = zoom(t, share, cell);
    return staged.load < best.load * (1 - kStagedGain) ? staged : best;
  }

 private:
  struct Cell {
    double load = kInfinite;
    std::size_t i = 0;
    std::size_t j = 0;
  };
  // Of the second's probability when the first is 1, and the other way round: infinite where that
  // takes more than certainty, or less than nothing (the certain one does it alone).
  static double load_first_certain(double q2, double s1, double s2, double still) {
    return q2 > 0 && q2 <= 1 ? s1 + q2 * s2 * still : kInfinite;
  }
  static double load_second_certain(double q1, double s1, double s2, double still) {
    return q1 > 0 && q1 <= 1 ? s2 + q1 * (s1 - s2 * (1 - still)) : kInfinite;
  }

  [[nodiscard]] Choice single(Duration t, double share, const Weights<kGrid>& weights,
                              std::size_t size) const {
    double least = kInfinite;
    std::size_t best = 0;
    for (std::size_t i = 0; i < size; ++i) {
      const double q = (1 - share) * weights.inverse[i];
      if (q > 1 || q * weights.first_above[i] >= least) continue;
      least = q * weights.first_above[i];
      best = i;
    }
    Choice choice;
    if (least == kInfinite) return choice;
    Duration centre = weights.delay[best];
    Duration width = grid_.spacing(best);
    for (int level = 0; level < kZooms; ++level, width /= 2) {
      const Duration around = centre;
      for (int k = -2; k <= 2; ++k) {
        const Duration d = around + width * k / 2;
        if (d < Duration{0} || d >= t || d > kLastHedgeMax) continue;
        const double q = (1 - share) / (1 - second_.above(t - d));
        const double load = q * first_.above(d);
        if (q > 1 || load >= choice.load) continue;
        choice = {.load = load, .stages = 1, .stage = {{{d, q}}}};
        centre = d;
      }
    }
    return choice;
  }

  [[nodiscard]] Cell scan(const Weights<kGrid>& weights, std::size_t size) const {
    Cell best;
    for (std::size_t i = 0; i < size; ++i) {
      const double s1 = weights.first_above[i];
      for (std::size_t j = i; j < size; ++j) {
        const double s2 = weights.first_above[j];
        const double still = static_cast<double>(still_[i][j]);
        const double q2 = weights.rest[i] * weights.inverse[j];
        const double q1 = weights.rest[j] * weights.inverse[i];
        const double load =
            std::min(load_first_certain(q2, s1, s2, still), load_second_certain(q1, s1, s2, still));
        if (load < best.load) best = {load, i, j};
      }
    }
    return best;
  }

  [[nodiscard]] Choice zoom(Duration t, double share, const Cell& cell) const {
    std::array<Duration, 2> centre{grid_.delay[cell.i], grid_.delay[cell.j]};
    std::array<Duration, 2> width{grid_.spacing(cell.i), grid_.spacing(cell.j)};
    Choice best;
    for (int level = 0; level < kZooms; ++level) {
      std::array<Weights<kZoomPoints>, 2> points;
      std::array<std::size_t, 2> size{};
      for (std::size_t stage = 0; stage < 2; ++stage) {
        for (int k = -2; k <= 2; ++k) {
          const Duration d = centre[stage] + width[stage] * k / 2;
          if (d < Duration{0} || d >= t || d > kLastHedgeMax) continue;
          points[stage].set(size[stage]++, d, first_.above(d), second_.above(t - d), share);
        }
        width[stage] /= 2;
      }
      for (std::size_t i = 0; i < size[0]; ++i) {
        for (std::size_t j = 0; j < size[1]; ++j) weigh(points[0], i, points[1], j, best);
      }
      if (best.stages == 0) break;
      centre = {best.stage[0].delay, best.stage[1].delay};
    }
    return best;
  }

  void weigh(const Weights<kZoomPoints>& one, std::size_t i, const Weights<kZoomPoints>& two,
             std::size_t j, Choice& best) const {
    const Duration d1 = one.delay[i];
    const Duration d2 = two.delay[j];
    if (d1 > d2) return;
    const double s1 = one.first_above[i];
    const double s2 = two.first_above[j];
    const double still = second_.above(d2 - d1);
    const double q2 = one.rest[i] * two.inverse[j];
    const double q1 = two.rest[j] * one.inverse[i];
    const double a = load_first_certain(q2, s1, s2, still);
    const double b = load_second_certain(q1, s1, s2, still);
    if (std::min(a, b) >= best.load) return;
    best = a <= b ? Choice{.load = a, .stages = 2, .stage = {{{d1, 1}, {d2, q2}}}}
                  : Choice{.load = b, .stages = 2, .stage = {{{d1, q1}, {d2, 1}}}};
  }

  const stats::Curve& first_;
  const stats::Curve& second_;
  double allowed_;  // P(latency > t)
  double unhedged_;
  int copies_;
  Grid grid_;
  std::array<std::array<float, kGrid>, kGrid> still_;  // P(Y > d_j − d_i)
};

// E[(X − d − Y)⁺; X > d], the unknown share of X counted up to a horizon: what a hedge at d saves.
class Saving {
 public:
  Saving(const stats::Curve& first, const stats::Curve& second, Duration horizon)
      : first_(first), horizon_(horizon) {
    const double known = 1 - second.above(horizon);
    weight_ = known / kFreshPoints;
    for (std::size_t k = 0; k < kFreshPoints; ++k) {
      const double q = known * (static_cast<double>(k) + 0.5) / kFreshPoints;
      fresh_[k] = second.quantile(q).value_or(horizon);
    }
    // G(t) = ∫ S from t to the horizon, at the buckets' ends: E[(X − s)⁺] for s = d + Y.
    double area = 0;
    Duration from = horizon;
    for (std::size_t i = stats::kBucketCount; i-- > 0;) {
      if (stats::bucket_high(i) < horizon) {
        const double height =
            i + 1 == stats::kBucketCount ? first.at(i) : (first.at(i) + first.at(i + 1)) / 2;
        area += height * static_cast<double>((from - stats::bucket_high(i)).count());
        from = stats::bucket_high(i);
      }
      beyond_[i] = area;
    }
  }

  [[nodiscard]] double at(Duration d) const {
    double sum = 0;
    for (const Duration fresh : fresh_) sum += beyond(d + fresh);
    return sum * weight_;
  }

 private:
  [[nodiscard]] double beyond(Duration t) const {
    if (t >= horizon_) return 0;
    const std::size_t i = stats::bucket_of(t);
    const Duration end = std::min(stats::bucket_high(i), horizon_);
    if (t >= end) return first_.at(i) * static_cast<double>((horizon_ - t).count());
    return beyond_[i] +
           (first_.above(t) + first_.at(i)) / 2 * static_cast<double>((end - t).count());
  }

  const stats::Curve& first_;
  Duration horizon_;
  double weight_;
  std::array<Duration, kFreshPoints> fresh_;
  std::array<double, stats::kBucketCount> beyond_;
};

// Between which times the earliest lies that the goal can be reached at, and how at the later one.
struct Range {
  Duration unreachable{};
  Duration reachable{};
  Choice choice = {};
};

// Until the two are within 2^-bits. A larger budget goes down wherever a smaller one does, since
// what is tried at a time depends on the times before it alone: it never ends at a later one.
void narrow(const Search& search, double budget, int bits, Range& range) {
  while (range.reachable - range.unreachable >
         std::max(Duration{1}, range.reachable / (std::int64_t{1} << bits))) {
    const auto low = static_cast<double>(std::max(range.unreachable, stats::kLowest / 2).count());
    const auto high = static_cast<double>(range.reachable.count());
    const Duration t = high > 2 * low
                           ? Duration{static_cast<std::int64_t>(std::sqrt(low * high))}
                           : range.unreachable + (range.reachable - range.unreachable) / 2;
    const Choice choice = search.cheapest(t);
    if (choice.load <= budget) {
      range.reachable = t;
      range.choice = choice;
    } else {
      range.unreachable = t;
    }
  }
}

// One stage, where what may be spent saves most.
Choice ration(const PlannerInput& input, const Grid& grid) {
  const Duration known = std::max(input.first->longest(), input.second->longest());
  const Saving saving(*input.first, *input.second, known * kUnknownLasts);
  Choice best;
  double most = 0;
  const auto weigh = [&](Duration d) {
    if (d < Duration{0} || d > kLastHedgeMax) return false;
    const double above = input.first->above(d);
    if (above <= 0) return false;
    const double q = std::min(1.0, input.budget / above);
    const double saved = saving.at(d) * q;
    if (saved <= most) return false;
    most = saved;
    best = {.load = q * above, .stages = 1, .stage = {{{d, q}}}};
    return true;
  };
  std::size_t at = 0;
  for (std::size_t i = 0; i < grid.size; ++i) {
    if (weigh(grid.delay[i])) at = i;
  }
  Duration width = grid.spacing(at);
  for (int level = 0; level < kZooms && best.stages > 0; ++level, width /= 2) {
    const Duration around = best.stage[0].delay;
    for (int k = -2; k <= 2; ++k) weigh(around + width * k / 2);
  }
  return best;
}

// Rounding must not put the load above the budget.
void settle(const PlannerInput& input, const Choice& choice, PlannedHedges& planned) {
  planned.plan.stages = choice.stages;
  for (std::size_t i = 0; i < choice.stage.size(); ++i) planned.plan.stage[i] = choice.stage[i];
  auto& stage = planned.plan.stage;
  const bool second = choice.stages == 2 && stage[1].probability < stage[0].probability;
  for (double excess = 1e-15;; excess *= 4) {
    planned.extra_load = expected_extra_load(*input.first, *input.second, planned.plan);
    if (planned.extra_load <= input.budget) return;
    stage[second ? 1 : 0].probability *= std::max(0.0, 1 - excess);
  }
}

}  // namespace

PlannedHedges plan_hedges(const PlannerInput& input) {
  const stats::Curve& first = *input.first;
  const stats::Curve& second = *input.second;
  PlannedHedges planned;
  planned.without = first.quantile(input.goal);
  planned.with = planned.without;
  if (first.longest() <= Duration{0} || second.longest() <= Duration{0}) return planned;
  if (!(input.budget > 0) || input.copies < 1) return planned;

  // What is not reachable when all that is known has passed, is not reachable.
  Range range{.reachable = planned.without.value_or(first.longest() + second.longest())};
  Search search(input);
  search.spread(std::min(range.reachable, first.longest()));
  if (!planned.without) {
    range.choice = search.cheapest(range.reachable);
    if (range.choice.load > input.budget) {
      const Choice rationed = ration(input, search.grid());
      if (rationed.stages == 0) return planned;
      planned.kind = PlannedHedges::Kind::kRationed;
      settle(input, rationed, planned);
      return planned;
    }
  }
  narrow(search, input.budget, kCoarseBits, range);
  // Once more with all delays where they can be of use.
  search.spread(std::min(range.reachable, first.longest()));
  range.unreachable -= range.unreachable / (1 << kCoarseBits);
  narrow(search, input.budget, kFineBits, range);

  if (range.choice.stages == 0) return planned;
  if (planned.without && to_ms(range.reachable) > (1 - input.gain_min) * to_ms(*planned.without)) {
    return planned;
  }
  planned.kind =
      range.choice.stages == 1 ? PlannedHedges::Kind::kSingle : PlannedHedges::Kind::kStaged;
  planned.with = range.reachable;
  settle(input, range.choice, planned);
  return planned;
}

stats::Curve predict(const stats::Curve& first, const stats::Curve& second, const Plan& plan) {
  stats::Curve predicted;
  double before = 1;
  for (std::size_t i = 0; i < stats::kBucketCount; ++i) {
    double above = first.at(i);
    for (int k = 0; k < plan.stages; ++k) {
      const Stage& stage = plan.stage[static_cast<std::size_t>(k)];
      above *= 1 - stage.probability * (1 - second.above(stats::bucket_high(i) - stage.delay));
    }
    before = std::min(before, above);
    predicted.set(i, before);
  }
  return predicted;
}

double expected_extra_load(const stats::Curve& first, const stats::Curve& second,
                           const Plan& plan) {
  double load = 0;
  for (std::size_t k = 0; k < static_cast<std::size_t>(plan.stages); ++k) {
    const Stage& stage = plan.stage[k];
    double unanswered = first.above(stage.delay);
    for (std::size_t j = 0; j < k; ++j) {
      const Stage& earlier = plan.stage[j];
      unanswered *= 1 - earlier.probability * (1 - second.above(stage.delay - earlier.delay));
    }
    load += stage.probability * unanswered;
  }
  return load;
}

}  // namespace tailward::hedge
