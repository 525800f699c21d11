#include "plan/analysis.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace tailward::plan {
namespace {

// What most people choose by hand, after "The Tail at Scale" (Dean and Barroso, CACM 2013).
constexpr double kStaticQuantile = 0.95;
constexpr double kSlowQuantile = 0.99;  // slow is what lies beyond

hedge::Plan hedge_at(const stats::Curve& curve, double quantile) {
  hedge::Plan plan;
  const std::optional<Duration> delay = curve.quantile(quantile);
  // The engine never hedges later than that, so a forecast must not either.
  if (!delay || *delay > hedge::kLastHedgeMax) return plan;
  plan.stages = 1;
  plan.stage[0] = {*delay, 1};
  return plan;
}

}  // namespace

Analysis::Analysis(const Reading& reading, const PlanOptions& options)
    : options_(options),
      measured_(reading.samples.histogram),
      signatures_(find_signatures(reading.samples)) {
  const stats::Curve curve(measured_);
  add("off", {});
  add("static", hedge_at(curve, kStaticQuantile));
  add("quantile", options.budget > 0 ? hedge_at(curve, 1 - options.budget) : hedge::Plan());
  const hedge::PlannedHedges planned = hedge::plan_hedges(
      {.first = &curve, .second = &curve, .goal = options.goal, .budget = options.budget});
  add("adaptive", planned.plan);
  choose_best();
  fan_out();
}

void Analysis::add(std::string name, const hedge::Plan& plan) {
  // A second attempt is taken to be like a first one, and independent of it: the assumption that
  // the report states.
  const stats::Curve first = policies_.empty() ? stats::Curve(measured_) : off().curve;
  policies_.push_back({std::move(name), plan, hedge::expected_extra_load(first, first, plan),
                       hedge::predict(first, first, plan)});
}

bool Analysis::within_budget(const Forecast& policy) const {
  // A budget of 5 % and a delay at P95 of a histogram meet only up to the width of a bucket.
  constexpr double kRounding = 1e-4;
  return policy.extra_load <= options_.budget + kRounding;
}

void Analysis::choose_best() {
  // A plan that gains a hair at the goal and loses all beyond it is not the better one.
  constexpr double kSame = 1.02;
  // P99 as the goal: P99.9 beyond it.
  const double beyond = 1 - (1 - options_.goal) / 10;
  const auto at_goal = [this](std::size_t at) {
    return static_cast<double>(
        policies_[at].curve.quantile(options_.goal).value_or(kForever).count());
  };
  double least = at_goal(0);
  const auto allowed = [this](std::size_t at) { return within_budget(policies_[at]); };
  for (std::size_t at = 1; at < policies_.size(); ++at) {
    if (allowed(at)) least = std::min(least, at_goal(at));
  }
  // Nothing gains 2 %: leave hedging off.
  if (at_goal(0) <= least * kSame) return;
  std::optional<Duration> least_beyond;
  // From the last on, so that among equals the adaptive plan comes first.
  for (std::size_t at = policies_.size() - 1; at > 0; --at) {
    if (!allowed(at) || at_goal(at) > least * kSame) continue;
    const Duration now = policies_[at].curve.quantile(beyond).value_or(kForever);
    if (least_beyond && to_ms(now) * kSame >= to_ms(*least_beyond)) continue;
    least_beyond = now;
    best_ = at;
  }
}

std::optional<Duration> Analysis::quantile(const Forecast& policy, double q) const {
  const std::optional<Duration> value = policy.curve.quantile(q);
  if (!value) return std::nullopt;
  const bool known = measured_.quantile_interval(q).bounded;
  // A hedged quantile follows from quantiles lower down in the log, so it can be known where the
  // plain one is not.
  if (!known && (policy.plan.stages == 0 || measured_.count_above(*value) < kBeyondMin)) {
    return std::nullopt;
  }
  return std::min(*value, measured_.max());
}

void Analysis::fan_out() {
  std::set<std::uint64_t> sizes{1, 10, 50, 100};
  if (options_.fanout > 0) sizes.insert(options_.fanout);
  const std::optional<Duration> slow = off().curve.quantile(kSlowQuantile);
  const auto any_of = [](double share, std::uint64_t n) {
    // 1 − (1 − share)^n, without losing digits when the share is small.
    return -std::expm1(static_cast<double>(n) * std::log1p(-std::min(share, 1.0)));
  };
  const double hedged = slow ? adaptive().curve.above(*slow) : 1;
  for (const std::uint64_t n : sizes) {
    const double root = 1 / static_cast<double>(n);
    FanoutRow row;
    row.n = n;
    row.slow_share = any_of(1 - kSlowQuantile, n);
    // The slowest of n is below x when all are: its median is the quantile ½^(1/n) of one.
    row.p50 = quantile(off(), std::pow(0.5, root));
    row.p99 = quantile(off(), std::pow(0.99, root));
    row.hedged_slow_share = any_of(std::min(hedged, 1 - kSlowQuantile), n);
    row.hedged_p50 = quantile(adaptive(), std::pow(0.5, root));
    row.hedged_p99 = quantile(adaptive(), std::pow(0.99, root));
    fanout_.push_back(row);
  }
}

}  // namespace tailward::plan
