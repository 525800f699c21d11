// A report as one HTML file that needs nothing else: styles, script, the uPlot library and the data
// are inside, and its content security policy forbids every network access. Tables, verdicts and
// checks are plain HTML and readable without scripts; charts then show their figures as a table.
//
// Pure function, safe from any thread. All texts are escaped.
#pragma once

#include <string>

#include "report/report.h"

namespace tailward::report {

std::string to_html(const Report& report);

}  // namespace tailward::report
