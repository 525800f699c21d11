// A sequence chart as SVG inside an HTML page: static, readable without scripts, in the colours of
// web/report.css. Internal to report.
//
// Pure functions. All texts are escaped.
#pragma once

#include <string>
#include <string_view>

#include "report/report.h"

namespace tailward::report {

// The class by which report.css colours an emphasis; "" for none.
std::string_view class_of(Emphasis emphasis);

std::string sequence_svg(const SequenceChart& chart);

}  // namespace tailward::report
