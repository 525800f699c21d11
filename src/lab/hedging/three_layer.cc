#include "lab/hedging/three_layer.h"

#include "lab/checks.h"
#include "lab/hedging/one_lock.h"
#include "lab/hedging/run_arms.h"

namespace tailward::lab {
namespace {

// What the adaptive policy makes of one contended lock.
void check_adaptive(HedgingResult& result) {
  const ArmResult* none = result.find("none");
  const ArmResult* adaptive = result.find("adaptive");
  if (none == nullptr || adaptive == nullptr) return;
  result.checks.push_back(check_below("adaptive leaves P50 alone (times that of no hedging)",
                                      ratio(adaptive->ms(0.5), none->ms(0.5)), 1.1));
  result.checks.push_back(
      check_below("adaptive: extra load", adaptive->counters.extra_load(), 0.10));
  result.checks.push_back(
      check_layer("adaptive finds the cause by itself", *adaptive, findings::Layer::kCause));
  result.checks.push_back(check_between("and has switched hedging off after (s)",
                                        adaptive->off_after_seconds.value_or(-1), 0, 10));
}

// With as much to spend as the fixed delay spends (14 % in the article), and like it without a
// control group and slices without hedging. It learns before its requests are counted.
ArmSpec sharded_adaptive(const Context& context) {
  ArmSpec spec = adaptive_lock_arm("sharded-adaptive", 16, 0.143, context);
  // A seventh of the requests hedged: their number swings by as much again.
  spec.route.budget.in_flight_share = 0.5;
  spec.route.proof.control_share = 0;
  spec.route.proof.switchback.enabled = false;
  spec.warm_up = 4000;
  spec.requests = context.quick ? 2000 : 6000;
  return spec;
}

void check_sharded_adaptive(HedgingResult& result) {
  const ArmResult* fixed = result.find("sharded-fixed");
  const ArmResult* adaptive = result.find("sharded-adaptive");
  if (fixed == nullptr || adaptive == nullptr) return;
  result.checks.push_back(check_below("sharded-adaptive: P99 (times sharded-fixed)",
                                      ratio(adaptive->ms(0.99), fixed->ms(0.99)), 1.0 + 1e-9));
  result.checks.push_back(check_below(
      "for no more extra load (times sharded-fixed)",
      ratio(adaptive->counters.extra_load(), fixed->counters.extra_load()), 1.0 + 1e-9));
  result.checks.push_back(check_layer("the verdict on the cured service, hedged adaptively",
                                      *adaptive, findings::Layer::kHealthy));
}

void note_adaptive(HedgingResult& result) {
  for (const ArmResult& arm : result.arms) {
    if (arm.proof) result.notes.push_back(arm.name + ": " + arm.verdict.sentence);
  }
  result.notes.push_back(
      "The adaptive arms run longer than the others, all of it counted in adaptive: they learn, "
      "try "
      "hedging in turns with none, and decide. sharded-adaptive has learned before it is counted, "
      "and like its rival has no control group.");
}

void add_published(HedgingResult& result) {
  for (ArmResult& arm : result.arms) {
    if (arm.name == "none") {
      arm.published = {
          .p50_ms = 55.2, .p95_ms = 364.9, .p99_ms = 482.9, .server_requests = 2000, .hedges = 0};
    } else if (arm.name == "fixed") {
      arm.published = {.p50_ms = 156.0,
                       .p95_ms = 206.3,
                       .p99_ms = 387.2,
                       .server_requests = 3992,
                       .hedges = 1993,
                       .extra_load = 0.996};
    } else if (arm.name == "sharded-fixed") {
      arm.published = {.p50_ms = 34.4,
                       .p95_ms = 82.3,
                       .p99_ms = 103.6,
                       .server_requests = 2265,
                       .hedges = 294,
                       .extra_load = 0.133};
    }
  }
}

// With the cause treated first, a fixed delay is a backstop.
void check_sharded_fixed(HedgingResult& result) {
  const ArmResult* none = result.find("none");
  const ArmResult* sharded = result.find("sharded-fixed");
  if (none == nullptr || sharded == nullptr) return;
  result.checks.push_back(check_below("sharding the lock first lowers P50 (times)",
                                      ratio(sharded->ms(0.5), none->ms(0.5)), 1));
  result.checks.push_back(
      check_below("and P99 (times)", ratio(sharded->ms(0.99), none->ms(0.99)), 1));
  result.checks.push_back(
      check_below("for little extra load", sharded->counters.extra_load(), 0.20));
  result.checks.push_back(check_between("with hedges as the backstop (trigger rate)",
                                        sharded->counters.trigger_rate(), 0.10, 0.20));
  report::Check verdict;
  verdict.name = "the verdict on the cured service is not cause";
  verdict.ok = sharded->verdict.layer == findings::Layer::kHealthy ||
               sharded->verdict.layer == findings::Layer::kWatch;
  verdict.value = std::string(to_string(sharded->verdict.layer));
  verdict.bound = "healthy, or watch";
  result.checks.push_back(verdict);
}

}  // namespace

Result<HedgingResult> run_three_layer(Context& context) {
  std::vector<ArmSpec> specs{lock_arm("none", 1, false, context),
                             lock_arm("fixed", 1, true, context)};
  if (!context.story_only) specs.push_back(adaptive_lock_arm("adaptive", 1, 0.10, context));
  specs.push_back(lock_arm("sharded-fixed", 16, true, context));
  if (!context.story_only) specs.push_back(sharded_adaptive(context));
  Result<HedgingResult> result = run_arms(specs, context);
  if (!result) return result;
  add_published(*result);
  check_one_lock(*result);
  check_adaptive(*result);
  check_sharded_adaptive(*result);
  check_sharded_fixed(*result);
  if (const ArmResult* fixed = result->find("fixed")) result->verdict = fixed->verdict;
  if (!context.story_only) note_adaptive(*result);
  note_lock_semantics(*result);
  return result;
}

Experiment three_layer() {
  return {.name = "three-layer",
          .title = "Treat the symptom, or the cause first?",
          .about = "one lock and sixteen, without hedging, with a fixed delay, and adaptively",
          .arms = {"none", "fixed", "adaptive", "sharded-fixed", "sharded-adaptive"},
          .about_time = "about 60 s",
          .run = [](Context& context) { return any_result(run_three_layer(context)); }};
}

}  // namespace tailward::lab
