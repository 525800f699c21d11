// From what was seen on the wire, or from the kernel's own account, to the latencies of the treated
// and of the untreated.
//
// Pure; safe from any thread.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/rng.h"
#include "base/time.h"
#include "diag/analysis.h"
#include "stats/interval.h"
#include "tcp/socket_facts.h"
#include "treat/effect.h"

namespace tailward::treat {

// As packets are stamped.
struct Window {
  Duration from{};
  Duration until{};
  [[nodiscard]] bool holds(Duration begin, Duration end) const {
    return from <= begin && end <= until;
  }
};

struct Slice {
  Window window;
  bool treated = false;
};

struct Windows {
  Window baseline;
  Window treatment;
  std::vector<Slice> slices;       // empty unless that is the design
  bool before_is_control = false;  // all are treated: they are compared with themselves before
};

// What measuring needs of a connection.
struct Subject {
  tcp::SocketAddress local;
  tcp::SocketAddress remote;
  std::uint32_t inode = 0;
  bool treated = false;
  bool counts = true;  // false: could not be treated though it was drawn
  Duration since{};    // counts as treated from here on
};

struct LatencyGroup {
  std::vector<Cluster> clusters;  // none is empty
  std::uint64_t count = 0;        // of latencies
  void add(Cluster cluster);
  // By nearest rank; 0 when empty.
  [[nodiscard]] Duration quantile(double q) const;
  // Of the quantile, from order statistics.
  [[nodiscard]] stats::DurationInterval quantile_interval(double q) const;

 private:
  [[nodiscard]] std::vector<Duration> sorted() const;
};

enum class MeasuredFrom { kPackets, kTcpInfo };
std::string_view to_string(MeasuredFrom source);

struct Measurement {
  MeasuredFrom source = MeasuredFrom::kPackets;
  LatencyGroup treated;
  LatencyGroup untreated;
  // Before the change.
  LatencyGroup treated_before;
  LatencyGroup untreated_before;
  std::optional<Effect> effect;
  std::optional<Effect> before;      // of the halves before the change: should be none
  std::uint64_t turns = 0;           // on connections that were watched
  std::uint64_t turns_dropped = 0;   // over a limit: the figures are from a sample
  std::uint64_t turns_unplaced = 0;  // of connections over the analyser's limit: left out
};

// The time that a client waited for this turn: all of it, less the time from the last byte of the
// response to its acknowledgement, which nobody waits for, unless data were lost or had to wait.
Duration latency_of(const diag::Turn& turn);

// Requests on the wire. Those that are not wholly within a window are left out.
Measurement measure_turns(const diag::PacketAnalysis& packets, std::span<const Subject> subjects,
                          const Windows& windows, Rng& rng);

// The kernel's account of a connection at one time.
struct BusyTime {
  std::uint32_t inode = 0;
  std::uint64_t busy_us = 0;
  std::uint64_t segments = 0;  // with data, sent
};

// Without packets: the time with data in flight or waiting, for each segment with data. It has what
// the sender is made to wait for, and not what is thought or read. One figure for each connection;
// with halves `at` has the beginning, the change and the end, with slices every boundary.
Measurement measure_tcp_info(std::span<const std::vector<BusyTime>> at,
                             std::span<const Subject> subjects, const Windows& windows, Rng& rng);

}  // namespace tailward::treat
