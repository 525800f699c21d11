#include "diag/packet_analyser.h"

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstring>
#include <deque>
#include <list>

#include "base/rng.h"
#include "diag/collector.h"
#include "diag/connection/connection.h"
#include "diag/thresholds.h"

namespace tailward::diag {
namespace {

// Ended connections stay for what still comes: the last ACK, a FIN sent again.
constexpr std::size_t kClosedKept = 1024;
constexpr std::size_t kAddressesMax = 65'536;

struct Key {
  tcp::SocketAddress low, high;
  friend bool operator==(const Key&, const Key&) = default;
};

struct AddressHash {
  std::size_t operator()(const tcp::SocketAddress& address) const {
    std::uint64_t words[2];
    std::memcpy(words, address.address.bytes.data(), sizeof words);
    return mix64(words[0] ^ mix64(words[1] + address.port));
  }
};

struct KeyHash {
  std::size_t operator()(const Key& key) const {
    std::uint64_t words[4];
    std::memcpy(words, key.low.address.bytes.data(), 16);
    std::memcpy(words + 2, key.high.address.bytes.data(), 16);
    const std::uint64_t ports = (std::uint64_t{key.low.port} << 16) | key.high.port;
    return mix64(words[0] ^ mix64(words[1] + ports) ^ (words[2] << 1) ^ (words[3] * 31));
  }
};

}  // namespace

class PacketAnalyser::Impl {
 public:
  Impl(std::vector<std::uint16_t> server_ports, PacketLimits limits)
      : server_ports_(std::move(server_ports)), limits_(limits), collector_(limits) {
    limits_.connections_max = std::max<std::size_t>(1, limits_.connections_max);
  }

  void add(const tcp::Segment& s);
  void know_scales(const Key& low_high, std::uint8_t of_low, std::uint8_t of_high) {
    scales_[low_high] = {of_low, of_high};
  }
  PacketAnalysis finish();
  void captured_at_server() { collector_.at_server = true; }

 private:
  struct Entry {
    Key key;
    Connection connection;
    bool closed = false;  // stands in closed_, not in open_
    bool low_is_client = false;
    bool spoke = false;  // since it was last looked at for being idle
  };
  using Entries = std::list<Entry>;

  [[nodiscard]] Duration monotonic(Duration at);
  [[nodiscard]] bool from_client(const tcp::Segment& s) const;
  void note_addresses(const tcp::Segment& s, bool client);
  Entries::iterator find(const tcp::Segment& s, const Key& key, bool from_low);
  Entries::iterator open(const tcp::Segment& s, const Key& key, bool from_low);
  void close(Entries::iterator entry);
  void let_go(Entries& entries, Entries::iterator entry);
  void let_go_idle();

