#include "lab/experiments.h"

#include <fmt/format.h>

#include "lab/hedging/cost.h"
#include "lab/hedging/drift.h"
#include "lab/hedging/falsification.h"
#include "lab/hedging/fanout.h"
#include "lab/hedging/production.h"
#include "lab/hedging/reference.h"
#include "lab/hedging/three_layer.h"
#include "lab/tcp/buffers.h"
#include "lab/tcp/interlock.h"
#include "lab/tcp/nodelay_batch.h"
#include "lab/tcp/nodelay_reqresp.h"

namespace tailward::lab {

const std::vector<Experiment>& experiments() {
  static const std::vector<Experiment> kExperiments{
      falsification(), three_layer(),     cost(),      fanout(), production(), reference(), drift(),
      nodelay_batch(), nodelay_reqresp(), interlock(), buffers()};
  return kExperiments;
}

Result<const Experiment*> find_experiment(std::string_view name) {
  std::string names;
  for (const Experiment& experiment : experiments()) {
    if (experiment.name == name) return &experiment;
    names += (names.empty() ? "" : ", ") + experiment.name;
  }
  return fail(ErrorKind::kInvalid, fmt::format("there is no experiment '{}'", name),
              "one of: " + names);
}

}  // namespace tailward::lab
