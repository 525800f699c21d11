#include "hedge_report/hedging_json.h"

#include <optional>

namespace tailward::hedge_report {
namespace {

using report::Json;

using report::ms_or_null;

Json stages_json(const hedge::Plan& plan) {
  Json stages = Json::array();
  for (int i = 0; i < plan.stages; ++i) {
    const hedge::Stage& stage = plan.stage[static_cast<std::size_t>(i)];
    stages.push_back({{"delay_ms", to_ms(stage.delay)}, {"probability", stage.probability}});
  }
  return stages;
}

}  // namespace

Json plan_json(const hedge::Plan& plan) { return {{"stages", stages_json(plan)}}; }

Json plan_json(const hedge::PlannedHedges& planned) {
  Json json = plan_json(planned.plan);
  json["extra_load"] = planned.extra_load;
  json["goal_without_ms"] = ms_or_null(planned.without);
  json["goal_with_ms"] = ms_or_null(planned.with);
  return json;
}

Json proof_json(const hedge::Proof& proof) {
  Json saved = Json::array();
  for (const hedge::Saving& saving : proof.savings) {
    if (proof.control_requests == 0) break;
    saved.push_back({{"quantile", saving.quantile},
                     {"control_ms", to_ms(saving.control)},
                     {"hedged_ms", to_ms(saving.hedged)},
                     {"saved_ms", to_ms(saving.saved)},
                     {"low_ms", saving.bounded ? Json(to_ms(saving.low)) : Json()},
                     {"high_ms", saving.bounded ? Json(to_ms(saving.high)) : Json()}});
  }
  const hedge::SwitchbackEffect& effect = proof.switchback;
  const auto known = [&effect](Duration value) {
    return effect.known ? Json(to_ms(value)) : Json();
  };
  const auto p99 = [&effect](Duration value) {
    return effect.p99_known ? Json(to_ms(value)) : Json();
  };
  const hedge::DependenceEstimate& dependence = proof.dependence;
  const bool pairs = dependence.pairs > 0;
  return {{"control", {{"requests", proof.control_requests}, {"saved", std::move(saved)}}},
          {"switchback",
           {{"pairs", effect.pairs},
            {"p50_effect_ms", known(effect.p50)},
            {"p50_low_ms", known(effect.p50_low)},
            {"p50_high_ms", known(effect.p50_high)},
            {"p99_effect_ms", p99(effect.p99)},
            {"p99_low_ms", p99(effect.p99_low)},
            {"p99_high_ms", p99(effect.p99_high)},
            {"p50_without_ms", known(effect.p50_without)},
            {"extra_load", effect.known ? Json(effect.extra_load) : Json()}}},
          {"dependence",
           {{"pairs", dependence.pairs},
            {"ratio", pairs ? Json(dependence.ratio) : Json()},
            {"low", pairs ? Json(dependence.low) : Json()},
            {"high", pairs ? Json(dependence.high) : Json()}}}};
}

Json decisions_json(const hedge::Route& route, TimePoint now) {
  Json list = Json::array();
  const hedge::Decisions& decisions = route.decisions();
  for (std::size_t back = 0; back < decisions.size(); ++back) {
    const hedge::Decision& one = decisions.last(back);
    const bool planned = one.delay < kForever;
    const bool answered = one.winner != UINT8_MAX;
    list.push_back(
        {{"request", one.request},
         {"ago_ms", to_ms(now - one.at)},
         {"latency_ms", to_ms(one.latency)},
         {"host", one.host == hedge::kNoHost ? Json() : Json(route.hosts().at(one.host).name)},
         {"group", to_string(one.group)},
         {"delay_ms", planned ? Json(to_ms(one.delay)) : Json()},
         {"due", one.due},
         {"hedges", one.hedges},
         {"winner", answered ? Json(one.winner) : Json()},
         {"denied", one.was_denied ? Json(to_string(one.denied)) : Json()}});
  }
  return list;
}

}  // namespace tailward::hedge_report