  std::vector<std::uint16_t> server_ports_;
  PacketLimits limits_;
  Collector collector_;
  PacketAnalysis analysis_;
  Duration shift_{};  // added to times since the clock stepped back
  std::uint32_t serial_ = 0;
  Entries open_, closed_;  // to be looked at next for being idle; the longest closed first
  boost::unordered_flat_map<Key, Entries::iterator, KeyHash> by_key_;
  boost::unordered_flat_map<tcp::SocketAddress, std::uint32_t, AddressHash> servers_;
  boost::unordered_flat_map<Key, std::pair<std::uint8_t, std::uint8_t>, KeyHash> scales_;
};

// Time that never runs backwards: a clock that was set back goes on from where it was.
Duration PacketAnalyser::Impl::monotonic(Duration at) {
  at += shift_;
  if (analysis_.packets == 0) {
    analysis_.first = analysis_.last = at;
    return at;
  }
  if (at < analysis_.last) {
    if (analysis_.last - at > thresholds.turn.clock_step) {
      ++analysis_.clock_steps;
      shift_ += analysis_.last - at;
    }
    at = analysis_.last;
  }
  analysis_.last = at;
  return at;
}

bool PacketAnalyser::Impl::from_client(const tcp::Segment& s) const {
  const auto serves = [&](std::uint16_t port) {
    return std::find(server_ports_.begin(), server_ports_.end(), port) != server_ports_.end();
  };
  if (serves(s.to.port) != serves(s.from.port)) return serves(s.to.port);
  if (s.syn) return !s.ack_flag;
  // A server has one address for many connections.
  const auto seen = [&](const tcp::SocketAddress& address) {
    const auto found = servers_.find(address);
    return found == servers_.end() ? 0u : found->second;
  };
  const std::uint32_t from = seen(s.from), to = seen(s.to);
  return from != to ? to > from : s.from.port >= s.to.port;
}

// How many connections each address had. Bounded: those of servers come again and again.
void PacketAnalyser::Impl::note_addresses(const tcp::Segment& s, bool client) {
  const auto note = [&](const tcp::SocketAddress& address, std::uint32_t times) {
    const auto known = servers_.find(address);
    if (known != servers_.end()) {
      known->second += times;
    } else if (servers_.size() < kAddressesMax) {
      servers_.emplace(address, times);
    }
  };
  if (s.syn) {  // who answers it is a server for certain
    note(client ? s.to : s.from, 3);
    return;
  }
  note(s.from, 1);
  note(s.to, 1);
}

void PacketAnalyser::Impl::let_go(Entries& entries, Entries::iterator entry) {
  entry->connection.finish();
  const auto found = by_key_.find(entry->key);
  if (found != by_key_.end() && found->second == entry) by_key_.erase(found);
  entries.erase(entry);
}

// One that has said nothing since it was last looked at. Moving each that speaks to the list's end
// would find the longest idle, and for every packet read its neighbours from far-away memory.
void PacketAnalyser::Impl::let_go_idle() {
  while (open_.front().spoke) {
    open_.front().spoke = false;
    open_.splice(open_.end(), open_, open_.begin());
  }
  let_go(open_, open_.begin());
}

auto PacketAnalyser::Impl::open(const tcp::Segment& s, const Key& key, bool from_low)
    -> Entries::iterator {
  if (open_.size() >= limits_.connections_max) {
    ++analysis_.connections_let_go;
    let_go_idle();
  }
  const bool client = from_client(s);
  note_addresses(s, client);
  open_.push_back(
      {key, Connection(serial_++, client ? s.from : s.to, client ? s.to : s.from, collector_),
       false, from_low == client, false});
  const auto entry = std::prev(open_.end());
  ++analysis_.connections_seen;
  if (const auto known = scales_.find(key); known != scales_.end() && !s.syn) {
    const auto [low, high] = known->second;
    entry->connection.know_scales(entry->low_is_client ? low : high,
                                  entry->low_is_client ? high : low);
  }
  by_key_[key] = entry;
  return entry;
}

auto PacketAnalyser::Impl::find(const tcp::Segment& s, const Key& key, bool from_low)
    -> Entries::iterator {
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return open(s, key, from_low);
  const auto entry = found->second;
  const tcp::Side side = entry->low_is_client == from_low ? tcp::kClient : tcp::kServer;
  if (!entry->connection.is_reuse(side, s)) {
    entry->spoke = true;
    return entry;
  }
  let_go(entry->closed ? closed_ : open_, entry);
  return open(s, key, from_low);
}

void PacketAnalyser::Impl::close(Entries::iterator entry) {
  entry->closed = true;
  closed_.splice(closed_.end(), open_, entry);
  if (closed_.size() > kClosedKept) let_go(closed_, closed_.begin());
}

void PacketAnalyser::Impl::add(const tcp::Segment& s) {
  const Duration at = monotonic(s.at);
  ++analysis_.packets;
  if (s.payload > 0) ++analysis_.data_segments;
  if (s.payload > thresholds.turn.giant_segment) ++analysis_.giant_segments;
  if (s.options_cut) ++analysis_.options_cut;
  const bool from_low = s.from < s.to;
  const Key key = from_low ? Key{s.from, s.to} : Key{s.to, s.from};
  const auto entry = find(s, key, from_low);
  const tcp::Side side = entry->low_is_client == from_low ? tcp::kClient : tcp::kServer;
  entry->connection.add(side, s, at);
  if (!entry->closed && entry->connection.closed()) close(entry);
}

PacketAnalysis PacketAnalyser::Impl::finish() {
  while (!closed_.empty()) let_go(closed_, closed_.begin());
  while (!open_.empty()) let_go(open_, open_.begin());
  collector_.finish(analysis_);
  return std::move(analysis_);
}

PacketAnalyser::PacketAnalyser(std::vector<std::uint16_t> server_ports, PacketLimits limits)
    : impl_(std::make_unique<Impl>(std::move(server_ports), limits)) {}
PacketAnalyser::~PacketAnalyser() = default;
void PacketAnalyser::add(const tcp::Segment& segment) { impl_->add(segment); }
void PacketAnalyser::captured_at_server() { impl_->captured_at_server(); }
void PacketAnalyser::know_scales(const tcp::SocketAddress& a, std::uint8_t of_a,
                                 const tcp::SocketAddress& b, std::uint8_t of_b) {
  if (a < b) {
    impl_->know_scales({a, b}, of_a, of_b);
  } else {
    impl_->know_scales({b, a}, of_b, of_a);
  }
}
PacketAnalysis PacketAnalyser::finish() { return impl_->finish(); }

}  // namespace tailward::diag
