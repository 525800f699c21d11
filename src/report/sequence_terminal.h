// A sequence chart as lines of text. Internal to report.
//
// Pure functions. Texts come out printable.
#pragma once

#include <string>
#include <vector>

#include "report/report.h"

namespace tailward::report {

// One line, in three pieces that follow each other. None ends in blanks where nothing follows.
struct LadderLine {
  std::string time;     // padded
  std::string picture;  // the two lifelines and what is between them; padded where a label follows
  std::string label = {};
  Emphasis emphasis = Emphasis::kNone;
  bool is_gap = false;
};

// Lines of at most `width` columns, from 40 on.
std::vector<LadderLine> ladder_lines(const SequenceChart& chart, int width);

}  // namespace tailward::report
