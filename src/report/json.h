// The part of the JSON output that all verbs share. Verbs add their own fields to the envelope, in
// the words of the contract. Keys keep the order in which they were added.
//
// Pure functions, safe from any thread.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "report/report.h"

namespace tailward::report {

using Json = nlohmann::ordered_json;

// {"tailward": version, "command": …, "seed": …, "started": …, "partial": …} and, where known,
// "duration_ms" and "machine".
Json envelope(const RunInfo& run);

// In milliseconds; null where it is not known.
Json ms_or_null(const std::optional<Duration>& duration);

// {"layer": …, "sentence": …, "findings": […]}: of the evidence, the texts.
Json to_json(const findings::Statement& statement);

// [{"name": …, "ok": …, "value": number or text, "bound": …}]
Json to_json(const Checks& checks);

// Indented, with a line end. Bytes that are not UTF-8 become U+FFFD, numbers that are not finite
// null.
std::string to_text(const Json& json);

// On one line, with <, >, & and the Unicode line separators as \u escapes: safe inside a <script>
// element, whatever the strings hold.
std::string to_script_text(const Json& json);

}  // namespace tailward::report
