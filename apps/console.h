// What every verb says and how: errors, hints, progress, files.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "report/json.h"
#include "report/report.h"
#include "report/terminal.h"

namespace tailward {

inline constexpr int kDone = 0;
inline constexpr int kAtFault = 1;  // measured, and something is wrong
inline constexpr int kUsage = 2;    // the command line or the environment

// Before anything else: a reader that goes away is an error of writing and no signal, the end of a
// child can be waited for, and standard input, output and error are open, so that no other file
// gets their numbers.
void prepare_process();

// To standard output; a failure is remembered for end_output().
void print_out(std::string_view text);
// To standard error; when that takes nothing, there is nobody left to tell.
void print_error(std::string_view text);

// Whether standard output has taken everything: returns `status`, or complains and returns kUsage.
// A reader who has seen enough and has gone (tailward … | head) is no failure.
int end_output(int status);

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

// The command line as it was typed, from "tailward" on.
std::string command_line(int argc, const char* const* argv);

// Where a verb's figures and page go: --json and --html.
struct Outputs {
  std::string json;
  std::string html;
  // Standard output belongs to one of them alone.
  [[nodiscard]] bool to_stdout() const { return json == "-" || html == "-"; }
};
// `page`: what --html writes, for its help.
void add_outputs(CLI::App& app, Outputs& outputs, const std::string& page);
// Minutes of work must not end with a file that could never have been written.
Result<void> check_outputs(const Outputs& outputs);

// Whether write_output() will be able to write there, as far as can be told before there is
// anything to write; empty is nowhere. The error is the one that writing would give.
Result<void> probe_output(const std::string& path);

// To a file, whole or not at all, or to standard output for "-"; failures of the latter are for
// end_output().
Result<void> write_output(const std::string& path, const std::string& text);

// Each of the two that is wanted, whatever becomes of the other; the first error.
Result<void> write_outputs(const Outputs& outputs, const std::function<std::string()>& json,
                           const std::function<std::string()>& html);

}  // namespace tailward
