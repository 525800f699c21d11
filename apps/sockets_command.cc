#include "sockets_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "base/units.h"
#include "console.h"
#include "net/real_clock.h"
#include "report/html.h"
#include "sockets/json.h"
#include "sockets/render.h"
#include "stop_watch.h"

namespace tailward {
namespace {

constexpr const char* kAbout =
    "Shows the TCP options and state of every socket of a running process, those that ss cannot\n"
    "show included (TCP_NODELAY, TCP_CORK, pinned buffers), with remarks. Nothing is changed, and\n"
    "the process is not stopped.";

constexpr const char* kFooter =
    "With --port: the processes that have a TCP socket with this local port, in this network\n"
    "namespace or, when nobody has it here, in those of containers. With both: the sockets of the\n"
    "process on that port.\n"
    "\n"
    "More than 30 connections are shown by peer; --all shows each, and --json always has all.\n"
    "Figures count from a connection's begin; with --watch, from one look to the next.\n"
    "\n"
    "Needs the same user and Yama's consent (kernel.yama.ptrace_scope), or root (CAP_SYS_PTRACE "
    "and\n"
    "CAP_DAC_READ_SEARCH); for a process in another network namespace CAP_SYS_ADMIN is good to\n"
    "have. Linux 5.6.\n"
    "\n"
    "Examples:\n"
    "  tailward sockets --port 8080\n"
    "  tailward sockets --pid $(pgrep -o nginx) --json - | jq '.sockets[] | select(.remarks != "
    "[])'\n"
    "  tailward sockets --pid 1234 --watch --every 2s\n"
    "\n"
    "Exit status: 0 done, 2 usage, no such process or port, or not allowed.";

struct Asked {
  probe::SocketSearch search;
  sockets::View view;
  bool watch = false;
  std::string every = "1s";
  std::string until;
  std::optional<std::size_t> top = {};
  Duration interval{};
  std::optional<Duration> watch_for = {};
  Outputs outputs;
};

void add_options(CLI::App& app, Asked& asked) {
  app.add_option("--pid", asked.search.pid, "the process")
      ->type_name("P")
      ->check(CLI::Range(1, 1 << 30));
  app.add_option("--port", asked.search.port, "the processes that have this local TCP port")
      ->type_name("N")
      ->check(CLI::Range(1, 65'535));
  app.add_flag("--all", asked.view.all, "every socket, however many there are");
  app.add_option("--top", asked.top,
                 "rows of a table that leaves some out; 15, and 10 with --watch")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000));
  app.add_flag("--watch", asked.watch,
               "look again and again, and show what happened in between, the busiest first;\n"
               "Ctrl-C ends it");
  app.add_option("--every", asked.every, "how often to look")
      ->type_name("D")
      ->capture_default_str();
  app.add_option("--for", asked.until, "end the watch after this time")->type_name("D");
  add_outputs(app, asked.outputs, "the same as a page");
}

Result<void> check(Asked& asked) {
  if (!asked.search.pid && !asked.search.port) {
    return fail(ErrorKind::kInvalid, "whose sockets?", "give --pid P or --port N");
  }
  constexpr Duration kShortest = std::chrono::milliseconds(100);
  const Result<Duration> every = parse_duration(asked.every);
  if (!every) return fail(every.error().in("--every"));
  if (*every < kShortest) {
    return fail(ErrorKind::kInvalid, "--every: too often",
                fmt::format("at least {}", format_duration(kShortest)));
  }
  asked.interval = *every;
  if (!asked.until.empty()) {
    const Result<Duration> until = parse_duration(asked.until);
    if (!until) return fail(until.error().in("--for"));
    asked.watch_for = *until;
    asked.watch = true;
  }
  // So that a watch fits on a screen of 24 lines.
  constexpr std::size_t kWatchTop = 10;
  if (asked.watch) asked.view.top = kWatchTop;
  if (asked.top) asked.view.top = *asked.top;
  return check_outputs(asked.outputs);
}

Result<void> write_files(const Outputs& outputs, const sockets::Snapshot& snapshot,
                         const report::Report& report) {
  return write_outputs(
      outputs, [&] { return report::to_text(sockets::to_json(snapshot, report.run)); },
      [&] { return report::to_html(report); });
}

int look_once(const Asked& asked, report::RunInfo run) {
  const TimePoint began = net::real_now();
  const Result<sockets::Snapshot> snapshot = sockets::look(asked.search);
  if (!snapshot) return complain(snapshot.error());
  run.duration = net::real_now() - began;
  const report::Report report = sockets::to_report(*snapshot, run, asked.view);
  const Result<void> written = write_files(asked.outputs, *snapshot, report);
  if (!asked.outputs.to_stdout()) print_out(report::to_terminal(report, output_style()));
  return written ? kDone : complain(written.error());
}

bool output_can_be_cleared() {
  const char* term = std::getenv("TERM");
  return ::isatty(STDOUT_FILENO) == 1 && term != nullptr && std::string_view(term) != "dumb";
}

// The alternate screen of a terminal, as pagers use it; what was there comes back at the end.
class Screen {
 public:
  explicit Screen(bool on) : on_(on) {
    if (on_) print_out("\x1b[?1049h\x1b[?25l");
  }
  ~Screen() {
    if (on_) print_out("\x1b[?25h\x1b[?1049l");
  }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;
  // False: nobody reads it any more.
  bool show(const std::string& text) {
    print_out(on_ ? fmt::format("\x1b[H\x1b[2J{}", text) : text + "\n");
    return std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  }

