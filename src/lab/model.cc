#include "lab/model.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace tailward::lab {
namespace {

using Json = nlohmann::json;
using std::chrono::microseconds;
using std::chrono::milliseconds;

WorkPart uniform(double share, Duration low, Duration high) {
  WorkPart part;
  part.share = share;
  part.low = low;
  part.high = high;
  return part;
}

WorkPart lognormal(double share, Duration mean, Duration sd, double factor = 1) {
  WorkPart part;
  part.share = share;
  part.lognormal = true;
  part.mean = mean;
  part.sd = sd;
  part.factor = factor;
  return part;
}

Json to_json(const WorkPart& part) {
  return {{"share", part.share},          {"lognormal", part.lognormal},
          {"low_ns", part.low.count()},   {"high_ns", part.high.count()},
          {"mean_ns", part.mean.count()}, {"sd_ns", part.sd.count()},
          {"factor", part.factor}};
}

WorkPart part_from(const Json& json) {
  WorkPart part;
  part.share = json.at("share");
  part.lognormal = json.at("lognormal");
  part.low = Duration{json.at("low_ns").get<std::int64_t>()};
  part.high = Duration{json.at("high_ns").get<std::int64_t>()};
  part.mean = Duration{json.at("mean_ns").get<std::int64_t>()};
  part.sd = Duration{json.at("sd_ns").get<std::int64_t>()};
  part.factor = json.at("factor");
  return part;
}

}  // namespace

sim::Law ServerModel::work_law() const {
  std::vector<sim::Law::Part> parts;
  for (const WorkPart& part : work) {
    const sim::Law law = part.lognormal ? sim::Law::lognormal(part.mean, part.sd)
                                        : sim::Law::uniform(part.low, part.high);
    parts.push_back({part.share, law.scaled(part.factor)});
  }
  return parts.empty() ? sim::Law() : sim::Law::mixture(std::move(parts));
}

sim::Law ServerModel::hold_law() const { return sim::Law::uniform(hold_low, hold_high); }

std::string to_json_text(const ServerModel& model) {
  Json json{{"seed", model.seed},
            {"shards", model.shards},
            {"lock_share", model.lock_share},
            {"hold_low_ns", model.hold_low.count()},
            {"hold_high_ns", model.hold_high.count()},
            {"access_log", model.access_log},
            {"work", Json::array()}};
  for (const WorkPart& part : model.work) json["work"].push_back(to_json(part));
  return json.dump();
}

Result<ServerModel> parse_model(std::string_view json_text) {
  // nlohmann-json reports by exceptions; they end here.
  try {
    const Json json = Json::parse(json_text);
    ServerModel model;
    model.seed = json.at("seed");
    model.shards = json.at("shards");
    model.lock_share = json.at("lock_share");
    model.hold_low = Duration{json.at("hold_low_ns").get<std::int64_t>()};
    model.hold_high = Duration{json.at("hold_high_ns").get<std::int64_t>()};
    model.access_log = json.at("access_log");
    for (const Json& part : json.at("work")) model.work.push_back(part_from(part));
    if (model.shards < 0 || model.shards > 16 || model.hold_low > model.hold_high) {
      return fail(ErrorKind::kInvalid, "the model has 0 to 16 shards and a rising hold time");
    }
    return model;
  } catch (const Json::exception& error) {
    return fail(ErrorKind::kInvalid, fmt::format("not a server model: {}", error.what()));
  }
}

ServerModel lock_model(int shards, std::uint64_t seed) {
  ServerModel model;
  model.seed = seed;
  model.shards = shards;
  model.hold_low = milliseconds(1);
  model.hold_high = milliseconds(2);
  model.work = {uniform(0.9, milliseconds(10), milliseconds(50)),
                uniform(0.1, milliseconds(200), milliseconds(500))};
  return model;
}

ServerModel fanout_model(std::uint64_t seed) {
  ServerModel model;
  model.seed = seed;
  model.work = {uniform(0.99, milliseconds(10), milliseconds(100)),
                uniform(0.01, milliseconds(1000), milliseconds(2000))};
  return model;
}

ServerModel reference_model(std::uint64_t seed) {
  ServerModel model;
  model.seed = seed;
  model.work = {lognormal(0.95, milliseconds(5), milliseconds(2)),
                lognormal(0.05, milliseconds(5), milliseconds(2), 10)};
  return model;
}

ServerModel production_model(int shards, std::uint64_t seed) {
  ServerModel model;
  model.seed = seed;
  model.shards = shards;
  model.lock_share = 0.8;
  model.hold_low = microseconds(300);
  model.hold_high = microseconds(700);
  model.work = {lognormal(0.9993, milliseconds(16), milliseconds(8)),
                uniform(0.0007, milliseconds(800), milliseconds(1200))};
  return model;
}

}  // namespace tailward::lab
