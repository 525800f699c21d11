#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/units.h"
#include "diag/packet_analyser.h"
#include "diagnose/diagnosis.h"

namespace tailward::diagnose {
namespace {

std::vector<std::uint16_t> as_list(const std::optional<std::uint16_t>& port) {
  return port ? std::vector<std::uint16_t>{*port} : std::vector<std::uint16_t>{};
}

void warn_of_file(const probe::FileReading& reading, Diagnosis& diagnosis) {
  const probe::CaptureCounters& seen = reading.counters;
  if (reading.broken) {
    diagnosis.warnings.push_back(
        fmt::format("the capture breaks off after {} packets ({}): what follows is not known",
                    format_count(seen.packets), reading.broken->message));
  }
  if (seen.malformed > 0) {
    diagnosis.warnings.push_back(fmt::format("{} packets contradict themselves and were left out",
                                             format_count(seen.malformed)));
  }
  if (seen.cut > 0) {
    diagnosis.warnings.push_back(
        fmt::format("{} packets were captured too short to read their TCP header: capture at least "
                    "128 bytes of each (tcpdump -s 128)",
                    format_count(seen.cut)));
  }
  if (seen.unknown_link > 0) {
    diagnosis.warnings.push_back(fmt::format("{} packets are of a link type that is not read",
                                             format_count(seen.unknown_link)));
  }
}

}  // namespace

const Source* Diagnosis::source(std::string_view name) const {
  const auto found = std::find_if(sources.begin(), sources.end(),
                                  [&](const Source& source) { return source.name == name; });
  return found == sources.end() ? nullptr : &*found;
}

Result<Diagnosis> diagnose_capture(const CaptureOptions& options, const Hooks& hooks) {
  diag::PacketAnalyser analyser(as_list(options.port));
  const auto wanted = [port = options.port](const tcp::Segment& segment) {
    return !port || segment.from.port == *port || segment.to.port == *port;
  };
  std::error_code unknown;
  const std::uintmax_t size = std::filesystem::file_size(options.path, unknown);
  constexpr int kMiB = 20;
  const TimePoint began = hooks.now();
  Result<probe::FileReading> reading = probe::read_capture_file(
      options.path,
      [&](const tcp::Segment& segment) {
        if (wanted(segment)) analyser.add(segment);
      },
      [&](std::uint64_t bytes) {
        if (hooks.progress) {
          hooks.progress(
              {"MiB read", bytes >> kMiB, unknown ? 0 : size >> kMiB, hooks.now() - began});
        }
        return !hooks.stop_asked || !hooks.stop_asked();
      });
  if (!reading) return fail(reading.error());

  Diagnosis diagnosis;
  diagnosis.packets = analyser.finish();
  diagnosis.capture = reading->counters;
  diagnosis.ports = as_list(options.port);
  diagnosis.window = diagnosis.packets.last - diagnosis.packets.first;
  diagnosis.partial = reading->stopped;
  warn_of_file(*reading, diagnosis);
  const std::string from_running = "a capture does not hold it: tailward diagnose --pid or --port";
  diagnosis.sources = {{"packets", diagnosis.packets.packets > 0 ? "used" : "not there",
                        fmt::format("{} of {} packets are TCP segments that were looked at",
                                    format_count(diagnosis.packets.packets),
                                    format_count(reading->counters.packets))},
                       {"sockets", "not there", from_running},
                       {"options", "not there", from_running},
                       {"counters", "not there", from_running},
                       {"bpf", "not there", from_running}};
  diagnosis.network = diag::diagnose_network(
      {.packets = &diagnosis.packets, .packets_lost = reading->counters.lost});
  return diagnosis;
}

}  // namespace tailward::diagnose
