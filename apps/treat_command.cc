#include "treat_command.h"

#include <fmt/format.h>

#include <memory>

#include "base/units.h"
#include "console.h"
#include "net/real_clock.h"
#include "report/html.h"
#include "stop_watch.h"
#include "treat/render.h"
#include "treat/treatment.h"

namespace tailward {
namespace {

constexpr const char* kAbout =
    "Sets a socket option on half of the connections of a running process, measures both halves "
    "at\n"
    "the same time, says what it brought, and puts everything back: at the end, on Ctrl-C, and if\n"
    "tailward is killed. Without --yes it shows what it would do, and changes nothing.";

constexpr const char* kFooter =
    "With fewer than 4 connections, all of them are treated in short random slices of time. What\n"
    "is measured are requests on the wire, by turn-taking; without the right to capture, the\n"
    "kernel's account of each connection (TCP_INFO).\n"
    "\n"
    "Needs: the process's user and kernel.yama.ptrace_scope=0, or CAP_SYS_PTRACE\n"
    "and CAP_DAC_READ_SEARCH; for packets CAP_NET_RAW.\n"
    "\n"
    "Examples:\n"
    "  tailward treat --pid 4711 --set nodelay=1\n"
    "  tailward treat --port 8080 --set nodelay=1,quickack=1 --for 1m --yes --html effect.html\n"
    "  tailward treat --pid 4711 --remote 10.0.0.0/8 --set sndbuf=auto --yes\n"
    "  tailward treat --list\n"
    "\n"
    "Exit status: 0 done, 2 usage, nothing to treat, no requests to measure, or something that\n"
    "could not be restored.";

struct Texts {
  std::string remote;
  std::string set;
  std::string length = "30s";
  bool list = false;
  bool yes = false;
  int pid = 0;
  int port = 0;
  Outputs outputs;
};

void add_options(CLI::App& app, Texts& texts, treat::TreatmentOptions& options) {
  constexpr int kPidMax = 1 << 22;
  constexpr int kPortMax = 65535;
  app.add_option("--pid", texts.pid, "the process")
      ->type_name("PID")
      ->check(CLI::Range(1, kPidMax));
  app.add_option("--port", texts.port, "or: whoever has this local port")
      ->type_name("PORT")
      ->check(CLI::Range(1, kPortMax));
  app.add_option("--remote", texts.remote,
                 "only connections with this peer: address, network or address:port")
      ->type_name("ADDR");
  app.add_option("--set", texts.set, "OPTION=VALUE, several with commas; see --list")
      ->type_name("OPTIONS");
  app.add_option("--for", texts.length, "how long")->type_name("DURATION")->capture_default_str();
  app.add_flag("--all", options.all, "all connections, before against after, instead of half");
  app.add_flag("--keep", options.keep, "leave the change in place at the end");
  app.add_flag("--yes", texts.yes, "do it; without this, only show what would be done");
  app.add_flag("--list", texts.list, "what can be set, what it does, how it is restored");
  app.add_option("--seed", options.seed, "of the draw")->type_name("N")->capture_default_str();
  add_outputs(app, texts.outputs, "a page with the figures");
}

Result<void> read_texts(const Texts& texts, treat::TreatmentOptions& options) {
  if (texts.pid == 0 && texts.port == 0) {
    return fail(ErrorKind::kInvalid, "which process?", "--pid PID or --port PORT");
  }
  if (texts.set.empty()) {
    return fail(ErrorKind::kInvalid, "set what?", "--set nodelay=1; see --list");
  }
  if (texts.pid != 0) options.pid = texts.pid;
  if (texts.port != 0) options.port = static_cast<std::uint16_t>(texts.port);
  Result<std::vector<treat::Setting>> settings = treat::parse_settings(texts.set);
  if (!settings) return fail(settings.error().in("--set"));
  options.settings = std::move(*settings);
  const Result<Duration> length = parse_duration(texts.length);
  if (!length) return fail(length.error().in("--for"));
  if (*length < treat::kLengthMin) {
    return fail(ErrorKind::kInvalid, "--for: at least 1s, or there is nothing to measure");
  }
  options.length = *length;
  if (!texts.remote.empty()) {
    const Result<treat::RemoteFilter> remote = treat::parse_remote(texts.remote);
    if (!remote) return fail(remote.error().in("--remote"));
    options.remote = *remote;
    options.remote_text = texts.remote;
  }
  return check_outputs(texts.outputs);
}

std::string list_text() {
  report::Table table;
  table.columns = {{"option", report::Align::kLeft}, {"what it does", report::Align::kLeft}};
  for (const treat::OptionInfo& one : treat::known_options()) {
    table.rows.push_back(
        {report::text_cell(fmt::format("{}={}", one.name, one.form)),
         report::text_cell(fmt::format("{}. Put back: {}.", one.what, one.rollback))});
  }
  return report::to_terminal(report::Block(table), output_style());
}

int print(const Outputs& outputs, const report::Report& report, const report::Json& json) {
  const Result<void> written = write_outputs(
      outputs, [&] { return report::to_text(json); }, [&] { return report::to_html(report); });
  if (!outputs.to_stdout()) print_out(report::to_terminal(report, output_style()));
  return written ? kDone : complain(written.error());
}

Result<treat::TreatmentResult> measure(treat::Treatment& treatment) {
  StopWatch interrupts;
  ProgressLine line;
  const TimePoint began = net::real_now();
  treat::RunHooks hooks;
  hooks.now = [] { return net::real_now(); };
  hooks.wait = [&](Duration at_most) {
    interrupts.wait(at_most);
    return interrupts.asked();
  };
  hooks.progress = [&](std::string_view phase, Duration elapsed, Duration total) {
    const auto seconds = [](Duration d) { return static_cast<std::uint64_t>(to_seconds(d)); };
    line.show({std::string(phase), seconds(elapsed), seconds(total), net::real_now() - began,
               total - elapsed});
  };
  Result<treat::TreatmentResult> result = treatment.run(hooks);
  line.clear();
  return result;
}

}  // namespace

int run_treat(int argc, const char* const* argv) {
  CLI::App app{kAbout, "tailward treat"};
  Texts texts;
  treat::TreatmentOptions options;
  add_options(app, texts, options);
  app.footer(kFooter);
  if (const std::optional<int> status = parse_command_line(app, argc, argv)) return *status;
  if (texts.list) {
    print_out(list_text());
    return kDone;
  }
  if (const Result<void> good = read_texts(texts, options); !good) return complain(good.error());

  report::RunInfo run = run_info(command_line(argc, argv), options.seed);
  const TimePoint started = net::real_now();
  const Result<std::unique_ptr<treat::Treatment>> treatment = treat::Treatment::prepare(options);
  if (!treatment) return complain(treatment.error());
  if (!texts.yes) {
    return print(texts.outputs, treat::plan_report(**treatment, run),
                 treat::plan_json(**treatment, run));
  }
  const Result<treat::TreatmentResult> result = measure(**treatment);
  if (!result) return complain(result.error());
  run.duration = net::real_now() - started;
  run.partial = result->partial;
  const int status = print(texts.outputs, treat::to_report(**treatment, *result, run),
                           treat::to_json(**treatment, *result, run));
  if (result->rollback.failed > 0) {
    return complain(
        {ErrorKind::kInternal, "not everything could be restored: " + result->rollback.text()});
  }
  if (status == kDone && !result->partial && !result->kept && !result->measured.effect) {
    return complain({ErrorKind::kInvalid, treat::sentence_of(**treatment, *result),
                     "is there traffic? --for makes it longer"});
  }
  return status;
}

}  // namespace tailward
