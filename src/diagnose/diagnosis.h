// `tailward diagnose` at the packet and socket levels: gathers the evidence, from a capture file or
// from a running process, and has it judged (diag/network_diagnosis.h).
//
// Thread safety: one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "diag/analysis.h"
#include "diag/network_diagnosis.h"
#include "probe/capture.h"
#include "report/terminal.h"
#include "tcp/host_counters.h"
#include "tcp/socket_facts.h"

namespace tailward::diagnose {

// Where evidence came from, or why it did not.
struct Source {
  std::string name;       // "packets", "options", "sockets", "counters", "bpf"
  std::string state;      // "used", "denied", "not there", "not asked for"
  std::string note = {};  // what it gave, or how to grant it
};

struct Diagnosis {
  diag::PacketAnalysis packets;
  diag::NetworkDiagnosis network;
  std::vector<tcp::SocketFacts> sockets;  // of the process, as last seen
  std::vector<diag::NetworkEvidence::ListenerWatch> listeners;
  std::optional<tcp::HostCounters> counters;
  probe::CaptureCounters capture;
  std::vector<Source> sources;
  std::vector<std::string> warnings;  // what makes the figures less sure
  std::vector<std::uint16_t> ports;   // that were looked at; empty: all
  Duration window{};                 // from the first packet to the last, or as long as was watched
  std::optional<Duration> cpu = {};  // that the diagnosis itself took
  bool partial = false;

  [[nodiscard]] const Source* source(std::string_view name) const;
};

// How a gathering speaks with the one who started it.
struct Hooks {
  std::function<TimePoint()> now;           // the machine's monotonic clock
  std::function<void(Duration)> wait = {};  // at most so long; a stop may end it early
  std::function<bool()> stop_asked = {};
  std::function<void(const report::Progress&)> progress = {};
};

struct CaptureOptions {
  std::string path;  // "-": standard input
  // Only connections of this port, whose side is the server.
  std::optional<std::uint16_t> port = {};
};

// Errors: as probe::read_capture_file(). A file that breaks off is a warning.
Result<Diagnosis> diagnose_capture(const CaptureOptions& options, const Hooks& hooks);

struct LiveOptions {
  std::optional<int> pid = {};
  std::optional<std::uint16_t> port = {};
  Duration watch = std::chrono::seconds(10);
  std::string interface = "any";
  std::string write_to = {};  // the packets' headers as a pcap file, if not empty
};

// Watches a process: packets of its listening ports (of a process that does not listen: of the
// ports that it is connected to), its sockets, their options, its listeners' queues and the host's
// counters. What is not permitted is left out and said in `sources`; without any evidence that is
// an error. Errors: kInvalid (no such process, nothing uses the port), kDenied.
Result<Diagnosis> diagnose_live(const LiveOptions& options, const Hooks& hooks);

}  // namespace tailward::diagnose
