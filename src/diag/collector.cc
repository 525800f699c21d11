#include "diag/collector.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

namespace tailward::diag {
namespace {

constexpr std::size_t kServicesMax = 4096;  // then they share one record, of address "::"
constexpr std::size_t kRememberedMax = std::size_t{1} << 15;
constexpr std::uint8_t kProofAfter = 6;  // segments after the end of a stall

std::string key_of(const tcp::SocketAddress& address) {
  std::string key(18, '\0');
  std::memcpy(key.data(), address.address.bytes.data(), 16);
  key[16] = static_cast<char>(address.port >> 8);
  key[17] = static_cast<char>(address.port & 0xff);
  return key;
}

std::size_t index_of(StallKind kind) { return static_cast<std::size_t>(kind); }

}  // namespace

void TimerTickTest::add(Duration at) {
  ++count_;
  for (std::size_t i = 0; i < kPeriodsNs.size(); ++i) {
    const auto phase = static_cast<double>(at.count() % kPeriodsNs[i]);
    const double angle = 2 * std::numbers::pi * phase / static_cast<double>(kPeriodsNs[i]);
    cos_[i] += std::cos(angle);
    sin_[i] += std::sin(angle);
  }
}

void TimerTickTest::result(StallPattern& into) const {
  if (count_ == 0) return;
  const auto n = static_cast<double>(count_);
  for (std::size_t i = 0; i < kPeriodsNs.size(); ++i) {
    into.in_step = std::max(into.in_step, std::hypot(cos_[i], sin_[i]) / n);
  }
  const double tries = static_cast<double>(kPeriodsNs.size());
  into.in_step_by_chance = std::min(1.0, tries * std::exp(-n * into.in_step * into.in_step));
}

PatternBuilder& Service::pattern(StallKind kind, tcp::Side sender) {
  auto& place = patterns[index_of(kind)][sender];
  if (!place) {
    place = std::make_unique<PatternBuilder>();
    place->pattern.kind = kind;
    place->pattern.server = summary.server;
    place->pattern.sender_is_client = sender == tcp::kClient;
  }
  return *place;
}

Vantage Service::vantage() const {
  std::size_t best = 0;
  for (std::size_t i = 1; i < vantage_votes.size(); ++i) {
    if (vantage_votes[i] > vantage_votes[best]) best = i;
  }
  return static_cast<Vantage>(best);
}

Collector::Collector(const PacketLimits& limits) : limits_(limits) {}

Service& Collector::service(const tcp::SocketAddress& server) {
  const tcp::SocketAddress rest{};
  const bool full = services_.size() >= kServicesMax;
  auto found = services_.find(key_of(server));
  if (found == services_.end() && full) found = services_.find(key_of(rest));
  if (found == services_.end()) {
    auto made = std::make_unique<Service>();
    made->summary.server = full ? rest : server;
    found = services_.emplace(key_of(made->summary.server), std::move(made)).first;
  }
  return *found->second;
}

void Collector::remember(ConnectionTag& tag, const tcp::Segment& segment) {
  const Recent entry{segment, tag.recent};
  if (recent_.size() < kRememberedMax) {
    recent_.push_back(entry);
  } else {
    recent_[remembered_ % kRememberedMax] = entry;
  }
  tag.recent = ++remembered_;
  if (tag.proof_left == 0) return;
  --tag.proof_left;
  for (KeptProof& kept : proofs_[index_of(tag.proof_kind)]) {
    if (kept.serial == tag.serial) kept.proof.segments.push_back(segment);
  }
}

std::vector<tcp::Segment> Collector::recall(const ConnectionTag& tag) const {
  std::vector<tcp::Segment> segments;
  std::uint64_t at = tag.recent;
  while (at != 0 && remembered_ - at < recent_.size() && segments.size() < limits_.recent_max) {
    const Recent& entry = recent_[(at - 1) % kRememberedMax];
    segments.push_back(entry.segment);
    at = entry.before;
  }
  std::reverse(segments.begin(), segments.end());
  return segments;
}

void Collector::prove(ConnectionTag& tag, const StallEvent& event) {
  auto& kept = proofs_[index_of(event.kind)];
  const std::size_t room = std::max<std::size_t>(1, limits_.proofs_max / kStallKinds);
  auto place = std::find_if(kept.begin(), kept.end(),
                            [&](const KeptProof& k) { return k.serial == tag.serial; });
  if (place == kept.end() && kept.size() < room) place = kept.insert(kept.end(), KeptProof{});
  if (place == kept.end()) {
    place = std::min_element(kept.begin(), kept.end(), [](const KeptProof& a, const KeptProof& b) {
      return a.amount < b.amount;
    });
  }
  if (event.amount <= place->amount) return;
  place->serial = tag.serial;
  place->amount = event.amount;
  place->proof.stall = {.kind = event.kind,
                        .from = event.from,
                        .until = event.until,
                        .sender_is_client = event.sender == tcp::kClient,
                        .packets = {}};
  for (const auto number : event.packets) {
    if (number != 0) place->proof.stall.packets.push_back(number);
  }
  place->proof.segments = recall(tag);
  tag.proof_left = kProofAfter;
  tag.proof_kind = event.kind;
}

void Collector::stall(ConnectionTag& tag, const StallEvent& event) {
  const std::size_t kind = index_of(event.kind);
  tag.stalled[kind] += event.amount;
  PatternBuilder& builder = tag.service->pattern(event.kind, event.sender);
  StallPattern& pattern = builder.pattern;
  ++pattern.count;
  const std::uint32_t bit = 1u << (2 * kind + event.sender);
  if ((tag.kinds_seen & bit) == 0) ++pattern.connections;
  tag.kinds_seen |= bit;
  pattern.total += event.amount;
  builder.length.add(event.amount);
  if (event.gap) builder.gap.add(*event.gap);
  if (event.late) builder.late.add(*event.late);
  if (event.kind == StallKind::kCorked) builder.tick_test.add(event.until);
  pattern.after_full += event.after_full ? 1 : 0;
  pattern.first_data += event.first_data ? 1 : 0;
  pattern.timeouts += event.timeouts;
  pattern.probes += event.probes;
  pattern.fast += event.fast;
  pattern.segments += event.segments;
  pattern.bytes += event.bytes;
  pattern.in_flight = std::max(pattern.in_flight, event.in_flight);
  pattern.window_max = std::max(pattern.window_max, event.window_max);
  pattern.window_known = pattern.window_known && event.window_known;
  pattern.rtt_only_bounded += event.rtt_known ? 0 : 1;
  if (event.amount >= pattern.longest) {
    pattern.longest = event.amount;
    pattern.first_bytes = event.first_bytes;
    pattern.second_bytes = event.second_bytes;
    pattern.packets.clear();
    for (const auto number : event.packets) {
      if (number != 0) pattern.packets.push_back(number);
    }
  }
  prove(tag, event);
}

void Collector::counterexample(ConnectionTag& tag, StallKind kind, tcp::Side sender) {
  ++tag.service->pattern(kind, sender).pattern.counterexamples;
}

void Collector::spurious(ConnectionTag& tag, tcp::Side sender) {
  ++tag.service->pattern(StallKind::kRetransmission, sender).pattern.spurious;
}

void Collector::turn(const Turn& turn, std::uint32_t serial) {
  ++turns_seen_;
  latency_.record(turn.total);
  Turn* place = nullptr;
  if (turns_.size() < limits_.turns_max) {
    place = &turns_.emplace_back();
  } else if (const std::uint64_t drawn = rng_.below(turns_seen_); drawn < turns_.size()) {
    place = &turns_[drawn];
  }
  if (place == nullptr) return;
  *place = turn;
  place->connection = serial;
}

void Collector::connection(const ConnectionTag& tag, const ConnectionSummary& summary) {
  if (summary.one_sided) ++one_sided_;
  Duration stalled{};
  for (const Duration amount : tag.stalled) stalled += amount;
  const auto more = [](const KeptConnection& a, const KeptConnection& b) {
    return std::pair(a.stalled, a.summary.packets) > std::pair(b.stalled, b.summary.packets);
  };
  KeptConnection kept{tag.serial, stalled, summary};
  if (connections_.size() >= limits_.connections_kept) {
    if (!more(kept, connections_.front())) return;
    std::pop_heap(connections_.begin(), connections_.end(), more);
    connections_.pop_back();
  }
  connections_.push_back(std::move(kept));
  std::push_heap(connections_.begin(), connections_.end(), more);
}

void Collector::finish(PacketAnalysis& into) {
  into.retransmissions = retransmissions;
  into.duplicates = duplicates;
  into.reordered = reordered;
  into.one_sided = one_sided_;
  into.latency = latency_;
  into.turns_seen = turns_seen_;
  std::sort(connections_.begin(), connections_.end(),
            [](const KeptConnection& a, const KeptConnection& b) {
              if (a.stalled != b.stalled) return a.stalled > b.stalled;
              return a.serial < b.serial;
            });
  boost::unordered_flat_map<std::uint32_t, std::uint32_t> index;
  for (KeptConnection& kept : connections_) {
    index.emplace(kept.serial, static_cast<std::uint32_t>(into.connections.size()));
    into.connections.push_back(std::move(kept.summary));
  }
  const auto index_of_serial = [&](std::uint32_t serial) {
    const auto found = index.find(serial);
    return found == index.end() ? UINT32_MAX : found->second;
  };
  into.turns = std::move(turns_);
  for (Turn& turn : into.turns) turn.connection = index_of_serial(turn.connection);
  for (auto& kind : proofs_) {
    for (KeptProof& kept : kind) {
      kept.proof.connection = index_of_serial(kept.serial);
      into.proofs.push_back(std::move(kept.proof));
    }
  }
  for (auto& [key, service] : services_) {
    service->summary.vantage = service->vantage();
    const auto& least = service->round_trips.min_ack_rtt;
    if (least[0] < kForever && least[1] < kForever) {
      service->summary.rtt_min = least[0] + least[1];
    }
    into.services.push_back(std::move(service->summary));
    for (auto& both : service->patterns) {
      for (auto& builder : both) {
        if (!builder) continue;
        builder->pattern.length = builder->length.spread();
        builder->pattern.gap = builder->gap.spread();
        builder->pattern.late = builder->late.spread();
        builder->tick_test.result(builder->pattern);
        into.patterns.push_back(std::move(builder->pattern));
      }
    }
  }
  // The map's order is nobody's: sort, so that the same capture always reads the same.
  std::sort(into.services.begin(), into.services.end(),
            [](const auto& a, const auto& b) { return a.server < b.server; });
  std::sort(into.patterns.begin(), into.patterns.end(), [](const auto& a, const auto& b) {
    return std::tuple(b.total, a.kind, a.server) < std::tuple(a.total, b.kind, b.server);
  });
}

}  // namespace tailward::diag
