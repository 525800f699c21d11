// What an experiment is, and what all results have in common. Each experiment stands in a file of
// its name, in lab/hedging/ or lab/tcp/; lab/experiments.h lists them.
//
// A result belongs to a family (hedging, drift, TCP): the family has its own figures, tables and
// JSON. Whoever runs an experiment needs none of them: this interface is enough.
//
// Thread safety: one thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "findings/statement.h"
#include "lab/context.h"
#include "report/json.h"
#include "report/report.h"

namespace tailward::lab {

class ExperimentResult {
 public:
  virtual ~ExperimentResult() = default;

  findings::Statement verdict;  // of the experiment as a whole
  std::vector<report::Check> checks;
  std::vector<std::string> notes;
  bool partial = false;  // ended early by the user

  // Every claim holds. A partial result claims nothing.
  [[nodiscard]] bool ok() const;

  // Adds tables, charts, checks and notes, in the order in which the family shows them.
  virtual void add_to(report::Report& report) const = 0;
  // One object for each arm.
  [[nodiscard]] virtual report::Json arms_json() const = 0;

 protected:
  ExperimentResult() = default;
  ExperimentResult(const ExperimentResult&) = default;
  ExperimentResult(ExperimentResult&&) = default;
  ExperimentResult& operator=(const ExperimentResult&) = default;
  ExperimentResult& operator=(ExperimentResult&&) = default;

  // For add_to(): the checks, unless the result is partial; and the notes.
  void add_checks(report::Report& report) const;
  void add_notes(report::Report& report) const;
};

using AnyResult = Result<std::unique_ptr<ExperimentResult>>;

struct Experiment {
  std::string name;
  std::string title;
  std::string about;  // one line: what it shows
  std::vector<std::string> arms;
  std::string about_time;  // how long it takes: "about 20 s"
  // Errors: a server cannot be started or has died, a network cannot be made; with a hint.
  AnyResult (*run)(Context& context);
  bool takes_goal = false;  // Context's goal and budget mean something to it
};

// A family's result, as any result.
template <class R>
AnyResult any_result(Result<R>&& result) {
  if (!result) return fail(result.error());
  return std::unique_ptr<ExperimentResult>(std::make_unique<R>(std::move(*result)));
}

// The result for people, and for scripts. The JSON's fields are a contract: add, never rename.
report::Report to_report(const Experiment& experiment, const ExperimentResult& result,
                         const report::RunInfo& run);
report::Json to_json(const Experiment& experiment, const ExperimentResult& result,
                     const report::RunInfo& run);

}  // namespace tailward::lab
