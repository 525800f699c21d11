// The experiments, by name: what each claims, how it is run, and what came out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "findings/statement.h"
#include "lab/arm.h"
#include "lab/drift.h"
#include "lab/tcp_arm.h"
#include "report/json.h"
#include "report/report.h"

namespace tailward::lab {

struct ExperimentResult {
  std::vector<ArmResult> arms;
  std::vector<Drift> drift;     // of `drift` only: one for each arm
  std::vector<TcpArm> tcp;      // of the TCP experiments, which have no other arms
  findings::Statement verdict;  // of the experiment as a whole
  std::vector<report::Check> checks;
  std::vector<std::string> notes;
  bool partial = false;

  // Every claim holds. A partial result claims nothing.
  [[nodiscard]] bool ok() const;
  [[nodiscard]] const ArmResult* find(std::string_view arm) const;
};

struct Experiment {
  std::string name;
  std::string title;
  std::string about;  // one line: what it shows
  std::vector<std::string> arms;
  std::string about_time;  // "about 20 s"
  Result<ExperimentResult> (*run)(Context& context);
  bool takes_goal = false;  // Context's goal and budget mean something to it
};

// In the order in which they tell the story.
const std::vector<Experiment>& experiments();

// kInvalid with the known names as hint.
Result<const Experiment*> find_experiment(std::string_view name);

// Runs the arms one after another, `context.runs` times in turns (A B A B …), and merges each arm's
// runs. Stops at the first error; an interrupt ends it with what there is, marked partial.
Result<ExperimentResult> run_arms(const std::vector<ArmSpec>& specs, Context& context);

// Puts the same arm's next run to those before it.
void merge_runs(ArmResult& into, ArmResult&& run);

// value ÷ base; 0 when base is not above 0.
double ratio(double value, double base);

// A claim about a number, for the checks.
report::Check check_above(std::string name, double value, double bound);
report::Check check_below(std::string name, double value, double bound);
report::Check check_between(std::string name, double value, double low, double high);

// The result for people, and for scripts. The JSON's fields are a contract: add, never rename.
report::Report to_report(const Experiment& experiment, const ExperimentResult& result,
                         const report::RunInfo& run);
report::Json to_json(const Experiment& experiment, const ExperimentResult& result,
                     const report::RunInfo& run);

// One for each file that defines some.
Result<ExperimentResult> run_falsification(Context& context);
Result<ExperimentResult> run_three_layer(Context& context);
Result<ExperimentResult> run_cost(Context& context);
Result<ExperimentResult> run_fanout(Context& context);
Result<ExperimentResult> run_production(Context& context);
Result<ExperimentResult> run_reference(Context& context);
Result<ExperimentResult> run_drift(Context& context);
Result<ExperimentResult> run_nodelay_batch(Context& context);
Result<ExperimentResult> run_nodelay_reqresp(Context& context);
Result<ExperimentResult> run_interlock(Context& context);
Result<ExperimentResult> run_buffers(Context& context);

}  // namespace tailward::lab
