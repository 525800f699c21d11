// Numbers that give a cause away: waits that only certain timers make, seen as a second heap of
// latencies at that distance above the body of the distribution.
//
// How. The body is the shortest span that holds 80 % of the latencies. A heap is a window of the
// body's width (or of what timers and clocks blur, if that is wider) that holds at least twice as
// many latencies as the windows on either side, and significantly more than several of them (exact
// test of two Poisson rates: Przyborowski and Wilenski, "Homogeneity of results in testing samples
// from Poisson series", Biometrika 1940). The level is 1e-4 for one whole search, divided by the
// number of places that were looked at: like z = 5 at each. A smooth law, however it is bent, has
// no such windows except where it has a peak as narrow as its body.
//
// The waits: Linux acknowledges late after 40 ms at least (TCP_DELACK_MIN), retransmits after 200
// ms at least (TCP_RTO_MIN) and then after twice as long each time, a SYN after 1 s (RFC 6298) and,
// from Linux 6.5 on, four times every second (tcp_syn_linear_timeouts); glibc's resolver asks again
// after 5 s (resolv.conf(5)); a CPU quota is refilled every 100 ms (cpu.cfs_period_us).
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/time.h"
#include "plan/samples.h"

namespace tailward::plan {

struct Signature {
  std::string name;  // "delayed-ack", "tcp-retransmission", …
  Duration at{};     // the wait as it is known: 40 ms; of equal gaps, the gap
  Duration seen{};   // as it was measured, above the body's middle
  Duration from{};   // where the heap lies
  Duration to{};
  std::uint64_t count = 0;  // in the heap, above what lies around it
  double share = 0;         // of all latencies
  std::string meaning;      // what it usually is
  std::string prove;        // how to know
};

struct SignatureSearch {
  std::vector<Signature> found;
  // Waits shorter than this hide in the body's own spread, and were not looked for; 0: there is no
  // such body.
  Duration blind_below{};
  Duration body_from{};
  Duration body_to{};
};

SignatureSearch find_signatures(const Samples& samples);

}  // namespace tailward::plan
