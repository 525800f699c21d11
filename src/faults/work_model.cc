#include "faults/work_model.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/check.h"
#include "sim/scenario.h"

namespace tailward::faults {
namespace {

using Json = nlohmann::json;

WorkModel published(const char* name, std::uint64_t seed, sim::Law work) {
  WorkModel model;
  model.name = name;
  model.seed = seed;
  model.work = std::move(work);
  return model;
}

Result<WorkModel> model_named(const std::string& name, int shards, std::uint64_t seed) {
  for (const WorkModel& model : {lock_model(shards, seed), fanout_model(seed),
                                 reference_model(seed), production_model(shards, seed)}) {
    if (model.name == name && model.shards == shards) return model;
  }
  return fail(ErrorKind::kInvalid,
              fmt::format("not a server model: no published server is called '{}' and has {} locks",
                          name, shards));
}

}  // namespace

std::string to_json_text(const WorkModel& model) {
  TAILWARD_CHECK(!model.name.empty());
  return Json{{"name", model.name},
              {"seed", model.seed},
              {"shards", model.shards},
              {"access_log", model.access_log}}
      .dump();
}

Result<WorkModel> parse_work_model(std::string_view json_text) {
  // nlohmann-json reports by exceptions; they end here.
  try {
    const Json json = Json::parse(json_text);
    const int shards = json.at("shards");
    if (shards < 0 || shards > WorkModel::kShardsMax) {
      return fail(ErrorKind::kInvalid,
                  fmt::format("not a server model: it has 0 to {} locks", WorkModel::kShardsMax));
    }
    Result<WorkModel> model = model_named(json.at("name"), shards, json.at("seed"));
    if (model) model->access_log = json.at("access_log");
    return model;
  } catch (const Json::exception& error) {
    return fail(ErrorKind::kInvalid, fmt::format("not a server model: {}", error.what()));
  }
}

WorkModel lock_model(int shards, std::uint64_t seed) {
  WorkModel model = published("lock", seed, sim::locked_work_law());
  model.shards = shards;
  model.hold = sim::locked_hold_law();
  return model;
}

WorkModel fanout_model(std::uint64_t seed) { return published("fanout", seed, sim::fanout_law()); }

WorkModel reference_model(std::uint64_t seed) {
  return published("reference", seed, sim::reference_law());
}

WorkModel production_model(int shards, std::uint64_t seed) {
  WorkModel model = published("production", seed, sim::production_work_law());
  model.shards = shards;
  model.lock_share = 0.8;
  model.hold = sim::production_hold_law();
  return model;
}

}  // namespace tailward::faults
