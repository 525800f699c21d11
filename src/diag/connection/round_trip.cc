#include "diag/connection/round_trip.h"

#include <algorithm>

namespace tailward::diag {

RoundTripEstimator::RoundTripEstimator(ServiceRoundTrips& service, Place place)
    : service_(&service), place_(place) {}

void RoundTripEstimator::sample(tcp::Side side, Duration took) {
  if (took < Duration{0}) return;
  Way& way = ways_[side];
  way.min_ack_rtt = std::min(way.min_ack_rtt, took);
  way.samples.add(took);
  service_->min_ack_rtt[side] = std::min(service_->min_ack_rtt[side], took);
}

void RoundTripEstimator::bound(tcp::Side side, Duration took) {
  if (took < Duration{0}) return;
  ways_[side].bound = std::min(ways_[side].bound, took);
  // Clients are in different places; the server is in one.
  if (side == tcp::kServer) service_->server_bound = std::min(service_->server_bound, took);
}

void RoundTripEstimator::follow_time_stamps(tcp::Side side, const tcp::Segment& s, Duration now) {
  if (!s.ts_value) return;
  Way& mine = ways_[side];
  if (mine.stamp_at == Duration{0} && *s.ts_value != mine.last_stamp) {
    mine.stamp = *s.ts_value;
    mine.stamp_at = now;
  }
  mine.last_stamp = *s.ts_value;
  Way& peer = ways_[tcp::other(side)];
  if (peer.stamp_at == Duration{0} || !s.ts_echo || s.payload == 0) return;
  if (tcp::is_after(peer.stamp, *s.ts_echo)) return;  // an older one: still on its way
  if (*s.ts_echo == peer.stamp) bound(side, now - peer.stamp_at);
  peer.stamp_at = Duration{0};
}

Duration RoundTripEstimator::to(tcp::Side side) const {
  if (side == tcp::kServer && place_.at_server) return Duration{0};
  const Way& way = ways_[side];
  if (way.min_ack_rtt == kForever) return Duration{0};
  // The first pure ACK may have been a delayed one: what others measured bounds it.
  const Duration shared = side == tcp::kServer ? service_->server_bound : kForever;
  return std::min({way.min_ack_rtt, way.bound, shared});
}

bool RoundTripEstimator::known(tcp::Side side) const {
  return (side == tcp::kServer && place_.at_server) || measured(side) || place_.loopback;
}

bool RoundTripEstimator::measured(tcp::Side side) const {
  return ways_[side].min_ack_rtt != kForever;
}

Duration RoundTripEstimator::upper_bound(tcp::Side side) const {
  const Duration bound = ways_[side].bound;
  return known(side) || bound == kForever ? to(side) : bound;
}

Duration RoundTripEstimator::ack_quantile(tcp::Side side, double q) const {
  return ways_[side].samples.quantile(q);
}

Duration RoundTripEstimator::smallest_sample(tcp::Side side) const {
  return ways_[side].min_ack_rtt;
}

}  // namespace tailward::diag
