// When to hedge, so that the goal quantile becomes smallest for what may be spent.
//
// The model. A request's first attempt takes X. At d1 after the start, if it is still unanswered, a
// hedge is sent with probability q1; at d2 ≥ d1 one more with q2. Each hedge takes an independent Y
// (given that the first attempt outlasted its delay: dependence between the two is in the curve of
// Y, which is measured from real pairs). With S(t) = P(X > t), H(t) = P(Y > t), H = 1 for t ≤ 0:
//
//     P(latency > t) = S(t) · (1 − q1 + q1·H(t−d1)) · (1 − q2 + q2·H(t−d2))
//     extra load     = q1·S(d1) + q2·P(latency > d2 before the second stage)
//                    = q1·S(d1) + q2·S(d2)·(1 − q1 + q1·H(d2−d1))
//
// The problem: minimise t subject to P(latency > t) ≤ 1 − goal and extra load ≤ budget.
//
// The search. For a given t and given d1 < d2 the load of the cheapest (q1, q2) that reaches the
// goal at t is concave in q1 along that constraint, so that it is smallest at an end: either one
// stage alone (SingleR: Kaler, He, Elnikety, "Optimal Reissue Policies for Reducing Tail Latency",
// SPAA 2017), or two stages of which at least one is certain. At most one probability lies strictly
// between 0 and 1. What is left is a search over t (by bisection: what is reachable at t is
// reachable at any later time) and over the two delays, coarse first and then finer around the
// best.
//
// When no t is reachable within the budget (more than the budget is slow), the goal cannot be met;
// the budget is then spent where a hedge saves most: at the d that maximises
// E[(X − d − Y)⁺ ; X > d] · min(1, budget ÷ S(d)). A scarce budget is rationed by q, never by
// waiting longer. What outlasts all that the curves know counts there as ten times as long.
//
// Thread safety: pure functions. No allocation, 50 KiB of stack. ≤ 1 ms on curves with every bucket
// populated.
#pragma once

#include <optional>

#include "base/time.h"
#include "hedge/planning/policy.h"
#include "stats/curve.h"

namespace tailward::hedge {

struct PlannerInput {
  const stats::Curve* first = nullptr;   // X: first attempts
  const stats::Curve* second = nullptr;  // Y: an attempt elsewhere, given that X was slow
  double goal = 0.99;
  double budget = 0.05;  // hedges per request
  int copies = 2;        // stages at most; more than 2 count as 2
  // A plan that lowers the goal quantile by less than this share is not worth its load: no stages.
  double gain_min = 0.02;
  // Share of requests that are never hedged (control group, slices without hedging): they count
  // for the goal, P = (1 − unhedged) · P(latency > t) + unhedged · S(t), and not for the load.
  double unhedged = 0;
};

struct PlannedHedges {
  enum class Kind {
    kNone,      // nothing to gain, nothing known, or nothing to spend
    kSingle,    // one stage
    kStaged,    // two
    kRationed,  // the goal is out of reach: one stage, spent where it saves most
  };
  Kind kind = Kind::kNone;
  Plan plan;              // fresh_median is left 0
  double extra_load = 0;  // expected, ≤ budget
  // The goal quantile without hedging and with the plan; empty where the curves do not reach it.
  std::optional<Duration> without;
  std::optional<Duration> with;
};

PlannedHedges plan_hedges(const PlannerInput& input);

// What the model says of any plan (its stages in the order of their delays).
stats::Curve predict(const stats::Curve& first, const stats::Curve& second, const Plan& plan);
double expected_extra_load(const stats::Curve& first, const stats::Curve& second, const Plan& plan);

}  // namespace tailward::hedge
