// The files of web/ that an HTML report is made of, embedded at build time (web/embed.cmake).
#pragma once

#include <string_view>

namespace tailward::report {

std::string_view report_css();
std::string_view report_js();
std::string_view uplot_css();
std::string_view uplot_js();
std::string_view uplot_license();

}  // namespace tailward::report
