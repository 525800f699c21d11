// `tailward demo`: the story of the three layers, told while it happens.
#pragma once

#include <string>
#include <vector>

#include "lab/hedging/arm.h"
#include "lab/hedging/hedging_result.h"
#include "report/report.h"

namespace tailward::lab {

// What is said before the first arm, before an arm, after it, and at the end. Plain paragraphs.
std::string demo_opening();
std::string demo_before(const std::string& arm);
std::string demo_after(const ArmResult& arm, const ArmResult* unhedged);
// As the story goes when every one of `checks` holds; otherwise which of them do not.
std::string demo_closing(const std::vector<report::Check>& checks);

// What the story says beyond the checks of its experiment: hedging alone lowers the client's P99.
report::Check demo_check(const HedgingResult& result);

}  // namespace tailward::lab
