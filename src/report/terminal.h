// A report as text for a terminal, a log or a mail.
//
// Pure functions, safe from any thread. Control characters and bidirectional overrides in the
// report's texts never reach the terminal: they come out as U+FFFD.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/time.h"
#include "report/report.h"

namespace tailward::report {

struct TerminalStyle {
  int width = 80;  // display columns; no line is longer, save for a word that cannot be broken
  bool color = false;
};

// What the caller found out about where its output goes.
struct TerminalFlags {
  bool is_terminal = false;
  bool no_color = false;  // NO_COLOR is set and not empty, or --no-color
  bool dumb = false;      // TERM is unset or "dumb"
  int columns = 0;        // of the window; 0: not known
};

inline constexpr int kMinWidth = 40;
inline constexpr int kMaxWidth = 120;  // longer lines of text are hard to read

// Colour only on a capable terminal that did not refuse it; width 80 where there is no terminal.
TerminalStyle terminal_style(const TerminalFlags& flags);

std::string to_terminal(const Report& report, const TerminalStyle& style = {});

// The same for one block, for verbs that print as they go.
std::string to_terminal(const Block& block, const TerminalStyle& style = {});

struct Progress {
  std::string label;
  std::uint64_t done = 0;
  std::uint64_t total = 0;  // 0: not known, only `done` is shown
  Duration elapsed{0};
  std::optional<Duration> left = {};  // when the caller knows better than done/total
};

// "arm fixed  1,240/2,000  62 %  about 4 s left": no line end, no control characters. The remaining
// time is left out while there is too little to judge by (less than 1 s or 1 % done).
std::string format_progress(const Progress& progress);

}  // namespace tailward::report
