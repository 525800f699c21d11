#include "sick_command.h"

#include <fmt/format.h>

#include "base/units.h"
#include "console.h"
#include "io/transport.h"
#include "lab/sick.h"
#include "lab/truth.h"
#include "net/real_clock.h"
#include "report/html.h"
#include "stop_watch.h"

namespace tailward {
namespace {

std::string known_sicknesses() {
  std::string text = "Sicknesses:";
  for (const lab::Sickness& sickness : lab::sicknesses()) {
    text += fmt::format("\n  {:<21} {}", diag::to_string(sickness.cause), sickness.about);
  }
  return text;
}

// Says where the service is, and how to look at it.
std::string directions(const lab::SickService& service, const lab::SickModel& model) {
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
  CLI::App app{
      "Runs a sick server and the clients that suffer from it, for whoever wants to diagnose it.",
      "tailward lab serve"};
  std::string sick = "none";
  std::uint16_t port = 0;
  double severity = 1;
  std::uint64_t seed = 1;
  std::string lasting;
  bool list = false;
  app.add_option("--sick", sick, "with what")->type_name("CAUSE")->capture_default_str();
  app.add_flag("--list", list, "the sicknesses, one a line");
  app.add_option("--port", port, "where it listens; 0: where there is room")->capture_default_str();
  app.add_option("--severity", severity, "2 is twice as sick, 0.5 half")
      ->check(CLI::Range(0.01, 100.0))
      ->capture_default_str();
  app.add_option("--seed", seed, "seed of everything that is drawn")->capture_default_str();
  app.add_option("--for", lasting, "end by itself after so long")->type_name("DURATION");
  app.footer(
      known_sicknesses() +
      "\n\nThe server runs in a process of its own, on loopback or, where the sickness needs "
      "distance or\nloss, in a network namespace behind a link made for it (root).\n"
      "Exit status: 0 ended, 2 it could not be run.");
  if (const std::optional<int> status = parse_command_line(app, argc, argv)) return *status;
  if (list) {
    for (const lab::Sickness& sickness : lab::sicknesses()) {
      print_out(fmt::format("{:<21} {}\n", diag::to_string(sickness.cause), sickness.about));
    }
    return kDone;
  }
  const Result<lab::Sickness> sickness = lab::find_sickness(sick);
  if (!sickness) return complain(sickness.error());
  Duration at_most = kForever;
  if (!lasting.empty()) {
    const Result<Duration> given = parse_duration(lasting);
    if (!given) return complain(given.error().in("--for"));
    at_most = *given;
  }
  StopWatch stop;
  lab::SickModel model = lab::draw_sick_model(*sickness, seed, severity);
  // Who wants to send requests of their own finds it on loopback, if that is possible.
  model.over_link = sickness->needs_link;
  const Result<std::unique_ptr<lab::SickService>> service = lab::SickService::start(model, port);
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
  const lab::SickClients::Counts counts = (*service)->counts();
  print_out(fmt::format("{} requests answered, {} failed{}\n", format_count(counts.requests),
                        format_count(counts.failed),
                        counts.failed > 0 ? ": " + counts.first_error : ""));
  return kDone;
}

int run_lab_truth(int argc, const char* const* argv) {
  CLI::App app{"Scores diagnosis against sick servers, live and from captures of the same runs.",
               "tailward lab truth"};
  lab::TruthOptions options;
  std::vector<std::string> names;
  std::string watch = "4s";
  Outputs outputs;
  app.add_option("--sick", names, "only these")->type_name("CAUSE");
  app.add_option("--runs", options.runs, "of each")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "of the first run of each; the next has the next")
      ->capture_default_str();
  app.add_option("--severity", options.severity, "2 is twice as sick, 0.5 half")
      ->check(CLI::Range(0.01, 100.0))
      ->capture_default_str();
  app.add_option("--for", watch, "how long to watch each")
      ->type_name("DURATION")
      ->capture_default_str();
  app.add_option("--keep", options.keep_in, "keep the captures in this folder")
      ->type_name("FOLDER");
  add_outputs(app, outputs, "a page with the table");
  app.footer(
      known_sicknesses() +
      "\n\nIt needs root: captures, and network namespaces of its own.\n"
      "Exit status: 0 right in 95 % of runs and silent on healthy ones, 1 not so, 2 it could "
      "not be run.");
  if (const std::optional<int> status = parse_command_line(app, argc, argv)) return *status;
  const Result<Duration> each = parse_duration(watch);
  if (!each) return complain(each.error().in("--for"));
  options.watch = *each;
  for (const std::string& name : names) {
    const Result<lab::Sickness> sickness = lab::find_sickness(name);
    if (!sickness) return complain(sickness.error());
    options.which.push_back(*sickness);
  }
  if (const Result<void> can = check_outputs(outputs); !can) return complain(can.error());

  report::RunInfo run = run_info(command_line(argc, argv), options.seed);
  StopWatch stop;
  ProgressLine progress;
  const TimePoint started = net::real_now();
  const Result<lab::Truth> truth = lab::find_truth(
      options, {.now = net::real_now,
                .wait = [&stop](Duration at_most) { stop.wait(at_most); },
                .stop_asked = [&stop] { return stop.asked(); },
                .progress = [&progress](const report::Progress& now) { progress.show(now); }});
  progress.clear();
  if (!truth) return complain(truth.error());
  run.duration = net::real_now() - started;
  run.partial = truth->partial;
  const report::Report report = lab::to_report(*truth, options, run);
  const Result<void> written = write_outputs(
      outputs, [&] { return report::to_text(lab::to_json(*truth, options, run)); },
      [&] { return report::to_html(report); });
  if (!outputs.to_stdout()) print_out(report::to_terminal(report, output_style()));
  if (!written) return complain(written.error());
  return truth->partial || truth->ok() ? kDone : kAtFault;
}

int run_lab_sick_server(int argc, const char* const* argv) {
  CLI::App app{"The sick server; `tailward lab serve` starts it.", "tailward lab-sick-server"};
  std::string sick;
  std::string at;
  std::uint64_t seed = 1;
  double severity = 1;
  app.add_option("--sick", sick)->required();
  app.add_option("--at", at)->required();
  app.add_option("--seed", seed);
  app.add_option("--severity", severity);
  if (const std::optional<int> status = parse_command_line(app, argc, argv)) return *status;
  const Result<lab::Sickness> sickness = lab::find_sickness(sick);
  if (!sickness) return complain(sickness.error());
  const Result<io::HostPort> where = io::parse_host_port(at);
  if (!where) return complain(where.error());
  return lab::run_sick_server(lab::draw_sick_model(*sickness, seed, severity), *where);
}

}  // namespace tailward
