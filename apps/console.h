// What every verb says and how: errors, hints, progress, files.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "base/result.h"
#include "report/json.h"
#include "report/report.h"
#include "report/terminal.h"

namespace tailward {

inline constexpr int kDone = 0;
inline constexpr int kAtFault = 1;  // measured, and something is wrong
inline constexpr int kUsage = 2;    // the command line or the environment

// "tailward: MESSAGE" and the hint below it, to standard error. Returns kUsage.
int complain(const Error& error);

// Parses; prints help or version, or complains. Empty: go on; otherwise the exit status.
std::optional<int> parse_command_line(CLI::App& app, int argc, const char* const* argv);

// How standard output wants its text.
report::TerminalStyle output_style();

// A line of progress on standard error, when that is a terminal; clear() takes it away.
class ProgressLine {
 public:
  ProgressLine();
  void show(const report::Progress& progress);
  void clear();

 private:
  bool terminal_;
  bool shown_ = false;
};

// Command line, version, time and machine of this run.
report::RunInfo run_info(const std::string& command, std::uint64_t seed);

// Lets this process open as many files as the system allows it (ulimit -Hn): every connection is
// one.
void raise_descriptor_limit();

// To a file, whole or not at all, or to standard output for "-".
Result<void> write_output(const std::string& path, const std::string& text);

}  // namespace tailward
