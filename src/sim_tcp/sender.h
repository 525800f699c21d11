// The sending half of a virtual TCP endpoint: what may leave, what was lost, and when a timer asks.
// Follows Linux: Nagle in Minshall's form and TCP_CORK (tcp_nagle_test), slow start and
// multiplicative decrease, loss by SACK (RFC 6675) with RACK's wait (RFC 8985), tail-loss probes,
// RTO (RFC 6298 with Linux's 200 ms) and window probes.
//
// Offsets count the bytes of the stream from the SYN, which is byte 0, and never wrap.
//
// Thread safety: one thread. Pure: the time comes with each call.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>

#include "base/time.h"
#include "sim_tcp/receiver.h"
#include "sim_tcp/ticks.h"

namespace tailward::sim_tcp {

// As a program sets them on its socket.
struct EndpointOptions {
  bool nodelay = true;
  std::uint64_t send_buffer = 4 << 20;     // payload bytes: sent and unacknowledged, or waiting
  std::uint64_t receive_buffer = 3 << 20;  // payload bytes
};

class Sender {
 public:
  static constexpr std::uint32_t kSegmentMax = 1448;  // MTU 1500, time stamps in each segment

  Sender(const EndpointOptions& options, Ticks ticks) : options_(options), ticks_(ticks) {}

  // Takes what there is room for.
  std::uint64_t write(std::uint64_t bytes);
  // Whether a blocked writer is woken: a third is free (sk_stream_is_writeable).
  [[nodiscard]] bool writable() const;
  void cork(bool on) { corked_ = on; }
  void close() { closing_ = true; }  // a FIN follows the last byte

  struct Outgoing {
    std::uint64_t begin = 0;
    std::uint32_t payload = 0;
    bool fin = false;
    bool push = false;
  };
  // The next segment that may leave now; it counts as sent.
  std::optional<Outgoing> next_segment(TimePoint now);

  struct Ack {
    std::uint64_t until = 0;   // offset
    std::uint64_t window = 0;  // bytes from there
    std::span<const SequenceRange> sacks = {};
  };
  void on_ack(const Ack& ack, TimePoint now);
  // The handshake's round trip, where it was not repeated.
  void sample(Duration rtt);

  // What a timer that fired wants to be sent besides next_segment().
  struct Probe {
    std::optional<Outgoing> segment = {};
    bool window_probe = false;  // an empty segment with the number before the first unacknowledged
  };
  Probe on_timer(TimePoint now);
  [[nodiscard]] TimePoint deadline() const { return deadline_; }
  // Sets the timer by what is in flight and what is held. After every change.
  void arm(TimePoint now);

  [[nodiscard]] Duration rto() const;
  [[nodiscard]] std::uint64_t next() const { return next_; }
  [[nodiscard]] std::uint64_t acked() const { return acked_; }
  [[nodiscard]] bool all_acked() const { return acked_ == next_ && written_ == acked_; }

 private:
  struct Sent {
    Outgoing what;
    TimePoint at;
    bool again = false, sacked = false, lost = false;
    [[nodiscard]] bool to_repeat() const { return lost && !again && !sacked; }
    [[nodiscard]] std::uint64_t end() const {
      return what.begin + what.payload + (what.fin ? 1 : 0);
    }
  };
  enum class Timer { kNone, kTimeout, kTailProbe, kReorder, kWindowProbe };
  struct RoundTrip {
    Duration smoothed{}, deviation{}, least = kForever;
  };
  struct Congestion {
    double window = 10;  // segments (RFC 6928)
    double threshold = 1e9;
    std::uint64_t recovers_at = 0;  // the end of what was in flight at the last loss
    bool limited = false;           // it, and not the application, held data back
  };

  [[nodiscard]] std::uint32_t segment_max() const;
  [[nodiscard]] std::size_t in_flight() const;
  [[nodiscard]] bool may_send_small(std::uint32_t payload) const;
  std::optional<Outgoing> send_again(TimePoint now);
  std::optional<Outgoing> send_new(TimePoint now);
  Outgoing send(std::uint32_t payload, bool fin, TimePoint now);
  void take_acked(std::uint64_t until, TimePoint now);
  void find_lost(TimePoint now);
  void reduce();

  EndpointOptions options_;
  Ticks ticks_;
  bool corked_ = false, closing_ = false, fin_sent_ = false, tail_probed_ = false;
  std::uint64_t acked_ = 1, next_ = 1, written_ = 1;
  std::uint64_t window_until_ = 1, window_max_ = 0;
  std::uint64_t small_until_ = 0;  // the end of the last small segment that was sent
  std::deque<Sent> flight_;
  std::size_t sacked_ = 0, to_repeat_ = 0;  // of flight_
  RoundTrip rtt_;
  Congestion congestion_;
  unsigned backoff_ = 0;
  Timer timer_ = Timer::kNone;
  TimePoint deadline_ = kNever, progress_{}, last_sent_{}, newest_delivered_{};
};

}  // namespace tailward::sim_tcp
