#include "lab_command.h"

#include <fmt/format.h>

#include <memory>

#include "base/heap_count/heap_count.h"
#include "base/units.h"
#include "console.h"
#include "faults/work_model.h"
#include "faults/work_server.h"
#include "lab/experiments.h"
#include "lab/hedging/demo.h"
#include "lab/hedging/three_layer.h"
#include "net/real_clock.h"
#include "report/html.h"
#include "sick_command.h"
#include "stop_watch.h"

namespace tailward {
namespace {

Result<void> write_files(const Outputs& outputs, const lab::Experiment& experiment,
                         const lab::ExperimentResult& result, const report::RunInfo& run) {
  return write_outputs(
      outputs, [&] { return report::to_text(lab::to_json(experiment, result, run)); },
      [&] { return report::to_html(lab::to_report(experiment, result, run)); });
}

int status_of(const lab::ExperimentResult& result) {
  return result.partial || result.ok() ? kDone : kAtFault;
}

int list_experiments(const std::string& json) {
  if (json.empty()) {
    for (const lab::Experiment& experiment : lab::experiments()) {
      print_out(fmt::format("{:<14} {} ({})\n", experiment.name, experiment.about,
                            experiment.about_time));
    }
    return kDone;
  }
  report::Json list = report::envelope(run_info("tailward lab list", 0));
  list["experiments"] = report::Json::array();
  for (const lab::Experiment& experiment : lab::experiments()) {
    list["experiments"].push_back(
        {{"name", experiment.name}, {"about", experiment.about}, {"arms", experiment.arms}});
  }
  const Result<void> written = write_output(json, report::to_text(list));
  return written ? kDone : complain(written.error());
}

// What the adaptive arm aims at and may spend, as typed.
struct Goal {
  std::string goal;
  std::string budget;
};

Result<void> take_goal(const Goal& typed, const lab::Experiment& experiment,
                       lab::Context& context) {
  if (typed.goal.empty() && typed.budget.empty()) return {};
  if (!experiment.takes_goal) {
    return fail(ErrorKind::kInvalid,
                fmt::format("{} is not for the experiment {}, whose arms are fixed",
                            typed.goal.empty() ? "--budget" : "--goal", experiment.name),
                "lab reference takes it");
  }
  if (!typed.goal.empty()) {
    const Result<double> goal = parse_percentile(typed.goal);
    if (!goal) return fail(goal.error());
    context.goal = *goal;
  }
  if (!typed.budget.empty()) {
    const Result<double> budget = parse_share(typed.budget);
    if (!budget) return fail(budget.error());
    context.budget = *budget;
  }
  return {};
}

bool is_partial(const lab::HedgingResult& result) { return result.partial; }
bool is_partial(const std::unique_ptr<lab::ExperimentResult>& result) { return result->partial; }

// Runs an experiment, and notes how long it took; the caller writes and prints.
template <class R>
Result<R> measure(Result<R> (*run_experiment)(lab::Context&), lab::Context& context,
                  report::RunInfo& run) {
  const TimePoint started = net::real_now();
  Result<R> result = run_experiment(context);
  if (!result) return result;
  run.duration = net::real_now() - started;
  run.partial = is_partial(*result);
  return result;
}

}  // namespace

int run_lab(int argc, const char* const* argv) {
  const std::string_view first = argc > 1 ? argv[1] : "";
  if (first == "serve") return run_lab_serve(argc - 1, argv + 1);
  if (first == "truth") return run_lab_truth(argc - 1, argv + 1);
  CLI::App app{"Runs an experiment live on this machine, beside the published figures.",
               "tailward lab"};
  std::string name;
  lab::Context context;
  Outputs outputs;
  std::string names;
  for (const lab::Experiment& experiment : lab::experiments()) {
    names += fmt::format("\n  {:<14} {}", experiment.name, experiment.about);
  }
  app.add_option("NAME", name, "which experiment, or `list`")->required();
  app.add_flag("--quick", context.quick, "fewer requests: a first look, with wider intervals");
  app.add_option("--runs", context.runs, "how many runs of every arm, in turns")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--seed", context.seed, "seed of everything that is drawn")->capture_default_str();
  Goal goal;
  app.add_option("--goal", goal.goal,
                 "reference: what the adaptive arm makes small, such as p99 or p99.9")
      ->type_name("QUANTILE");
  app.add_option("--budget", goal.budget,
                 "reference: hedges that it may send per request, such as 5%")
      ->type_name("SHARE");
  add_outputs(app, outputs, "a page with curves and the timeline");
  app.footer("Experiments:" + names +
             "\n\nAlso: `lab serve` runs a faulty server to try diagnosis on, `lab truth` scores "
             "diagnosis\nagainst all of them; each has its own --help.\n\nThe server of an "
             "experiment runs in a process of its own, on loopback. Ctrl-C "
             "ends it early and "
             "shows what there is.\nExit status: 0 every claim holds, 1 one does not, 2 it could "
             "not be run.");
  if (const std::optional<int> status = parse_command_line(app, argc, argv)) return *status;
  if (name == "list") return list_experiments(outputs.json);
  const Result<const lab::Experiment*> experiment = lab::find_experiment(name);
  if (!experiment) return complain(experiment.error());
  if (const Result<void> taken = take_goal(goal, **experiment, context); !taken) {
    return complain(taken.error());
  }
  if (const Result<void> can = check_outputs(outputs); !can) return complain(can.error());

  StopWatch stop;
  ProgressLine progress;
  context.stop_asked = [&stop] { return stop.asked(); };
  context.progress = [&progress](const report::Progress& now) { progress.show(now); };
  context.heap = heap_use;
  report::RunInfo run = run_info(command_line(argc, argv), context.seed);
  const lab::AnyResult result = measure((*experiment)->run, context, run);
  progress.clear();
  if (!result) return complain(result.error());
  const Result<void> written = write_files(outputs, **experiment, **result, run);
  // JSON on standard output stays alone there.
  if (!outputs.to_stdout()) {
    print_out(report::to_terminal(lab::to_report(**experiment, **result, run), output_style()));
  }
  return written ? status_of(**result) : complain(written.error());
}

int run_demo(int argc, const char* const* argv) {
  CLI::App app{"The story in half a minute: a slow service, the popular cure, the right one.",
               "tailward demo"};
  lab::Context context;
  Outputs outputs;
  app.add_option("--seed", context.seed, "seed of everything that is drawn")->capture_default_str();
  add_outputs(app, outputs, "a page with curves and the timeline");
  if (const std::optional<int> status = parse_command_line(app, argc, argv)) return *status;
  const lab::Experiment story = lab::three_layer();
  if (const Result<void> can = check_outputs(outputs); !can) return complain(can.error());

  StopWatch stop;
  ProgressLine progress;
  const bool quiet = outputs.to_stdout();
  const auto say = [&](const std::string& text) {
    progress.clear();
    if (!quiet) print_out(text + "\n");
    static_cast<void>(std::fflush(stdout));  // end_output() has the last word
  };
  context.stop_asked = [&stop] { return stop.asked(); };
  context.progress = [&progress](const report::Progress& now) { progress.show(now); };
  context.story_only = true;
  context.arm_begins = [&say](const std::string& arm) { say(lab::demo_before(arm)); };
  context.arm_done = [&say](const lab::ArmResult& arm, const lab::ArmResult* unhedged) {
    say(lab::demo_after(arm, unhedged));
  };
  say(lab::demo_opening());
  report::RunInfo run = run_info(command_line(argc, argv), context.seed);
  Result<lab::HedgingResult> result = measure(lab::run_three_layer, context, run);
  progress.clear();
  if (!result) return complain(result.error());
  if (!result->partial) result->checks.push_back(lab::demo_check(*result));
  const Result<void> written = write_files(outputs, story, *result, run);
  say(result->partial ? "Ended early: the story has no end this time."
                      : lab::demo_closing(result->checks));
  return written ? status_of(*result) : complain(written.error());
}

int run_lab_server(int argc, const char* const* argv) {
  CLI::App app{"The server of an experiment; `tailward lab` starts it.", "tailward lab-server"};
  std::string model_text;
  std::uint16_t port = 0;
  app.add_option("--model", model_text, "what it is like, as JSON")->required();
  app.add_option("--port", port, "where it listens on loopback; 0: any free port");
  if (const std::optional<int> status = parse_command_line(app, argc, argv)) return *status;
  const Result<faults::WorkModel> model = faults::parse_work_model(model_text);
  if (!model) return complain(model.error());
  return faults::run_work_server(*model, port);
}

}  // namespace tailward
