#include "console.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "base/file.h"
#include "net/real_clock.h"

namespace tailward {
namespace {

bool set_and_not_empty(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

int columns_of(int fd) {
  winsize size{};
  return ::ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

}  // namespace

int complain(const Error& error) {
  fmt::print(stderr, "tailward: {}\n", error.message);
  if (!error.hint.empty()) fmt::print(stderr, "  hint: {}\n", error.hint);
  return kUsage;
}

std::optional<int> parse_command_line(CLI::App& app, int argc, const char* const* argv) {
  // CLI11 reports by exceptions; they end here.
  try {
    app.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::Success& asked) {
    return app.exit(asked) == 0 ? kDone : kUsage;
  } catch (const CLI::ParseError& error) {
    return complain(
        {ErrorKind::kInvalid, error.what(), fmt::format("see {} --help", app.get_name())});
  }
}

report::TerminalStyle output_style() {
  report::TerminalFlags flags;
  flags.is_terminal = ::isatty(STDOUT_FILENO) == 1;
  flags.no_color = set_and_not_empty("NO_COLOR");
  const char* term = std::getenv("TERM");
  flags.dumb = term == nullptr || std::string_view(term) == "dumb";
  flags.columns = columns_of(STDOUT_FILENO);
  return report::terminal_style(flags);
}

ProgressLine::ProgressLine() : terminal_(::isatty(STDERR_FILENO) == 1) {}

void ProgressLine::show(const report::Progress& progress) {
  if (!terminal_) return;
  fmt::print(stderr, "\r\x1b[K{}", report::format_progress(progress));
  std::fflush(stderr);
  shown_ = true;
}

void ProgressLine::clear() {
  if (!shown_) return;
  fmt::print(stderr, "\r\x1b[K");
  std::fflush(stderr);
  shown_ = false;
}

report::RunInfo run_info(const std::string& command, std::uint64_t seed) {
  report::RunInfo run;
  run.command = command;
  run.version = TAILWARD_VERSION;
  run.seed = seed;
  run.started = net::wall_time_iso8601();
  run.machine.cores = std::thread::hardware_concurrency();
  utsname kernel{};
  if (::uname(&kernel) == 0)
    run.machine.kernel = fmt::format("{} {}", kernel.sysname, kernel.release);
  return run;
}

void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  // Refused, it stays as it was: what runs out is counted where it runs out.
  static_cast<void>(::setrlimit(RLIMIT_NOFILE, &limit));
}

Result<void> write_output(const std::string& path, const std::string& text) {
  if (path != "-") return write_file_atomically(path, text);
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written || std::fflush(stdout) != 0) {
    return fail(ErrorKind::kDisconnected, "standard output took no more",
                "is the reader still there?");
  }
  return {};
}

}  // namespace tailward
