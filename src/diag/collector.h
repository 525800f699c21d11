// Where connections leave what they find: stalls by service and kind, turns, the packets that prove
// the worst stalls. Everything is bounded; see PacketLimits and the constants here.
//
// Thread safety: one thread.
#pragma once

#include <array>
#include <boost/unordered/unordered_flat_map.hpp>
#include <memory>
#include <optional>
#include <vector>

#include "base/rng.h"
#include "diag/analysis.h"
#include "diag/connection/round_trip.h"
#include "diag/connection/stall_event.h"
#include "diag/packet_analyser.h"
#include "diag/sample.h"
#include "tcp/sequence.h"

namespace tailward::diag {

// Are points in time in step with a clock of some period? The length of their mean as points on a
// circle; by chance it is r or more with probability exp(−n r²) (Rayleigh's test).
class TimerTickTest {
 public:
  void add(Duration at);
  void result(StallPattern& into) const;

 private:
  static constexpr std::array<std::int64_t, 3> kPeriodsNs{1'000'000, 4'000'000, 10'000'000};
  std::array<double, kPeriodsNs.size()> cos_{}, sin_{};
  std::uint64_t count_ = 0;
};

struct PatternBuilder {
  StallPattern pattern;
  Sample<64> length, gap, late;
  TimerTickTest tick_test;
};

struct Service {
  ServiceSummary summary;
  std::array<std::uint32_t, 5> vantage_votes{};  // by Vantage
  ServiceRoundTrips round_trips;
  std::array<std::array<std::unique_ptr<PatternBuilder>, 2>, kStallKinds> patterns{};

  PatternBuilder& pattern(StallKind kind, tcp::Side sender);
  [[nodiscard]] Vantage vantage() const;
};

// What the collector must know of a connection.
struct ConnectionTag {
  std::uint32_t serial = 0;
  Service* service = nullptr;
  std::array<Duration, kStallKinds> stalled{};
  std::uint32_t kinds_seen = 0;  // a bit for each kind and sender
  std::uint64_t recent = 0;      // its last segment among the remembered ones, from 1
  std::uint8_t proof_left = 0;   // segments that its proof still wants
  StallKind proof_kind{};
};

class Collector {
 public:
  bool at_server = false;  // the capture is made on the servers' own host
  explicit Collector(const PacketLimits& limits);

  Service& service(const tcp::SocketAddress& server);
  void remember(ConnectionTag& tag, const tcp::Segment& segment);
  void stall(ConnectionTag& tag, const StallEvent& event);
  void counterexample(ConnectionTag& tag, StallKind kind, tcp::Side sender);
  void spurious(ConnectionTag& tag, tcp::Side sender);
  void turn(const Turn& turn, std::uint32_t serial);
  void connection(const ConnectionTag& tag, const ConnectionSummary& summary);

  // Moves everything out. Call once.
  void finish(PacketAnalysis& into);

  std::uint64_t retransmissions = 0, duplicates = 0, reordered = 0;

 private:
  struct Recent {
    tcp::Segment segment;
    std::uint64_t before = 0;  // of the same connection
  };
  struct KeptProof {
    std::uint32_t serial = 0;
    Duration amount{};
    ProofPackets proof;
  };
  struct KeptConnection {
    std::uint32_t serial = 0;
    Duration stalled{};
    ConnectionSummary summary;
  };

  void prove(ConnectionTag& tag, const StallEvent& event);
  [[nodiscard]] std::vector<tcp::Segment> recall(const ConnectionTag& tag) const;

  PacketLimits limits_;
  boost::unordered_flat_map<std::string, std::unique_ptr<Service>> services_;
  std::vector<Recent> recent_;
  std::uint64_t remembered_ = 0;
  std::array<std::vector<KeptProof>, kStallKinds> proofs_;
  std::vector<KeptConnection> connections_;  // a heap, the least interesting first
  std::vector<Turn> turns_;
  std::uint64_t turns_seen_ = 0, one_sided_ = 0;
  stats::Histogram latency_;
  Rng rng_{20240604};  // which turns are kept when there are too many
};

}  // namespace tailward::diag
