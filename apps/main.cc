// Finds the verb and hands it the rest of the command line.
#include <fmt/format.h>

#include <string>
#include <string_view>

#include "console.h"
#include "diagnose_command.h"
#include "lab_command.h"
#include "plan_command.h"
#include "proxy_command.h"
#include "sick_command.h"
#include "sockets_command.h"
#include "treat_command.h"

namespace tailward {
namespace {

struct Verb {
  std::string_view name;
  std::string_view about;
  int (*run)(int argc, const char* const* argv);
};

constexpr Verb kVerbs[] = {
    {"demo", "the story: a slow service, the popular cure, the right one", run_demo},
    {"diagnose", "why requests are slow: from a running process or a capture", run_diagnose},
    {"lab", "experiments, live on this machine, beside the published figures", run_lab},
    {"plan", "from a log of latencies: what hedging would bring and cost", run_plan},
    {"proxy", "a sidecar that hedges slow requests and says whether that pays", run_proxy},
    {"sockets", "the TCP options and state of every socket of a running process", run_sockets},
    {"treat", "try an option on a running process, measure it, restore the old value", run_treat},
    {"lab-server", "", run_lab_server},
    {"lab-sick-server", "", run_lab_sick_server},
};

void print_help() {
  std::string text =
      "tailward: why the P99 is high, what to fix, and in which order\n\n"
      "usage: tailward VERB [ARGS…]\n\n";
  for (const Verb& verb : kVerbs) {
    if (!verb.about.empty()) text += fmt::format("  {:<8} {}\n", verb.name, verb.about);
  }
  text +=
      "\n  tailward VERB --help   what a verb does and takes\n"
      "  tailward --version     the version\n";
  print_out(text);
}

int run(int argc, char** argv) {
  const std::string_view name = argc > 1 ? argv[1] : "--help";
  if (name == "--help" || name == "-h" || name == "help") {
    print_help();
    return argc > 1 ? kDone : kUsage;
  }
  if (name == "--version") {
    print_out(fmt::format("tailward {}\n", TAILWARD_VERSION));
    return kDone;
  }
  for (const Verb& verb : kVerbs) {
    if (verb.name != name) continue;
    raise_descriptor_limit();
    return verb.run(argc - 1, argv + 1);
  }
  return complain(
      {ErrorKind::kInvalid, fmt::format("there is no verb '{}'", name), "see tailward --help"});
}

}  // namespace
}  // namespace tailward

int main(int argc, char** argv) {
  tailward::prepare_process();
  return tailward::end_output(tailward::run(argc, argv));
}
