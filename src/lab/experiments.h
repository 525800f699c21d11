// The list of experiments: `tailward lab list`.
//
// Thread safety: any thread.
#pragma once

#include <string_view>
#include <vector>

#include "lab/experiment.h"

namespace tailward::lab {

// In the order in which they tell the story.
const std::vector<Experiment>& experiments();

// Error: kInvalid, with the known names as hint.
Result<const Experiment*> find_experiment(std::string_view name);

}  // namespace tailward::lab
