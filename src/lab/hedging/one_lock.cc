#include "lab/hedging/one_lock.h"

#include <chrono>
#include <utility>

#include "lab/checks.h"

namespace tailward::lab {

using namespace std::chrono_literals;

namespace {

hedge::RouteConfig fixed_50ms(std::uint64_t seed) {
  hedge::RouteConfig route;
  route.policy = {.kind = hedge::Policy::Kind::kFixed, .delay = 50ms};
  route.budget.unlimited = true;  // the article's hedger has none
  route.seed = seed;
  return route;
}

}  // namespace

ArmSpec lock_arm(std::string name, int shards, bool hedged, const Context& context) {
  ArmSpec spec;
  spec.name = std::move(name);
  spec.model = faults::lock_model(shards, context.seed);
  if (hedged) spec.route = fixed_50ms(context.seed);
  spec.requests = context.quick ? 800 : 2000;
  spec.in_flight = 50;
  return spec;
}

ArmSpec adaptive_lock_arm(std::string name, int shards, double budget, const Context& context) {
  ArmSpec spec = lock_arm(std::move(name), shards, false, context);
  spec.route.policy = {.kind = hedge::Policy::Kind::kAdaptive, .goal = 0.99, .copies = 2};
  spec.route.budget = {.share = budget, .burst = 100};
  spec.route.seed = context.seed;
  spec.hosts = 3;
  spec.requests = context.quick ? 8000 : 14'000;
  return spec;
}

report::Check check_layer(std::string name, const ArmResult& arm, findings::Layer layer) {
  report::Check check;
  check.name = std::move(name);
  check.ok = arm.verdict.layer == layer;
  check.value = std::string(to_string(arm.verdict.layer));
  check.bound = std::string(to_string(layer));
  return check;
}

void check_one_lock(HedgingResult& result) {
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
  result.checks.push_back(
      check_layer("the verdict on hedging alone is cause", *fixed, findings::Layer::kCause));
}

void note_lock_semantics(HedgingResult& result) {
  result.notes.push_back(
      "A cancelled request still waits its turn for the lock and holds it for its time, as a mutex "
      "knows "
      "nothing of cancellation; its work behind the lock stops at once.");
}

}  // namespace tailward::lab
