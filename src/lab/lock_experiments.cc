// The article's experiments on one lock: falsification, three-layer, cost.
#include <fmt/format.h>

#include "lab/experiment.h"

namespace tailward::lab {
namespace {

using namespace std::chrono_literals;

hedge::RouteConfig fixed_50ms(std::uint64_t seed) {
  hedge::RouteConfig route;
  route.policy = {.kind = hedge::Policy::Kind::kFixed, .delay = 50ms};
  route.budget.unlimited = true;  // the article's hedger has none
  route.seed = seed;
  return route;
}

ArmSpec lock_arm(std::string name, int shards, bool hedged, const Context& context) {
  ArmSpec spec;
  spec.name = std::move(name);
  spec.model = lock_model(shards, context.seed);
  if (hedged) spec.route = fixed_50ms(context.seed);
  spec.requests = context.quick ? 800 : 2000;
  spec.in_flight = 50;
  return spec;
}

// What hedging does to one contended lock, the same in all three experiments.
void check_one_lock(ExperimentResult& result) {
  const ArmResult* none = result.find("none");
  const ArmResult* fixed = result.find("fixed");
  if (none == nullptr || fixed == nullptr) return;
  result.checks.push_back(check_above("hedging alone worsens P50 (times that of no hedging)",
                                      ratio(fixed->ms(0.5), none->ms(0.5)), 1.5));
  result.checks.push_back(check_above("nearly every request is hedged (trigger rate)",
                                      fixed->counters.trigger_rate(), 0.9));
  result.checks.push_back(check_above("the server gets twice the requests (times)",
                                      ratio(static_cast<double>(fixed->server.requests),
                                            static_cast<double>(none->server.requests)),
                                      1.9));
  result.checks.push_back(
      check_above("the lock's wait grows (times)",
                  ratio(to_ms(fixed->server.lock_wait), to_ms(none->server.lock_wait)), 4));
  report::Check verdict;
  verdict.name = "the verdict on hedging alone is cause";
  verdict.ok = fixed->verdict.layer == hedge::Layer::kCause;
  verdict.value = std::string(hedge::to_string(fixed->verdict.layer));
  verdict.bound = "cause";
  result.checks.push_back(verdict);
}

void note_lock_semantics(ExperimentResult& result) {
  result.notes.push_back(
      "A cancelled request still waits its turn for the lock and holds it for its time, as a mutex "
      "knows "
      "nothing of cancellation; its work behind the lock stops at once.");
}

}  // namespace

Result<ExperimentResult> run_falsification(Context& context) {
  Result<ExperimentResult> result =
      run_arms({lock_arm("none", 1, false, context), lock_arm("fixed", 1, true, context)}, context);
  if (!result) return result;
  for (ArmResult& arm : result->arms) {
    if (arm.name == "none") {
      arm.published = {.p50_ms = 50.4,
                       .p95_ms = 375.8,
                       .p99_ms = 486.4,
                       .server_requests = 2000,
                       .hedges = 0,
                       .lock_wait_ms = 37290};
    } else {
      arm.published = {.p50_ms = 156.0,
                       .p95_ms = 207.1,
                       .p99_ms = 237.5,
                       .server_requests = 3991,
                       .hedges = 1991,
                       .lock_wait_ms = 465150};
    }
  }
  check_one_lock(*result);
  const ArmResult* none = result->find("none");
  const ArmResult* fixed = result->find("fixed");
  if (none != nullptr && fixed != nullptr) {
    result->checks.push_back(check_below("the client's P99 looks better (times that of no hedging)",
                                         ratio(fixed->ms(0.99), none->ms(0.99)), 1));
    result->verdict = fixed->verdict;
  }
  note_lock_semantics(*result);
  return result;
}

Result<ExperimentResult> run_three_layer(Context& context) {
  Result<ExperimentResult> result =
      run_arms({lock_arm("none", 1, false, context), lock_arm("fixed", 1, true, context),
                lock_arm("sharded-fixed", 16, true, context)},
               context);
  if (!result) return result;
  for (ArmResult& arm : result->arms) {
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
    } else {
      arm.published = {.p50_ms = 34.4,
                       .p95_ms = 82.3,
                       .p99_ms = 103.6,
                       .server_requests = 2265,
                       .hedges = 294,
                       .extra_load = 0.133};
    }
  }
  check_one_lock(*result);
  const ArmResult* none = result->find("none");
  const ArmResult* sharded = result->find("sharded-fixed");
  if (none != nullptr && sharded != nullptr) {
    result->checks.push_back(check_below("sharding the lock first lowers P50 (times)",
                                         ratio(sharded->ms(0.5), none->ms(0.5)), 1));
    result->checks.push_back(
        check_below("and P99 (times)", ratio(sharded->ms(0.99), none->ms(0.99)), 1));
    result->checks.push_back(
        check_below("for little extra load", sharded->counters.extra_load(), 0.20));
    result->checks.push_back(check_between("with hedges as the backstop (trigger rate)",
                                           sharded->counters.trigger_rate(), 0.10, 0.20));
    report::Check verdict;
    verdict.name = "the verdict on the cured service is not cause";
    verdict.ok = sharded->verdict.layer == hedge::Layer::kHealthy ||
                 sharded->verdict.layer == hedge::Layer::kWatch;
    verdict.value = std::string(hedge::to_string(sharded->verdict.layer));
    verdict.bound = "healthy, or watch";
    result->checks.push_back(verdict);
  }
  if (const ArmResult* fixed = result->find("fixed")) result->verdict = fixed->verdict;
  note_lock_semantics(*result);
  return result;
}

Result<ExperimentResult> run_cost(Context& context) {
  std::vector<ArmSpec> specs{lock_arm("none", 1, false, context),
                             lock_arm("fixed", 1, true, context)};
  for (ArmSpec& spec : specs) spec.model.access_log = true;
  Result<ExperimentResult> result = run_arms(specs, context);
  if (!result) return result;
  for (ArmResult& arm : result->arms) {
    if (arm.name == "none") {
      arm.published = {
          .p50_ms = 57.5, .p95_ms = 356.7, .p99_ms = 478.3, .hedges = 0, .memory_mb = 13.99};
    } else {
      arm.published = {
          .p50_ms = 156.2, .p95_ms = 207.0, .p99_ms = 236.6, .hedges = 1987, .memory_mb = 77.67};
    }
  }
  check_one_lock(*result);
  const ArmResult* none = result->find("none");
  const ArmResult* fixed = result->find("fixed");
  if (none != nullptr && fixed != nullptr) {
    result->checks.push_back(check_above("the server's log doubles (times)",
                                         ratio(static_cast<double>(fixed->server.log_lines),
                                               static_cast<double>(none->server.log_lines)),
                                         1.9));
    if (none->heap.allocated_bytes > 0) {
      result->checks.push_back(check_above("the client allocates more (times)",
                                           ratio(static_cast<double>(fixed->heap.allocated_bytes),
                                                 static_cast<double>(none->heap.allocated_bytes)),
                                           1.3));
    }
    result->verdict = fixed->verdict;
  }
  result->notes.push_back(
      "The article's memory is a Go heap with its garbage; ours is what the C++ client allocated, "
      "so only the "
      "ratio between the arms compares.");
  note_lock_semantics(*result);
  return result;
}

}  // namespace tailward::lab
