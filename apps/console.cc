#include "console.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <system_error>
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

// `tailward … | head`: the reader has what it wants, and that is no error.
bool reader_gone(int fd) {
  pollfd state{fd, POLLOUT, 0};
  return ::poll(&state, 1, 0) == 1 && (state.revents & (POLLERR | POLLHUP)) != 0;
}

}  // namespace

void prepare_process() {
  // With this, the action of neither can fail to be set.
  static_cast<void>(std::signal(SIGPIPE, SIG_IGN));
  // Whoever started this program may have ignored it, and that is inherited.
  static_cast<void>(std::signal(SIGCHLD, SIG_DFL));
  // Without a standard descriptor the next file that is opened would become it, and output would be
  // written into it.
  int fd = -1;
  // For reading: what is written to a closed standard output must fail as it did.
  while ((fd = ::open("/dev/null", O_RDONLY)) >= 0 && fd <= STDERR_FILENO) {
  }
  if (fd >= 0) ::close(fd);
}

void print_out(std::string_view text) {
  static_cast<void>(std::fwrite(text.data(), 1, text.size(), stdout));
}

void print_error(std::string_view text) {
  static_cast<void>(std::fwrite(text.data(), 1, text.size(), stderr));
}

int end_output(int status) {
  const bool flushed = std::fflush(stdout) == 0;
  if ((flushed && std::ferror(stdout) == 0) || reader_gone(STDOUT_FILENO)) return status;
  return complain({ErrorKind::kOverloaded, "standard output took no more",
                   "is its disk full, or is it closed?"});
}

int complain(const Error& error) {
  std::string text = fmt::format("tailward: {}\n", error.message);
  if (!error.hint.empty()) text += fmt::format("  hint: {}\n", error.hint);
  print_error(text);
  return kUsage;
}

std::optional<int> parse_command_line(CLI::App& app, int argc, const char* const* argv) {
  // CLI11 reports by exceptions; they end here.
  try {
    app.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::Success& asked) {
    std::ostringstream out;
    std::ostringstream err;
    const int status = app.exit(asked, out, err);
    print_out(out.str());
    print_error(err.str());
    return status == 0 ? kDone : kUsage;
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
  // A log file has no use for a line that is rewritten.
  if (!terminal_) return;
  print_error(fmt::format("\r\x1b[K{}", report::format_progress(progress)));
  shown_ = true;
}

void ProgressLine::clear() {
  if (!shown_) return;
  print_error("\r\x1b[K");
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

std::string command_line(int argc, const char* const* argv) {
  std::string text = "tailward";
  for (int i = 0; i < argc; ++i) text += fmt::format(" {}", argv[i]);
  return text;
}

void add_outputs(CLI::App& app, Outputs& outputs, const std::string& page) {
  app.add_option("--json", outputs.json,
                 "write the figures as JSON to FILE (- for standard output)")
      ->type_name("FILE");
  app.add_option("--html", outputs.html, fmt::format("write {} to FILE", page))->type_name("FILE");
}

Result<void> check_outputs(const Outputs& outputs) {
  if (!outputs.json.empty() && outputs.json == outputs.html) {
    return fail(ErrorKind::kInvalid, "--json and --html both write to " + outputs.json,
                "name two files");
  }
  Result<void> can = probe_output(outputs.json);
  return can ? probe_output(outputs.html) : can;
}

void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  // The soft limit is 1,024 on most systems: too few for a proxy, and select(), for which it is so
  // low, is not used here.
  limit.rlim_cur = limit.rlim_max;
  // Refused, it stays as it was: what runs out is counted where it runs out.
  static_cast<void>(::setrlimit(RLIMIT_NOFILE, &limit));
}

Result<void> probe_output(const std::string& path) {
  if (path.empty() || path == "-") return {};
  const auto cannot = [&path](int error, std::string hint) {
    return fail(error == EACCES || error == EROFS ? ErrorKind::kDenied : ErrorKind::kInvalid,
                fmt::format("cannot write {}: {}", path, std::strerror(error)), std::move(hint));
  };
  struct stat there {};
  const bool exists = ::stat(path.c_str(), &there) == 0;
  if (exists && S_ISDIR(there.st_mode)) {
    return cannot(EISDIR, "give the name of a file, not of a folder");
  }
  if (exists && !S_ISREG(there.st_mode)) {
    if (::access(path.c_str(), W_OK) == 0) return {};
    return cannot(errno, "write to another file");
  }
  // A file is replaced in its folder, and a link's is the one it points into.
  std::error_code ignored;
  const std::filesystem::path whole = std::filesystem::absolute(path, ignored);
  const std::filesystem::path real = std::filesystem::weakly_canonical(whole, ignored);
  const std::string folder = (real.empty() ? whole : real).parent_path();
  if (::access(folder.c_str(), W_OK | X_OK) == 0) return {};
  const int error = errno;
  return cannot(error, error == ENOENT || error == ENOTDIR
                           ? fmt::format("make the folder {} first", folder)
                           : fmt::format("choose a folder you may write to; {} is not", folder));
}

Result<void> write_output(const std::string& path, const std::string& text) {
  if (path != "-") return write_file_atomically(path, text);
  print_out(text);
  return {};
}

Result<void> write_outputs(const Outputs& outputs, const std::function<std::string()>& json,
                           const std::function<std::string()>& html) {
  Result<void> written;
  Result<void> page;
  if (!outputs.json.empty()) written = write_output(outputs.json, json());
  if (!outputs.html.empty()) page = write_output(outputs.html, html());
  return written ? page : written;
}

}  // namespace tailward
