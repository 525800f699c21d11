// Diagnosis scored against sick servers: each sickness so many times, live, and again from the
// capture of the same run. The first finding must name the sickness; a healthy server must get
// none.
//
// Thread safety: one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "diagnose/diagnosis.h"
#include "findings/statement.h"
#include "lab/sick.h"
#include "report/json.h"
#include "report/report.h"

namespace tailward::lab {

struct TruthOptions {
  std::vector<Sickness> which;  // empty: all
  std::uint64_t runs = 20;      // of each
  std::uint64_t seed = 1;
  double severity = 1;
  Duration watch = std::chrono::seconds(4);
  std::string keep_in = {};  // the captures stay in this folder; empty: they go
};

// One diagnosis of one run.
struct TruthCase {
  diag::Cause sick = diag::Cause::kNone;
  std::uint64_t seed = 0;
  bool over_link = false;
  std::string from;                        // "live", "capture", "client's capture"
  diag::Cause found = diag::Cause::kNone;  // the first finding
  findings::Certainty certainty = findings::Certainty::kGuessed;
  bool layer_right = false;
  std::uint64_t requests = 0;
  std::string sentence;
  [[nodiscard]] bool right() const { return found == sick; }
};

struct Truth {
  std::vector<TruthCase> cases;
  std::vector<std::string> failed;  // runs that could not be made, with why
  bool partial = false;
  [[nodiscard]] std::uint64_t right(std::string_view from) const;
  [[nodiscard]] std::uint64_t count(std::string_view from) const;
  // At least 95 % of the live runs and of the captures of each cause, and no finding on any healthy
  // one.
  [[nodiscard]] bool ok() const;
};

Result<Truth> find_truth(const TruthOptions& options, const diagnose::Hooks& hooks);

report::Report to_report(const Truth& truth, const TruthOptions& options,
                         const report::RunInfo& run);
report::Json to_json(const Truth& truth, const TruthOptions& options, const report::RunInfo& run);

}  // namespace tailward::lab
