#include "report/json.h"

namespace tailward::report {

Json ms_or_null(const std::optional<Duration>& duration) {
  return duration ? Json(to_ms(*duration)) : Json();
}

Json envelope(const RunInfo& run) {
  Json json{{"tailward", run.version},
            {"command", run.command},
            {"seed", run.seed},
            {"started", run.started},
            {"partial", run.partial}};
  if (run.duration) json["duration_ms"] = to_ms(*run.duration);
  if (run.machine.cores > 0 || !run.machine.kernel.empty()) {
    json["machine"] = {{"cores", run.machine.cores}, {"kernel", run.machine.kernel}};
  }
  return json;
}

Json to_json(const findings::Statement& statement) {
  Json texts = Json::array();
  for (const findings::Evidence& evidence : statement.evidence) texts.push_back(evidence.text);
  return {{"layer", to_string(statement.layer)},
          {"sentence", statement.sentence},
          {"findings", std::move(texts)}};
}

Json to_json(const Checks& checks) {
  Json list = Json::array();
  for (const Check& check : checks.checks) {
    list.push_back({{"name", check.name},
                    {"ok", check.ok},
                    {"value", check.number ? Json(*check.number) : Json(check.value)},
                    {"bound", check.bound}});
  }
  return list;
}

std::string to_text(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string to_script_text(const Json& json) {
  // Only strings can hold these characters, and there a \u escape means the same. Everything beyond
  // ASCII is escaped by dump(), which covers U+2028 and U+2029.
  std::string out;
  for (const char c : json.dump(-1, ' ', true, Json::error_handler_t::replace)) {
    switch (c) {
      case '<':
        out += "\\u003c";
        break;
      case '>':
        out += "\\u003e";
        break;
      case '&':
        out += "\\u0026";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace tailward::report
