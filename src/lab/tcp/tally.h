// Counts what a TCP connection did on the wire, from its captured segments. Every TCP experiment
// shows these counts beside its times.
//
// Pure. Thread safety: one thread.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/time.h"
#include "tcp/segment.h"

namespace tailward::lab {

// A pure ACK of new data after a silence of at least this was delayed. The kernel's shortest delay
// is 40 ms (TCP_DELACK_MIN in include/net/tcp.h).
inline constexpr Duration kDelayedAckFrom = std::chrono::milliseconds(30);

// Data or a window probe after a silence of at least this was sent by a timer of the kernel: its
// shortest is 200 ms (TCP_RTO_MIN).
inline constexpr Duration kTimerWaitFrom = std::chrono::milliseconds(150);

// From this age on, what is in flight and the window count: by then the windows have settled.
inline constexpr Duration kSteadyFrom = std::chrono::milliseconds(200);

// Where the counts of an arm come from.
enum class CountSource { kNone, kPackets, kTcpInfo };
std::string_view to_string(CountSource source);  // "none", "packets", "tcp-info"

struct TcpCounts {
  CountSource source = CountSource::kNone;
  std::uint64_t messages = 0;  // what the application wrote, in that run
  std::uint64_t bytes = 0;
  std::uint64_t write_calls = 0;  // system calls of the client
  std::uint64_t read_calls = 0;   // of the server
  std::uint64_t segments = 0;     // with data, from the client
  // The following need packets and are 0 otherwise, except `retransmissions`.
  std::uint64_t segments_back = 0;  // with data, from the server
  std::uint64_t acks_back = 0;      // without, from the server
  std::uint64_t retransmissions = 0;
  std::uint64_t zero_windows = 0;  // times that the server's window closed
  // Silences after which the client sent data or a window probe. While the application writes, only
  // a timer of the kernel ends such a silence, after 200 ms or more.
  std::uint64_t timer_waits = 0;
  std::uint64_t delayed_acks = 0;   // of either end
  std::uint32_t in_flight_max = 0;  // unacknowledged bytes of the client
  std::uint32_t window_max = 0;     // what the server advertised, bytes
  std::uint64_t lost = 0;           // by the capture

  [[nodiscard]] double segments_per_message() const;
};

// For one connection, captured at the client.
class TcpTally {
 public:
  // `rtt` of the path: an ACK of the server that was not delayed comes this long after the data.
  TcpTally(std::uint16_t server_port, Duration rtt) : server_port_(server_port), rtt_(rtt) {}

  void add(const tcp::Segment& segment);
  // The caller fills in messages, bytes, calls and lost.
  [[nodiscard]] const TcpCounts& counts() const { return counts_; }

 private:
  struct Side {
    bool seen = false;
    std::uint32_t next = 0;   // sequence number after the last byte sent
    std::uint32_t acked = 0;  // by the other side
    int window_shift = 0;
    bool window_closed = false;
  };

  void note_data(Side& from, bool from_client, const tcp::Segment& segment);
  void note_bare(bool from_client, const tcp::Segment& segment);
  void note_window(Side& server, const tcp::Segment& segment);

  std::uint16_t server_port_;
  Duration rtt_;
  bool started_ = false;
  bool settled_ = false;
  Duration first_at_{};
  Duration last_at_{};         // of the segment before
  std::array<Side, 2> sides_;  // the client's, the server's
  TcpCounts counts_{.source = CountSource::kPackets};
};

}  // namespace tailward::lab
