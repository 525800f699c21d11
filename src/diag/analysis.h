// What the packet analyser makes of a capture: connections, requests, stalls and the packets that
// prove them. Plain values, without thread safety of their own.
//
// Units: a Duration that is a point in time is as in tcp::Segment::at; packets are numbers as in
// tcp::Segment::number.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "stats/histogram.h"
#include "tcp/segment.h"

namespace tailward::diag {

// Where the capture was made, as seen from the server; decides which delays can be told apart.
enum class Vantage { kUnknown, kServer, kClient, kBetween, kLoopback };
std::string_view to_string(Vantage vantage);

// The time that a turn (a request) lost in one way. See to_string() for the words.
enum class StallKind : std::uint8_t {
  kHeldByNagle,     // a small segment waited for the ACK of the one before it
  kSmallWrites,     // a stream of small segments: the time beyond what full ones would take
  kCorked,          // a part of a segment left after the kernel's 200 ms
  kSendBuffer,      // the sender waited for ACKs with window, cwnd and data to spare
  kReceiveWindow,   // the window was full, and it is small
  kZeroWindow,      // the reader let it fill up
  kRetransmission,  // RTO, tail-loss probe or fast retransmission
  kSynUnanswered,   // a SYN was sent again
  kSynDropped,      // a SYN reached its host, which did not answer
  kFirstTurn,       // the first request of a connection waited to be accepted
  kWire,            // round-trip time beyond the connection's or the peer's smallest
};
inline constexpr std::size_t kStallKinds = 11;
std::string_view to_string(StallKind kind);  // "held by Nagle", … as in the tables
// As the parts of a request are named: "held by Nagle", "retransmission", …
std::string_view to_string(StallKind kind);

// What a stall looked like, with the packets that show it.
struct Stall {
  StallKind kind{};
  Duration from{};  // as in Segment::at
  Duration until{};
  bool sender_is_client = false;  // whose data waited
  std::vector<std::uint64_t> packets = {};
};

// One turn: a request and its answer. Durations; they sum to `total`.
struct Turn {
  std::uint32_t connection = 0;  // index into PacketAnalysis::connections, or UINT32_MAX
  Duration began{};
  Duration total{};
  Duration handshake{};  // of the connection's first turn
  Duration request{};    // from its first to its last byte, as captured
  Duration wire{};       // to the server and back, as seen from where the capture was made
  Duration think{};      // from the request's last byte to the answer's first, less the wire
  Duration response{};   // from the answer's first byte to its last
  // Until the last byte was acknowledged; no longer than the way to the client and back, unless
  // something was lost or held: that the client delays its acknowledgement keeps nobody waiting.
  Duration final_ack_wait{};
  std::array<std::uint32_t, kStallKinds> stalled_us{};  // contained in the parts above
};

struct ConnectionSummary {
  tcp::SocketAddress
      client;  // who sent the SYN; without one, who spoke first or has the higher port
  tcp::SocketAddress server;
  bool saw_start = false;
  bool saw_end = false;
  bool one_sided = false;
  Vantage vantage = Vantage::kUnknown;
  std::optional<Duration> handshake;  // SYN to the ACK of the SYN-ACK
  std::optional<Duration> rtt_min, rtt_median;
  std::uint64_t packets = 0, retransmissions = 0, duplicates = 0, reordered = 0, turns = 0;
  std::uint64_t bytes_from_client = 0, bytes_from_server = 0;
  std::uint64_t segments_from_client = 0, segments_from_server = 0;
  std::array<Duration, kStallKinds> stalled{};
};

// A connection with its proving packets, for a picture.
struct ProofPackets {
  std::uint32_t connection = 0;
  Stall stall;
  std::vector<tcp::Segment> segments = {};  // in order of capture, around the stall
};

// The 10 %, 50 % and 90 % quantiles of what recurred.
struct Spread {
  Duration low{}, median{}, high{};
};

// What the stalls of one kind have in common, at one service and in one direction.
struct StallPattern {
  StallKind kind{};
  tcp::SocketAddress server;
  bool sender_is_client = false;
  std::uint64_t count = 0;
  // Occasions that were alike but for their timing: an application's pause makes as many of these
  // as of the others.
  std::uint64_t counterexamples = 0;
  std::uint64_t connections = 0;
  Duration total{}, longest{};
  Spread length;
  // Nagle: from the ACK to the segment that it let go. Cork: from what should have sent the segment
  // to the segment. Small writes: from one to the next. Both less the round trip.
  Spread gap;
  Spread late;  // Nagle: the ACK, less the round trip
  // Nagle: those whose round trip is only bounded by these very segments: the kernel alone
  // acknowledged nothing else.
  std::uint64_t rtt_only_bounded = 0;
  // Cork: how well the segments are in step with the tick of a kernel's timers (1, 4 or 10 ms),
  // 0…1; and how likely that is by chance.
  double in_step = 0, in_step_by_chance = 1;
  std::uint64_t first_data = 0;  // retransmissions: those of the first data after the handshake
  std::uint64_t after_full = 0;  // those whose segment followed a full-sized one
  std::uint64_t timeouts = 0, probes = 0, fast = 0, spurious = 0;
  std::uint64_t segments = 0, bytes = 0;
  std::uint32_t first_bytes = 0, second_bytes = 0;  // the pieces of a message that was held
  std::uint32_t in_flight = 0, window_max = 0;      // the largest
  bool window_known = true;                         // the connections' scales were seen
  std::vector<std::uint64_t> packets = {};          // of the longest
};

// One listening address.
struct ServiceSummary {
  tcp::SocketAddress server;
  Vantage vantage = Vantage::kUnknown;  // of most of its connections
  std::uint64_t connections = 0, refused = 0, syns_repeated = 0;
  std::optional<Duration> rtt_min;  // the whole way
  std::vector<std::uint64_t> refused_packets = {};
};

struct PacketAnalysis {
  std::uint64_t packets = 0;  // TCP segments that were looked at
  std::uint64_t data_segments = 0, retransmissions = 0, duplicates = 0, reordered = 0;
  std::uint64_t connections_seen = 0, connections_let_go = 0;  // the latter: over a limit
  std::uint64_t one_sided = 0, options_cut = 0, giant_segments = 0, clock_steps = 0;
  Duration first{}, last{};
  // The ones with most stalled time first, limited.
  std::vector<ConnectionSummary> connections = {};
  stats::Histogram latency;  // of all turns
  std::vector<Turn> turns = {};
  std::uint64_t turns_seen = 0;
  std::vector<ProofPackets> proofs = {};
  std::vector<StallPattern> patterns = {};
  std::vector<ServiceSummary> services = {};
};

}  // namespace tailward::diag
