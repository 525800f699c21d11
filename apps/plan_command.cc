#include "plan_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include "base/units.h"
#include "console.h"
#include "net/real_clock.h"
#include "plan/render.h"
#include "report/html.h"
#include "stop_watch.h"

namespace tailward {
namespace {

constexpr const char* kAbout =
    "Reads a log of latencies and says what hedging would do to P50…P99.9 and to the load, which\n"
    "policy is best for a budget, what fan-out makes of it, and which causes the numbers point to.";

constexpr const char* kFooter =
    "What is read, as it is or as gzip:\n"
    "  list   one latency per line, in --unit, or each with its own: 12.5ms, 800us, 1.2s\n"
    "  csv    with , ; or tab; --column names the column or gives its number\n"
    "  nginx  access logs with $request_time: as the last field or as rt=0.123; or by their "
    "format:\n"
    "         --format nginx:'$remote_addr [$time_local] \"$request\" $status $request_time'\n"
    "  envoy  access logs in the default format; or --format envoy:'[%START_TIME%] … %DURATION%'\n"
    "  hdr    HdrHistogram logs, version 2; --column takes a tag\n"
    "\n"
    "The forecasts assume that a second attempt is independent of the first. Ctrl-C ends the\n"
    "reading and shows what there is.\n"
    "\n"
    "Examples:\n"
    "  tailward plan --latencies access.log.gz --goal p99.9 --budget 2% --html plan.html\n"
    "  jq -r .duration_ms app.log | tailward plan --latencies - --fanout 30\n"
    "\n"
    "Exit status: 0 done, 2 usage, or a log that cannot be read.";

struct Texts {
  std::string latencies;
  std::string goal = "p99";
  std::string budget = "5%";
  std::string unit;
  std::uint64_t fanout = 0;
  Outputs outputs;
};

void add_options(CLI::App& app, Texts& texts, plan::ReadOptions& read) {
  app.add_option("--latencies", texts.latencies, "the log (- for standard input)")
      ->type_name("FILE")
      ->required();
  app.add_option("--goal", texts.goal, "the percentile to make small")
      ->type_name("PERCENTILE")
      ->capture_default_str();
  app.add_option("--budget", texts.budget, "the extra load that hedging may cause")
      ->type_name("SHARE")
      ->capture_default_str();
  app.add_option("--fanout", texts.fanout, "show requests of so many calls, too")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--unit", texts.unit,
                 "of numbers without one: ns, us, ms or s; as usual for the format if not given")
      ->type_name("UNIT");
  app.add_option("--column", read.column,
                 "the column of a CSV file, the variable of an access log, or the tag of an\n"
                 "HdrHistogram log")
      ->type_name("NAME|N");
  app.add_option("--format", read.format, "auto, list, csv, nginx, envoy, hdr; see below")
      ->type_name("FORMAT")
      ->capture_default_str();
  add_outputs(app, texts.outputs, "a page with curves");
}

Result<void> read_texts(const Texts& texts, plan::ReadOptions& read, plan::PlanOptions& options) {
  const Result<double> goal = parse_percentile(texts.goal);
  if (!goal) return fail(goal.error().in("--goal"));
  const Result<double> budget = parse_share(texts.budget);
  if (!budget) return fail(budget.error().in("--budget"));
  if (!texts.unit.empty()) {
    read.unit = plan::parse_unit(texts.unit);
    if (!read.unit) {
      return fail(ErrorKind::kInvalid, fmt::format("--unit: '{}' is not a unit", texts.unit),
                  "one of ns, us, ms, s");
    }
  }
  options = {.goal = *goal, .budget = *budget, .fanout = texts.fanout};
  return check_outputs(texts.outputs);
}

// The bytes of a file or of standard input, with progress.
class Input {
 public:
  static Result<Input> open(const std::string& path) {
    if (path == "-") return Input(stdin, 0);
    std::FILE* file = std::fopen(path.c_str(), "rbe");
    if (file == nullptr) {
      return fail(errno == EACCES ? ErrorKind::kDenied : ErrorKind::kInvalid,
                  fmt::format("cannot read {}: {}", path, std::strerror(errno)),
                  "--latencies takes a file, or - for standard input");
    }
    std::error_code unknown;
    const std::uintmax_t size = std::filesystem::file_size(path, unknown);
    return Input(file, unknown ? 0 : size);
  }

  Result<std::size_t> read(char* into, std::size_t size, StopWatch& interrupts) {
    while (true) {
      if (interrupts.asked()) return fail(ErrorKind::kCancelled, "stopped");
      const ssize_t got = ::read(::fileno(file_.get()), into, size);
      if (got >= 0) {
        done_ += static_cast<std::uint64_t>(got);
        show();
        return static_cast<std::size_t>(got);
      }
      if (errno != EINTR) return fail(ErrorKind::kInvalid, std::strerror(errno));
    }
  }
  void clear_progress() { progress_.clear(); }

 private:
  Input(std::FILE* file, std::uint64_t size)
      : file_(file), size_(size), began_(net::real_now()), shown_(began_) {}

  void show() {
    constexpr Duration kEvery = std::chrono::milliseconds(200);
    constexpr int kMiB = 20;
    const TimePoint now = net::real_now();
    if (now - shown_ < kEvery) return;
    shown_ = now;
    progress_.show({"MiB read", done_ >> kMiB, size_ >> kMiB, now - began_});
  }

  struct Close {
    void operator()(std::FILE* file) const { static_cast<void>(std::fclose(file)); }
  };
  std::unique_ptr<std::FILE, Close> file_;
  std::uint64_t size_ = 0;  // 0: not known
  std::uint64_t done_ = 0;
  TimePoint began_;
  TimePoint shown_;
  ProgressLine progress_;
};

Result<plan::Reading> read_log(const std::string& path, const plan::ReadOptions& options,
                               StopWatch& interrupts) {
  Result<Input> input = Input::open(path);
  if (!input) return fail(input.error());
  Result<plan::Reading> reading = plan::read_latencies(
      [&](char* into, std::size_t size) { return input->read(into, size, interrupts); }, options);
  input->clear_progress();
  if (!reading) return fail(reading.error().in(path == "-" ? "standard input" : path));
  return reading;
}

}  // namespace

int run_plan(int argc, const char* const* argv) {
  CLI::App app{kAbout, "tailward plan"};
  Texts texts;
  plan::ReadOptions read;
  add_options(app, texts, read);
  app.footer(kFooter);
  if (const std::optional<int> status = parse_command_line(app, argc, argv)) return *status;
  plan::PlanOptions options;
  if (const Result<void> good = read_texts(texts, read, options); !good) {
    return complain(good.error());
  }

  report::RunInfo run = run_info(command_line(argc, argv), 0);
  const TimePoint started = net::real_now();
  StopWatch interrupts;
  // A signal is to interrupt the reading, which may be waiting for ever, but no writing.
  StopWatch::restart_calls(false);
  const Result<plan::Reading> reading = read_log(texts.latencies, read, interrupts);
  if (!reading) return complain(reading.error());
  StopWatch::restart_calls(true);
  const plan::Analysis analysis(*reading, options);
  run.duration = net::real_now() - started;
  run.partial = reading->partial;

  const report::Report report = plan::to_report(*reading, analysis, run);
  const Result<void> written = write_outputs(
      texts.outputs, [&] { return report::to_text(plan::to_json(*reading, analysis, run)); },
      [&] { return report::to_html(report); });
  // JSON on standard output stays alone there.
  if (!texts.outputs.to_stdout()) {
    print_out(report::to_terminal(report, output_style()));
  }
  return written ? kDone : complain(written.error());
}

}  // namespace tailward
