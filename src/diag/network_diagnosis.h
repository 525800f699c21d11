// The verdict of the network level: rules decide which causes are there, the contrast between slow
// and normal requests what each of them costs.
//
// Thread safety: pure. The evidence is borrowed for the call.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/time.h"
#include "diag/analysis.h"
#include "diag/finding.h"
#include "tcp/host_counters.h"
#include "tcp/segment.h"
#include "tcp/socket_facts.h"

namespace tailward::diag {

// Everything the network level knows.
struct NetworkEvidence {
  const PacketAnalysis* packets = nullptr;
  std::span<const tcp::SocketFacts> sockets = {};  // at the end of the watch
  std::span<const tcp::SocketFacts> earlier =
      {};  // at its begin: counters are taken as differences
  // What was seen of listeners meanwhile: the fullest queue, and how often it was full.
  struct ListenerWatch {
    tcp::SocketAddress local;
    std::uint32_t queue_max = 0, backlog = 0;
    std::uint64_t looks = 0, looks_waiting = 0, looks_full = 0;
  };
  std::span<const ListenerWatch> listeners = {};
  std::optional<tcp::HostCounters> counters = {};
  std::uint64_t packets_lost = 0;  // by the capture
};

struct NetworkDiagnosis {
  std::vector<Finding> findings = {};  // by the P99 that fixing each would give, then by cost
  std::uint64_t requests = 0;
  Duration slow_from{};  // requests of at least this are slow: P99, or the slowest few
  struct Part {
    std::string name;
    Duration slow{}, normal{}, extra{};  // means, per request
    double share_of_slow = 0;
    bool within_others = false;  // a kind of stall: contained in the parts, which sum to the whole
  };
  std::vector<Part> parts = {};
  Duration unexplained{};  // of the slow requests' extra time, per request: in no part and no stall
  std::string sentence;    // the verdict in one sentence, also when there is no finding
};

// Contrast and rules. Pure. Findings in the order in which to act on them.
NetworkDiagnosis diagnose_network(const NetworkEvidence& evidence);

}  // namespace tailward::diag
