// What an experiment claims about its own figures: a number, and the bound that it must keep.
//
// Thread safety: pure functions.
#pragma once

#include <string>

#include "report/report.h"

namespace tailward::lab {

// value ÷ base; 0 when base is not above 0.
double ratio(double value, double base);

// A bound itself is kept by check_between() only.
report::Check check_above(std::string name, double value, double bound);
report::Check check_below(std::string name, double value, double bound);
report::Check check_between(std::string name, double value, double low, double high);

}  // namespace tailward::lab
