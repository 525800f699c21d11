#include "sick_command.h"

#include <fmt/format.h>

#include "base/units.h"
#include "console.h"
#include "faults/fault.h"
#include "faults/faulty_server.h"
#include "faults/faulty_service.h"
#include "io/transport.h"
#include "lab/scorecard.h"
#include "net/real_clock.h"
#include "report/html.h"
#include "stop_watch.h"

namespace tailward {
namespace {

std::string known_faults() {
  std::string text = "Causes:";
  for (const faults::ServerFault& fault : faults::server_faults()) {
    text += fmt::format("\n  {:<21} {}", diag::to_string(fault.cause), fault.about);
  }
  return text;
}

// Says where the service is, and how to look at it.
std::string directions(const faults::FaultyService& service, const faults::FaultModel& model) {
  const int pid = service.server_pid();
  std::string text = fmt::format("port {}\npid {}\n", service.port(), pid);
  if (model.over_link) {
    text += fmt::format("It listens on {}:{} in a network of its own, {} away from its clients.\n",
                        service.host(), service.port(), format_duration(2 * model.link.delay));
  }
  return text + fmt::format("Diagnose it: tailward diagnose --pid {}\nCtrl-C ends it.\n", pid);
}

}  // namespace

int run_lab_serve(int argc, const char* const* argv) {
  CLI::App app{"Runs a faulty server and the clients that suffer from it, to try diagnosis on.",
               "tailward lab serve"};
  std::string cause = "none";
  std::uint16_t port = 0;
  double severity = 1;
  std::uint64_t seed = 1;
  std::string lasting;
  bool list = false;
  app.add_option("--sick", cause, "the fault")->type_name("CAUSE")->capture_default_str();
  app.add_flag("--list", list, "list the faults, one a line");
  app.add_option("--port", port, "where it listens; 0: any free port")->capture_default_str();
  app.add_option("--severity", severity, "2 is twice as bad, 0.5 half")
      ->check(CLI::Range(0.01, 100.0))
      ->capture_default_str();
  app.add_option("--seed", seed, "seed of everything that is drawn")->capture_default_str();
  app.add_option("--for", lasting, "end by itself after this time")->type_name("DURATION");
  app.footer(known_faults() +
             "\n\nThe server runs in a process of its own, on loopback or, where the fault needs "
             "distance or\nloss, in a network namespace behind a link made for it (root).\n"
             "Exit status: 0 ended, 2 it could not be run.");
  if (const std::optional<int> status = parse_command_line(app, argc, argv)) return *status;
  if (list) {
    for (const faults::ServerFault& fault : faults::server_faults()) {
      print_out(fmt::format("{:<21} {}\n", diag::to_string(fault.cause), fault.about));
    }
    return kDone;
  }
  const Result<faults::ServerFault> fault = faults::find_fault(cause);
  if (!fault) return complain(fault.error());
  Duration at_most = kForever;
  if (!lasting.empty()) {
    const Result<Duration> given = parse_duration(lasting);
    if (!given) return complain(given.error().in("--for"));
    at_most = *given;
  }
  StopWatch stop;
  faults::FaultModel model = faults::draw_fault_model(*fault, seed, severity);
  // On loopback, if the fault allows it: there the user can send requests of their own.
  model.over_link = fault->needs_link;
  const Result<std::unique_ptr<faults::FaultyService>> service =
      faults::FaultyService::start(model, port);
  if (!service) return complain(service.error());
  print_out(directions(**service, model));
  static_cast<void>(std::fflush(stdout));
  const TimePoint end = at_most == kForever ? kNever : net::real_now() + at_most;
  while (!stop.asked() && (*service)->server_running() && net::real_now() < end) {
    stop.wait(std::chrono::milliseconds(100));
  }
  if (!stop.asked() && !(*service)->server_running()) {
    return complain({ErrorKind::kInternal, "the server ended by itself"});
  }
  const faults::FaultClients::Counts counts = (*service)->counts();
  print_out(fmt::format("{} requests answered, {} failed{}\n", format_count(counts.requests),
                        format_count(counts.failed),
                        counts.failed > 0 ? ": " + counts.first_error : ""));
  return kDone;
}

int run_lab_truth(int argc, const char* const* argv) {
  CLI::App app{"Scores diagnosis against faulty servers, live and from captures of the same runs.",
               "tailward lab truth"};
  lab::ScorecardOptions options;
  std::vector<std::string> names;
  std::string watch = "4s";
  Outputs outputs;
  app.add_option("--sick", names, "only these")->type_name("CAUSE");
  app.add_option("--runs", options.runs, "of each")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "of the first run of each; the next has the next")
      ->capture_default_str();
  app.add_option("--severity", options.severity, "2 is twice as bad, 0.5 half")
      ->check(CLI::Range(0.01, 100.0))
      ->capture_default_str();
  app.add_option("--for", watch, "how long to watch each")
      ->type_name("DURATION")
      ->capture_default_str();
  app.add_option("--keep", options.keep_in, "keep the captures in this folder")
      ->type_name("FOLDER");
  add_outputs(app, outputs, "a page with the table");
  app.footer(
      known_faults() +
      "\n\nIt needs root: captures, and network namespaces of its own.\n"
      "Exit status: 0 right in 95 % of runs and silent on healthy ones, 1 not so, 2 it could "
      "not be run.");
  if (const std::optional<int> status = parse_command_line(app, argc, argv)) return *status;
  const Result<Duration> each = parse_duration(watch);
  if (!each) return complain(each.error().in("--for"));
  options.watch = *each;
  for (const std::string& name : names) {
    const Result<faults::ServerFault> fault = faults::find_fault(name);
    if (!fault) return complain(fault.error());
    options.which.push_back(*fault);
  }
  if (const Result<void> can = check_outputs(outputs); !can) return complain(can.error());

