#include "diagnose_command.h"

#include <fmt/format.h>

#include <ctime>

#include "base/units.h"
#include "console.h"
#include "diagnose/render.h"
#include "net/real_clock.h"
#include "report/html.h"
#include "stop_watch.h"

namespace tailward {
namespace {

constexpr const char* kAbout =
    "Says where the time of slow requests went, which layer is at fault, and what to fix first;\n"
    "from a running process, unmodified, or from a capture of its packets.";

constexpr const char* kFooter =
    "What it looks at, each only where it may: packets' headers (CAP_NET_RAW), the sockets and\n"
    "their options (root, or the same user), accept queues, the kernel's counters. Nothing in any\n"
    "process is changed, and no payload is kept or shown. A process in a container is looked at "
    "in\n"
    "its own network namespace (CAP_SYS_ADMIN).\n"
    "\n"
    "What it finds: Nagle's algorithm against delayed acknowledgements, small writes, a forgotten\n"
    "TCP_CORK, pinned small buffers, slow readers, lost packets and handshakes, full accept\n"
    "queues, slow accepting, a slow path. When it finds none of these it says so: then the cause\n"
    "lies above TCP. Each finding is proven, consistent or guessed, and names its packets.\n"
    "\n"
    "Captures: pcap and pcapng (Ethernet, VLAN, loopback, Linux cooked, raw IP). 128 bytes of "
    "each\n"
    "packet are enough: tcpdump -s 128 -w service.pcap port 8080\n"
    "\n"
    "Examples:\n"
    "  tailward diagnose --port 8080 --for 30s --html diagnosis.html\n"
    "  tailward diagnose --pcap service.pcap --json -\n"
    "\n"
    "Exit status: 0 nothing found, 1 something is at fault, 2 usage, or nothing could be seen.";

struct Texts {
  std::string pcap;
  std::string watch = "10s";
  std::string write;
  std::string interface = "any";
  std::optional<int> pid;
  std::optional<std::uint16_t> port;
  Outputs outputs;
};

void add_options(CLI::App& app, Texts& texts) {
  app.add_option("--pid", texts.pid, "a running process")->type_name("P");
  app.add_option("--port", texts.port,
                 "the process that listens there; of a capture: this port's connections")
      ->type_name("N")
      ->check(CLI::Range(1, 65535));
  app.add_option("--pcap", texts.pcap, "a capture file (- for standard input)")->type_name("FILE");
  app.add_option("--for", texts.watch, "how long to watch a process")
      ->type_name("DURATION")
      ->capture_default_str();
  app.add_option("--interface", texts.interface, "where to capture")
      ->type_name("NAME")
      ->capture_default_str();
  app.add_option("--write", texts.write, "keep the packets' headers as a pcap file")
      ->type_name("FILE");
  add_outputs(app, texts.outputs, "a page with the proving packets drawn");
}

Result<diagnose::Diagnosis> gather(const Texts& texts, const diagnose::Hooks& hooks) {
  if (!texts.pcap.empty()) {
    if (texts.pid) {
      return fail(ErrorKind::kInvalid, "--pcap and --pid are two different sources",
                  "a capture has no process; --port chooses its connections");
    }
    return diagnose::diagnose_capture({texts.pcap, texts.port}, hooks);
  }
  if (!texts.pid && !texts.port) {
    return fail(ErrorKind::kInvalid, "nothing to diagnose",
                "give --pid P or --port N of a running process, or --pcap FILE");
  }
  const Result<Duration> watch = parse_duration(texts.watch);
  if (!watch) return fail(watch.error().in("--for"));
  if (*watch <= Duration{0}) {
    return fail(ErrorKind::kInvalid, "--for: nothing can be seen in no time", "such as 10s");
  }
  if (const Result<void> can = probe_output(texts.write); !can) return fail(can.error());
  return diagnose::diagnose_live({.pid = texts.pid,
                                  .port = texts.port,
                                  .watch = *watch,
                                  .interface = texts.interface,
                                  .write_to = texts.write},
                                 hooks);
}

// What was judged, or why there was nothing to judge.
int status_of(const diagnose::Diagnosis& diagnosis) {
  if (!diagnosis.network.findings.empty()) return kAtFault;
  if (diagnosis.packets.packets > 0) return kDone;
  const diagnose::Source* packets = diagnosis.source("packets");
  if (packets != nullptr && packets->state == "denied") {
    return complain({ErrorKind::kDenied, "no packet could be seen", packets->note});
  }
  return complain({ErrorKind::kInvalid, "no TCP packet was seen",
                   "is there traffic on these ports? watch longer with --for, or give --port"});
}

}  // namespace

int run_diagnose(int argc, const char* const* argv) {
  CLI::App app{kAbout, "tailward diagnose"};
  Texts texts;
  add_options(app, texts);
  app.footer(kFooter);
  if (const std::optional<int> status = parse_command_line(app, argc, argv)) return *status;
  if (const Result<void> can = check_outputs(texts.outputs); !can) return complain(can.error());

  report::RunInfo run = run_info(command_line(argc, argv), 0);
  StopWatch stop;
  StopWatch::restart_calls(false);  // a read from a pipe may wait for ever
  ProgressLine progress;
  const TimePoint started = net::real_now();
  const std::clock_t worked = std::clock();
  Result<diagnose::Diagnosis> diagnosis =
      gather(texts, {.now = net::real_now,
                     .wait = [&stop](Duration at_most) { stop.wait(at_most); },
                     .stop_asked = [&stop] { return stop.asked(); },
                     .progress = [&progress](const report::Progress& now) { progress.show(now); }});
  progress.clear();
  if (!diagnosis) return complain(diagnosis.error());
  StopWatch::restart_calls(true);
  run.duration = net::real_now() - started;
  run.partial = diagnosis->partial;
  diagnosis->cpu = std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(static_cast<double>(std::clock() - worked) / CLOCKS_PER_SEC));

  const report::Report report = diagnose::to_report(*diagnosis, run);
  const Result<void> written = write_outputs(
      texts.outputs, [&] { return report::to_text(diagnose::to_json(*diagnosis, run)); },
      [&] { return report::to_html(report); });
  // JSON on standard output stays alone there.
  if (!texts.outputs.to_stdout()) print_out(report::to_terminal(report, output_style()));
  if (!written) return complain(written.error());
  return status_of(*diagnosis);
}

}  // namespace tailward
