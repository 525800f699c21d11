#include "lab/experiment.h"

#include <algorithm>

namespace tailward::lab {
bool ExperimentResult::ok() const {
  return !partial &&
         std::all_of(checks.begin(), checks.end(), [](const auto& check) { return check.ok; });
}

void ExperimentResult::add_checks(report::Report& report) const {
  if (!partial) report.add(report::Checks{"What it shows", checks});
}

void ExperimentResult::add_notes(report::Report& report) const {
  for (const std::string& note : notes) {
    report.add(report::Note{report::NoteKind::kNote, note});
  }
}

report::Report to_report(const Experiment& experiment, const ExperimentResult& result,
                         const report::RunInfo& run) {
  report::Report report;
  report.title = experiment.title;
  report.summary = experiment.about + ".";
  report.run = run;
  result.add_to(report);
  return report;
}

report::Json to_json(const Experiment& experiment, const ExperimentResult& result,
                     const report::RunInfo& run) {
  report::Json json = report::envelope(run);
  json["experiment"] = experiment.name;
  json["arms"] = result.arms_json();
  json["verdict"] = report::to_json(result.verdict);
  json["checks"] = report::to_json(
      report::Checks{"", result.partial ? std::vector<report::Check>{} : result.checks});
  json["notes"] = result.notes;
  return json;
}

}  // namespace tailward::lab