  report::RunInfo run = run_info(command_line(argc, argv), options.seed);
  StopWatch stop;
  ProgressLine progress;
  const TimePoint started = net::real_now();
  const Result<lab::Scorecard> scorecard = lab::make_scorecard(
      options, {.now = net::real_now,
                .wait = [&stop](Duration at_most) { stop.wait(at_most); },
                .stop_asked = [&stop] { return stop.asked(); },
                .progress = [&progress](const report::Progress& now) { progress.show(now); }});
  progress.clear();
  if (!scorecard) return complain(scorecard.error());
  run.duration = net::real_now() - started;
  run.partial = scorecard->partial;
  const report::Report report = lab::to_report(*scorecard, options, run);
  const Result<void> written = write_outputs(
      outputs, [&] { return report::to_text(lab::to_json(*scorecard, options, run)); },
      [&] { return report::to_html(report); });
  if (!outputs.to_stdout()) print_out(report::to_terminal(report, output_style()));
  if (!written) return complain(written.error());
  return scorecard->partial || scorecard->ok() ? kDone : kAtFault;
}

int run_lab_sick_server(int argc, const char* const* argv) {
  CLI::App app{"The faulty server; `tailward lab serve` starts it.", "tailward lab-sick-server"};
  std::string cause;
  std::string at;
  std::uint64_t seed = 1;
  double severity = 1;
  app.add_option("--sick", cause)->required();
  app.add_option("--at", at)->required();
  app.add_option("--seed", seed);
  app.add_option("--severity", severity);
  if (const std::optional<int> status = parse_command_line(app, argc, argv)) return *status;
  const Result<faults::ServerFault> fault = faults::find_fault(cause);
  if (!fault) return complain(fault.error());
  const Result<io::HostPort> where = io::parse_host_port(at);
  if (!where) return complain(where.error());
  return faults::run_faulty_server(faults::draw_fault_model(*fault, seed, severity), *where);
}

}  // namespace tailward
