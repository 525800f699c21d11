// Connection, segments that were held back, or were too many: Nagle, cork, small writes, windows.

#include <algorithm>

#include "diag/connection.h"

namespace tailward::diag {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr Duration kPromptRelease = milliseconds(1);
constexpr Duration kNearMiss = milliseconds(40);
// TCP_CORK's limit, less a tick, and with the timer's granularity and some way to go.
constexpr Duration kCorkFrom = milliseconds(197);
constexpr Duration kCorkUntil = milliseconds(218);
// An answer's patience begins when it is written, and its thinking time is part of what is seen.
constexpr Duration kCorkThink = milliseconds(60);
constexpr Duration kCorkMissFrom = milliseconds(20);
constexpr Duration kCorkMissUntil = milliseconds(1000);
constexpr Duration kRunGap = milliseconds(3);
constexpr Duration kRunPace = microseconds(150);  // from one write to the next, on average
constexpr std::uint32_t kRunMin = 50;
constexpr std::uint32_t kSegmentOfLoopback = 8192;
constexpr Duration kWayOfKernels = microseconds(300);
constexpr Duration kWayOfPaths = microseconds(500);
constexpr std::uint8_t kBulkStreak = 4;
constexpr std::uint32_t kWindowSaysMin = 1024;
constexpr std::uint32_t kWindowsPassed = 16;

// Whether a level of bytes in flight may be that of a window whose scale is not known.
bool may_be_window(std::uint32_t in_flight, std::uint32_t raw, std::uint32_t mss) {
  for (int scale = 0; scale <= 14; ++scale) {
    const std::uint64_t window = std::uint64_t{raw} << scale;
    if (in_flight <= window && window < in_flight + mss * 3ull / 2) return true;
  }
  return false;
}

}  // namespace

// RFC 896 against RFC 1122: a small segment waits until everything is acknowledged, and the peer
// waits before it acknowledges. Seen as: an ACK that came late, and the segment right behind it.
void Connection::check_nagle(tcp::Side side, const tcp::Segment& s) {
  const Release& release = endpoints_[side].release;
  if (!release.valid || is_full(side, s.payload)) return;
  const Duration since = now_ - release.at;
  bound_rtt(side, since);
  const Duration to_sender = rtt_upper_bound(side);
  // It left before that ACK can have reached its sender.
  if (to_sender > kPromptRelease && since < to_sender * 7 / 10) return;
  const Duration gap =
      std::max(Duration{0}, since - (to_sender > kWayOfKernels ? to_sender : Duration{0}));
  const Endpoint& endpoint = endpoints_[side];
  if (gap > kPromptRelease + to_sender / 4) {
    if (gap <= kNearMiss) collector_->counterexample(tag_, StallKind::kHeldByNagle, side);
    return;
  }
  emit({.kind = StallKind::kHeldByNagle,
        .sender = side,
        .from = endpoint.data_at,
        .until = now_,
        .amount = now_ - endpoint.data_at,
        .packets = {endpoint.data_number, release.number, s.number},
        .gap = gap,
        .late = release.late,
        .after_full = endpoint.data_full,
        .first_bytes = endpoint.data_bytes,
        .second_bytes = s.payload,
        .rtt_known = rtt_known(side)});
}

// A corked segment leaves when the kernel's patience is over: 200 ms after there was nothing left
// to wait for but the rest of it.
void Connection::check_cork(tcp::Side side, const tcp::Segment& s) {
  const Endpoint& endpoint = endpoints_[side];
  const Endpoint& peer = endpoints_[tcp::other(side)];
  if (endpoint.next != endpoint.acked || is_full(side, s.payload) || peer.zero) return;
  const bool continues = endpoint.data_at > peer.data_at;
  if (side == tcp::kClient && !continues) return;  // the user's own time between two requests
  const Duration enabled = std::max({endpoint.data_at, endpoint.all_acked_at, peer.data_at});
  if (enabled == Duration{0}) return;
  const Duration delay =
      now_ - enabled - (rtt_to(side) > kWayOfKernels ? rtt_to(side) : Duration{0});
  if (delay < kCorkMissFrom || delay > kCorkMissUntil) return;
  // The timer is the RTO, which follows the round-trip times, delayed ACKs included.
  const Duration slack = rtt_to(side) * 3 / 2 + peer.answers.quantile(0.9) * 3 / 2;
  const Duration until = kCorkUntil + slack + (continues ? Duration{0} : kCorkThink);
  if (delay < kCorkFrom || delay > until) {
    if (!continues) collector_->counterexample(tag_, StallKind::kCorked, side);
    return;
  }
  emit({.kind = StallKind::kCorked,
        .sender = side,
        .from = enabled,
        .until = now_,
        .amount = now_ - enabled,
        .packets = {continues ? endpoint.data_number : peer.data_number, s.number},
        .gap = delay,
        .after_full = continues && endpoint.data_full,
        .second_bytes = s.payload});
}

