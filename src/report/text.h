// Text as it is laid out on a terminal or put into HTML. Internal to report.
//
// Pure functions. Any bytes are accepted: what is not UTF-8 comes out as U+FFFD.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tailward::report {

// Valid UTF-8 that moves no cursor: control characters and bidirectional overrides become U+FFFD;
// a line end or tab becomes a blank.
std::string printable(std::string_view text);

// Display columns of printable text: combining marks take none, East Asian wide characters two.
int display_width(std::string_view text);

// Breaks printable text at blanks into lines of at most `width` columns; a word longer than that is
// broken anywhere. Blanks before the first word are kept where they fit. At least one line.
std::vector<std::string> wrap(std::string_view text, int width);

// The width of the longest word.
int longest_word(std::string_view text);

// Text for HTML content and for attributes in double quotes.
std::string html_escaped(std::string_view text);

}  // namespace tailward::report