 private:
  bool on_;
};

class Watch {
 public:
  Watch(const Asked& asked, const report::RunInfo& run)
      : asked_(asked), run_(run), began_(net::real_now()) {}

  int go() {
    Result<void> looked = look();
    if (!looked) return complain(looked.error());
    {
      const bool clears = output_can_be_cleared() && !asked_.outputs.to_stdout();
      Screen screen(clears);
      bool read = !clears || show(screen);
      while (read && looked && !pause()) {
        looked = look();
        if (looked) read = show(screen);
      }
    }
    const report::Report report = sockets::to_report(*now_, run_, asked_.view);
    const Result<void> written = write_files(asked_.outputs, *now_, report);
    if (!looked) return complain(looked.error());
    return written ? kDone : complain(written.error());
  }

 private:
  Result<void> look() {
    Result<sockets::Snapshot> next = sockets::look(asked_.search);
    if (!next) return fail(next.error());
    const TimePoint at = net::real_now();
    if (now_) sockets::compare(*next, *now_, at - looked_);
    now_ = std::move(*next);
    looked_ = at;
    run_.duration = at - began_;
    return {};
  }

  bool show(Screen& screen) {
    if (asked_.outputs.to_stdout()) return true;
    std::string text;
    for (const report::Block& block : sockets::to_activity(*now_, asked_.view)) {
      text += report::to_terminal(block, output_style()) + "\n";
    }
    return screen.show(text);
  }

  // True when it is time to end.
  bool pause() {
    const TimePoint next = looked_ + asked_.interval;
    if (asked_.watch_for && next > began_ + *asked_.watch_for) return true;
    stop_.wait(next - net::real_now());
    return stop_.asked();
  }

  Asked asked_;
  report::RunInfo run_;
  StopWatch stop_;
  TimePoint began_;
  TimePoint looked_{};
  std::optional<sockets::Snapshot> now_ = {};
};

}  // namespace

int run_sockets(int argc, const char* const* argv) {
  CLI::App app{kAbout, "tailward sockets"};
  Asked asked;
  add_options(app, asked);
  app.footer(kFooter);
  if (const std::optional<int> status = parse_command_line(app, argc, argv)) return *status;
  if (const Result<void> good = check(asked); !good) return complain(good.error());
  const report::RunInfo run = run_info(command_line(argc, argv), 0);
  return asked.watch ? Watch(asked, run).go() : look_once(asked, run);
}

}  // namespace tailward
