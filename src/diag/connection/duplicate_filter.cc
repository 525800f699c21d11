#include "diag/connection/duplicate_filter.h"

#include "base/rng.h"
#include "diag/thresholds.h"

namespace tailward::diag {
namespace {

std::uint32_t fingerprint_of(const tcp::Segment& s) {
  const std::uint64_t a = (std::uint64_t{s.seq} << 32) | s.ack;
  const std::uint64_t b = (std::uint64_t{s.payload} << 32) | (std::uint64_t{s.window} << 16) |
                          static_cast<std::uint64_t>(s.syn + 2 * s.fin + 4 * s.rst + 8 * s.psh);
  const std::uint64_t c = (std::uint64_t{s.ts_value.value_or(0)} << 32) |
                          ((s.sack_count > 0 ? s.sack[0].end : 0u) ^ s.ip_id);
  return static_cast<std::uint32_t>(mix64(a ^ mix64(b ^ (c * 0x9e3779b97f4a7c15u))));
}

}  // namespace

bool DuplicateFilter::is_copy(const tcp::Segment& s, Duration now) {
  const std::uint32_t hash = fingerprint_of(s);
  const auto at_us = static_cast<std::uint32_t>(now.count() / 1000);
  for (const Fingerprint& seen : recent_) {
    if (seen.hash != hash) continue;
    // Modulo 2^32 µs, 71 minutes: an entry that old has long been overwritten.
    const Duration since = std::chrono::microseconds(at_us - seen.at_us);
    if (since > thresholds.copy.within) continue;
    // The kernel gives every packet that it sends again an identification of its own.
    if (s.ip_id != 0 || seen.interface != s.interface) return true;
    // IPv6 has none. Pure ACKs may be alike by right: a duplicate ACK is one.
    if (s.payload > 0 && since <= thresholds.copy.without_id_within) return true;
  }
  recent_[oldest_] = {hash, at_us, s.interface};
  oldest_ = static_cast<std::uint8_t>((oldest_ + 1u) % recent_.size());
  return false;
}

}  // namespace tailward::diag
