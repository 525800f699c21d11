#include "net/link_queue.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"

namespace tailward::net {
namespace {

constexpr std::size_t kIpHeaderMin = 20;
constexpr std::size_t kTcpFlagsAt = 13;
constexpr unsigned kProtocolTcp = 6;
constexpr unsigned kFlagSyn = 0x02;

unsigned byte_at(std::span<const char> packet, std::size_t at) {
  return static_cast<unsigned char>(packet[at]);
}

bool is_ipv4(std::span<const char> packet) {
  return packet.size() >= kIpHeaderMin && byte_at(packet, 0) >> 4 == 4;
}

}  // namespace

bool has_syn(std::span<const char> packet) {
  if (!is_ipv4(packet) || byte_at(packet, 9) != kProtocolTcp) return false;
  const unsigned fragment_offset = (byte_at(packet, 6) & 0x1F) << 8 | byte_at(packet, 7);
  const std::size_t flags_at = (byte_at(packet, 0) & 0x0F) * std::size_t{4} + kTcpFlagsAt;
  return fragment_offset == 0 && flags_at < packet.size() &&
         (byte_at(packet, flags_at) & kFlagSyn) != 0;
}

std::size_t LinkQueue::unsent(TimePoint now) const {
  const auto first = std::partition_point(packets_.begin(), packets_.end(),
                                          [now](const Packet& one) { return one.sent <= now; });
  return static_cast<std::size_t>(packets_.end() - first);
}

std::vector<char> LinkQueue::copy(std::span<const char> packet) {
  std::vector<char> bytes;
  if (!spare_.empty()) {
    bytes = std::move(spare_.back());
    spare_.pop_back();
  }
  bytes.assign(packet.begin(), packet.end());
  return bytes;
}

void LinkQueue::offer(std::span<const char> packet, TimePoint now) {
  const std::span<const char> ip = packet.subspan(std::min(prefix_, packet.size()));
  if (!is_ipv4(ip)) return;
  const bool syn = has_syn(ip);
  if (rng_.chance(syn ? shape_.syn_loss : shape_.loss)) {
    ++(syn ? counters_.syns_lost : counters_.lost);
    return;
  }
  const bool limited = shape_.bits_per_s > 0;
  // One is on its way out, the others wait for it.
  if (packets_.size() >= kPacketsMax || (limited && unsent(now) > shape_.queue_packets)) {
    ++counters_.queue_drops;
    return;
  }
  Packet entering{now, {}, false, copy(packet)};
  if (limited) {
    const double seconds = static_cast<double>(ip.size()) * 8 / shape_.bits_per_s;
    entering.sent = std::max(now, line_free_) + Duration{std::llround(seconds * 1e9)};
    line_free_ = entering.sent;
  }
  entering.due = last_due_ = std::max(entering.sent + shape_.delay, last_due_);
  if (!packets_.empty()) entering.sent = std::max(entering.sent, packets_.back().sent);

  if (!packets_.empty() && packets_.back().overtaken) {
    Packet& waiting = packets_.back();
    waiting.overtaken = false;
    waiting.due = entering.due;
    waiting.sent = entering.sent;
    std::swap(waiting, entering);
    ++counters_.reordered;
  } else if (rng_.chance(shape_.reorder)) {
    entering.overtaken = true;
    entering.due += kOvertakenWithin;
  }
  packets_.push_back(std::move(entering));
}

TimePoint LinkQueue::next_due() const { return packets_.empty() ? kNever : packets_.front().due; }

std::span<const char> LinkQueue::due(TimePoint now) const {
  if (next_due() > now) return {};
  return packets_.front().bytes;
}

void LinkQueue::pop() {
  TAILWARD_CHECK(!packets_.empty());
  Packet& gone = packets_.front();
  ++counters_.forwarded;
  counters_.bytes += gone.bytes.size() - prefix_;
  // The wait for a successor that never came must not let a later packet pass.
  last_due_ = std::max(last_due_, gone.due);
  spare_.push_back(std::move(gone.bytes));
  packets_.pop_front();
}

}  // namespace tailward::net
