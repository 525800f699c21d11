// `tailward demo`: the story of the three layers, told while it happens.
#pragma once

#include <string>

#include "lab/arm.h"
#include "report/report.h"

namespace tailward::lab {

// What is said before the first arm, before an arm, after it, and at the end. Plain paragraphs.
std::string demo_opening();
std::string demo_before(const std::string& arm);
std::string demo_after(const ArmResult& arm, const ArmResult* unhedged);
std::string demo_closing();

}  // namespace tailward::lab