void Connection::track_run(tcp::Side side, const tcp::Segment& s) {
  Endpoint& endpoint = endpoints_[side];
  if (endpoint.run.count > 0) {
    const Duration gap = now_ - endpoint.run.last;
    const bool acked = endpoint.advanced_at >= endpoint.run.last &&
                       now_ - endpoint.advanced_at <= rtt_to(side) * 5 / 4 + kPromptRelease;
    if (acked) {
      endpoint.run.waited += gap;
    } else if (gap > kRunGap) {
      finish_run(side);
    }
  }
  Run& run = endpoint.run;
  const std::uint32_t size = std::min(mss(side), kSegmentOfLoopback);
  if (run.count == 0) run = {.began = now_, .first_number = s.number};
  run.last = now_;
  run.last_number = s.number;
  run.bytes += s.payload;
  run.count += (s.payload + size - 1) / size;
  if (s.payload <= size / 4) ++run.small;
}

void Connection::finish_run(tcp::Side side) {
  Run& run = endpoints_[side].run;
  if (run.count >= kRunMin && run.small * 2 >= run.count) {
    const Duration took = run.last - run.began;
    const Duration pace = (took - run.waited) / (run.count - 1);
    const std::uint32_t size = std::min(mss(side), kSegmentOfLoopback);
    const auto needed = static_cast<std::uint32_t>((run.bytes + size - 1) / size);
    if (pace <= kRunPace && needed < run.count) {
      emit({.kind = StallKind::kSmallWrites,
            .sender = side,
            .from = run.began,
            .until = run.last,
            .amount = took / run.count * (run.count - needed),
            .packets = {run.first_number, run.last_number},
            .gap = pace,
            .segments = run.count,
            .bytes = run.bytes});
    }
  }
  run = {};
}

// A window whose scale was not seen is taken as it stands until more is in flight than it says.
// True when this segment has shown that there is one.
bool Connection::compare_with_window(tcp::Side side, const tcp::Segment& s) {
  Endpoint& endpoint = endpoints_[side];
  Endpoint& peer = endpoints_[tcp::other(side)];
  if (peer.scale_known || peer.scaled || peer.window == 0 || !peer.window_seen) return false;
  const auto here = static_cast<std::int64_t>(tcp::distance(s.seq + s.payload, endpoint.acked));
  const std::int64_t there = endpoint.flight->in_flight();
  if (std::max(here, there) <= static_cast<std::int64_t>(peer.window_max)) return false;
  peer.scaled = true;
  endpoint.flight->interrupt();
  return true;
}

void Connection::track_flight(tcp::Side side, const tcp::Segment& s) {
  Endpoint& endpoint = endpoints_[side];
  const Endpoint& peer = endpoints_[tcp::other(side)];
  if (endpoint.streak < kBulkStreak) {
    ++endpoint.streak;
    if (!endpoint.flight && endpoint.streak < kBulkStreak) return;
  }
  if (!endpoint.flight) endpoint.flight = std::make_unique<FlightTracker>();
  const Duration rtt = rtt_upper_bound(tcp::kClient) + rtt_upper_bound(tcp::kServer);
  const auto limit = endpoint.flight->sent(now_, s.seq + s.payload, mss(side),
                                           rtt_upper_bound(side), rtt, peer.window_max);
  if (compare_with_window(side, s)) return;
  if (!limit) return;
  if (peer.scaled && (peer.shrunk || may_be_window(limit->in_flight, peer.raw_window, mss(side)))) {
    return;
  }
  const bool of_window = limit->kind != StallKind::kSendBuffer;
  // Much has passed and never more than the window says at a time: then its scale is none.
  const bool unscaled = peer.window_max >= kWindowSaysMin &&
                        endpoint.bytes >= std::uint64_t{kWindowsPassed} * peer.window_max;
  if (of_window && !peer.scale_known && (peer.scaled || !unscaled)) return;
  // Between programs of one host the level is that of the loopback's queue.
  if (limit->kind == StallKind::kSendBuffer && rtt < kWayOfPaths) return;
  emit({.kind = limit->kind,
        .sender = side,
        .from = limit->from,
        .until = limit->until,
        .amount = limit->amount,
        .packets = {endpoint.data_number, s.number},
        .in_flight = limit->in_flight,
        .window_max = peer.window_max,
        .window_known = peer.scale_known});
}

}  // namespace tailward::diag
