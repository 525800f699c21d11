// The packet analyser: segments in, in the order of capture; connections, requests, stalls and the
// packets that prove them out. Streaming: memory follows the number of connections that are open at
// the same time, not the length of the capture.
//
// Requests are found without knowing the protocol, by turn-taking: a request begins with its first
// byte (or with the SYN, for the first of a connection) and ends with the last byte of the response
// acknowledged. The parts of a request sum to its wall time; stalls are parts.
//
// Thread safety: one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "diag/analysis.h"
#include "tcp/segment.h"

namespace tailward::diag {

struct PacketLimits {
  std::size_t connections_max = 100'000;  // open at once (2 KB each); then an idle one is let go
  std::size_t turns_max = 500'000;        // kept for contrast and prediction; then a sample of them
  std::size_t proofs_max = 64;            // connections whose proving packets are kept
  std::size_t recent_max = 48;            // segments of a connection that are remembered
  // Summaries, of those with the most stalled time; the turns of others have no connection.
  std::size_t connections_kept = 1000;
};

class PacketAnalyser {
 public:
  // `server_ports`: those sides are servers, whatever the packets suggest; may be empty.
  explicit PacketAnalyser(std::vector<std::uint16_t> server_ports = {}, PacketLimits limits = {});
  ~PacketAnalyser();
  PacketAnalyser(const PacketAnalyser&) = delete;
  PacketAnalyser& operator=(const PacketAnalyser&) = delete;

  void add(const tcp::Segment& segment);
  // The capture is made on the host of the servers: their answers took no way. Before the first
  // segment.
  void captured_at_server();
  // Of a connection that is older than the capture, from elsewhere: the shifts (RFC 7323) of the
  // windows that `a` and `b` offer. A capture alone does not tell them without the SYNs.
  void know_scales(const tcp::SocketAddress& a, std::uint8_t of_a, const tcp::SocketAddress& b,
                   std::uint8_t of_b);
  // What there is until now; the connections still open are taken as they stand. Call once.
  [[nodiscard]] PacketAnalysis finish();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tailward::diag
