#include "treat/measure.h"

#include <algorithm>
#include <utility>

namespace tailward::treat {
namespace {

// The time of a turn during which data or window were missing, and not only an acknowledgement.
bool waited_for_data(const diag::Turn& turn) {
  using diag::StallKind;
  for (const StallKind kind : {StallKind::kRetransmission, StallKind::kReceiveWindow,
                               StallKind::kZeroWindow, StallKind::kSendBuffer}) {
    if (turn.stalled_us[static_cast<std::size_t>(kind)] > 0) return true;
  }
  return false;
}

// Which subject each connection of the capture is.
std::vector<const Subject*> subjects_of(const diag::PacketAnalysis& packets,
                                        std::span<const Subject> subjects) {
  std::map<std::pair<tcp::SocketAddress, tcp::SocketAddress>, const Subject*> known;
  for (const Subject& one : subjects) {
    if (one.counts) known[{one.local, one.remote}] = &one;
  }
  std::vector<const Subject*> found;
  for (const diag::ConnectionSummary& one : packets.connections) {
    // Without the SYN the analyser guesses which side is the server. Both ways round are tried.
    auto at = known.find({one.server, one.client});
    if (at == known.end()) at = known.find({one.client, one.server});
    found.push_back(at == known.end() ? nullptr : at->second);
  }
  return found;
}

void compare(Measurement& measured, const Windows& windows, Rng& rng) {
  if (windows.before_is_control) {
    // There is no control group: the same connections before the change stand in for it.
    measured.untreated = std::exchange(measured.treated_before, {});
  }
  measured.effect = median_effect(measured.treated.clusters, measured.untreated.clusters, rng);
  measured.before =
      median_effect(measured.treated_before.clusters, measured.untreated_before.clusters, rng);
}

void add_slices(Measurement& measured, const std::vector<Cluster>& by_slice,
                const Windows& windows) {
  for (std::size_t i = 0; i < by_slice.size(); ++i) {
    LatencyGroup& group = windows.slices[i].treated ? measured.treated : measured.untreated;
    group.add(by_slice[i]);
  }
}

struct ByConnection {
  Cluster before;
  Cluster during;
};

}  // namespace

std::string_view to_string(MeasuredFrom source) {
  return source == MeasuredFrom::kPackets ? "packets" : "tcp_info";
}

void LatencyGroup::add(Cluster cluster) {
  if (cluster.empty()) return;
  count += cluster.size();
  clusters.push_back(std::move(cluster));
}

std::vector<Duration> LatencyGroup::sorted() const {
  std::vector<Duration> all;
  for (const Cluster& one : clusters) all.insert(all.end(), one.begin(), one.end());
  std::sort(all.begin(), all.end());
  return all;
}

Duration LatencyGroup::quantile(double q) const {
  if (count == 0) return Duration{0};
  return sorted()[stats::nearest_rank(count, q) - 1];
}

stats::DurationInterval LatencyGroup::quantile_interval(double q) const {
  if (count == 0) return {{}, {}, false};
  const std::vector<Duration> all = sorted();
  const stats::RankInterval ranks = stats::quantile_ranks(count, q);
  // With few latencies a rank can lie outside of them. The end is then the smallest or the largest
  // one, and the third field says that the interval is open there.
  return {all[std::max<std::uint64_t>(ranks.low, 1) - 1], all[std::min(ranks.high, count) - 1],
          ranks.low >= 1 && ranks.high <= count};
}

Duration latency_of(const diag::Turn& turn) {
  // See docs/design/treat.md: a healthy delayed ACK (40 ms) is no part of what a client waits.
  return waited_for_data(turn) ? turn.total : turn.total - turn.final_ack_wait;
}

Measurement measure_turns(const diag::PacketAnalysis& packets, std::span<const Subject> subjects,
                          const Windows& windows, Rng& rng) {
  Measurement measured;
  const std::vector<const Subject*> found = subjects_of(packets, subjects);
  std::map<const Subject*, ByConnection> by_connection;
  std::vector<Cluster> by_slice(windows.slices.size());
  for (const diag::Turn& turn : packets.turns) {
    const bool placed = turn.connection < found.size();
    if (!placed) ++measured.turns_unplaced;
    const Subject* subject = placed ? found[turn.connection] : nullptr;
    if (subject == nullptr) continue;
    ++measured.turns;
    const Duration end = turn.began + turn.total;
    const Duration latency = latency_of(turn);
    for (std::size_t i = 0; i < windows.slices.size(); ++i) {
      const Slice& slice = windows.slices[i];
      // The connection was still as before when this turn began.
      if (slice.treated && turn.began < subject->since) continue;
      if (slice.window.holds(turn.began, end)) by_slice[i].push_back(latency);
    }
    if (windows.baseline.holds(turn.began, end)) by_connection[subject].before.push_back(latency);
    if (windows.treatment.holds(turn.began, end) && turn.began >= subject->since) {
      by_connection[subject].during.push_back(latency);
    }
  }
  // The analyser keeps a limited sample of turns.
  measured.turns_dropped = packets.turns_seen - std::min(packets.turns_seen, packets.turns.size());
  add_slices(measured, by_slice, windows);
  // In the order of the subjects, so that the draws of the bootstrap replay.
  for (const Subject& subject : subjects) {
    const auto at = by_connection.find(&subject);
    if (at == by_connection.end()) continue;
    (subject.treated ? measured.treated_before : measured.untreated_before).add(at->second.before);
    if (windows.slices.empty()) {
      (subject.treated ? measured.treated : measured.untreated).add(at->second.during);
    }
  }
  compare(measured, windows, rng);
  return measured;
}

namespace {

// Busy time for each segment between two looks at a connection.
std::optional<Duration> busy_between(const std::map<std::uint32_t, BusyTime>& earlier,
                                     const std::map<std::uint32_t, BusyTime>& later,
                                     std::uint32_t inode) {
  const auto a = earlier.find(inode);
  const auto b = later.find(inode);
  if (a == earlier.end() || b == later.end()) return std::nullopt;
  // No segment with data was sent, or the inode belongs to another socket by now.
  if (b->second.segments <= a->second.segments || b->second.busy_us < a->second.busy_us) {
    return std::nullopt;
  }
  const std::chrono::microseconds busy(b->second.busy_us - a->second.busy_us);
  return Duration(busy) / static_cast<std::int64_t>(b->second.segments - a->second.segments);
}

}  // namespace

Measurement measure_tcp_info(std::span<const std::vector<BusyTime>> at,
                             std::span<const Subject> subjects, const Windows& windows, Rng& rng) {
  Measurement measured;
  measured.source = MeasuredFrom::kTcpInfo;
  std::vector<std::map<std::uint32_t, BusyTime>> looks;
  for (const std::vector<BusyTime>& look : at) {
    auto& by_inode = looks.emplace_back();
    for (const BusyTime& one : look) by_inode[one.inode] = one;
  }
  // One look precedes the change, one is at the change, one at the end: `from` is 0 or 1.
  const auto add = [&](std::size_t from, const Subject& subject, LatencyGroup& group) {
    if (from + 1 >= looks.size()) return;
    const auto busy = busy_between(looks[from], looks[from + 1], subject.inode);
    if (busy) group.add({*busy});
  };
  if (!windows.slices.empty()) {
    std::vector<Cluster> by_slice(windows.slices.size());
    for (std::size_t i = 0; i < by_slice.size() && i + 1 < looks.size(); ++i) {
      const Slice& slice = windows.slices[i];
      for (const Subject& subject : subjects) {
        if (slice.treated && slice.window.from < subject.since) continue;
        const auto busy = busy_between(looks[i], looks[i + 1], subject.inode);
        if (busy && subject.counts) by_slice[i].push_back(*busy);
      }
    }
    add_slices(measured, by_slice, windows);
  }
  for (const Subject& subject : subjects) {
    if (!subject.counts || !windows.slices.empty()) continue;
    add(0, subject, subject.treated ? measured.treated_before : measured.untreated_before);
    add(1, subject, subject.treated ? measured.treated : measured.untreated);
  }
  compare(measured, windows, rng);
  return measured;
}

}  // namespace tailward::treat
