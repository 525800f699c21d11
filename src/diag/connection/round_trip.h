// How long it takes from where the capture was made to either end and back.
//
// Two measures, as one capture point sees only one side of each exchange:
//   - the smallest time in which a kernel alone acknowledged: Karn's rule leaves out data that were
//     sent twice (RFC 6298, section 3), an ACK that data brings had to wait for the program;
//   - a bound from above: the fastest that the end ever sent anything new upon something else, and
//     the echo of time stamps, which is how a receiver of bulk data measures (RFC 7323, section 4;
//     tcp_rcv_rtt_measure_ts in net/ipv4/tcp_input.c).
//
// Thread safety: one thread.
#pragma once

#include <array>
#include <cstdint>

#include "base/time.h"
#include "diag/connection/turns.h"
#include "diag/sample.h"
#include "tcp/segment.h"
#include "tcp/sequence.h"

namespace tailward::diag {

// What the connections of one service share: all clients have the same path to the server.
struct ServiceRoundTrips {
  // The least that the kernel at either end took to acknowledge.
  std::array<Duration, 2> min_ack_rtt{kForever, kForever};
  Duration server_bound = kForever;  // no round trip to the server is longer
};

class RoundTripEstimator {
 public:
  struct Place {
    bool at_server = false;  // captured on the server's own host: no way to it
    bool loopback = false;
  };
  // `service` outlives this.
  RoundTripEstimator(ServiceRoundTrips& service, Place place);

  // The kernel of `side` acknowledged after `took`; negative times are ignored.
  void sample(tcp::Side side, Duration took);
  // A round trip to `side` is no longer than this.
  void bound(tcp::Side side, Duration took);
  // Every segment of `side`, for the echoes of its peer's time stamps.
  void follow_time_stamps(tcp::Side side, const tcp::Segment& segment, Duration now);

  // There and back; 0 where unknown. Never more than was measured.
  [[nodiscard]] Duration to(tcp::Side side) const;
  // The same where it is known, otherwise the best bound from above; 0 without either.
  [[nodiscard]] Duration upper_bound(tcp::Side side) const;
  [[nodiscard]] bool known(tcp::Side side) const;
  // At least one sample of this connection itself.
  [[nodiscard]] bool measured(tcp::Side side) const;
  [[nodiscard]] RoundTrips both() const { return {to(tcp::kClient), to(tcp::kServer)}; }
  // Quantile of the samples: delayed ACKs are among them. 0 without any.
  [[nodiscard]] Duration ack_quantile(tcp::Side side, double q) const;
  // Of this connection's samples alone; kForever without any.
  [[nodiscard]] Duration smallest_sample(tcp::Side side) const;

 private:
  struct Way {
    Duration min_ack_rtt = kForever;
    Duration bound = kForever;
    Sample<16> samples;
    // A time stamp of this side that waits for its echo. One at a time, and of those that are alike
    // the first.
    std::uint32_t stamp = 0, last_stamp = 0;
    Duration stamp_at{};  // zero: none waits
  };
  ServiceRoundTrips* service_;
  Place place_;
  std::array<Way, 2> ways_;
};

}  // namespace tailward::diag
