// Diagnosis scored against faulty servers (faults/fault.h): each fault several times, live, and
// again from the captures of the same run. The first finding must name the fault; a healthy server
// must get none.
//
// Thread safety: one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/diagnosis.h"
#include "faults/fault.h"
#include "report/json.h"
#include "report/report.h"

namespace tailward::lab {

struct ScorecardOptions {
  std::vector<faults::ServerFault> which;  // empty: all
  std::uint64_t runs = 20;                 // of each
  std::uint64_t seed = 1;
  double severity = 1;
  Duration watch = std::chrono::seconds(4);
  std::string keep_in = {};  // the folder for the captures; empty: they are deleted
};

// One diagnosis of one run.
struct ScoredRun {
  diag::Cause fault = diag::Cause::kNone;
  std::uint64_t seed = 0;
  bool over_link = false;
  std::string from;  // what was diagnosed: "live", "capture", "client's capture"
  diag::Cause found = diag::Cause::kNone;  // the first finding
  findings::Certainty certainty = findings::Certainty::kGuessed;
  bool layer_right = false;
  std::uint64_t requests = 0;
  std::string sentence;
  [[nodiscard]] bool right() const { return found == fault; }
};

struct Scorecard {
  std::vector<ScoredRun> cases;
  std::vector<std::string> failed;  // runs that could not be made, with the reason
  bool partial = false;
  [[nodiscard]] std::uint64_t right(std::string_view from) const;
  [[nodiscard]] std::uint64_t count(std::string_view from) const;
  // At least 95 % of the live runs and of the captures of each cause, and no finding on any healthy
  // one.
  [[nodiscard]] bool ok() const;
};

// Errors: kDenied, without the right to make a network or a capture; then nothing can be scored.
Result<Scorecard> make_scorecard(const ScorecardOptions& options, const diagnose::Hooks& hooks);

report::Report to_report(const Scorecard& scorecard, const ScorecardOptions& options,
                         const report::RunInfo& run);
report::Json to_json(const Scorecard& scorecard, const ScorecardOptions& options,
                     const report::RunInfo& run);

}  // namespace tailward::lab
