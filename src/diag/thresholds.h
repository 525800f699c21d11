// Every threshold of the packet analyser and of the packet rules, in one table.
//
// Each line says where the figure comes from: a kernel file or an RFC where the protocol fixes it,
// and otherwise what it has to tell apart. Limits on memory are no thresholds; they stand where the
// memory is.
#pragma once

#include <cstdint>

#include "base/time.h"

namespace tailward::diag {

// The same packet captured twice: on "any", on a bridge, on both ends of a veth pair.
struct CopyThresholds {
  // A device hands a packet on within microseconds. A retransmission comes a round trip later, and
  // no retransmission timer is that short (net/ipv4/tcp_output.c, tcp_schedule_loss_probe: 2 ms).
  Duration within = std::chrono::milliseconds(1);
  // Without an IP identification, on the same interface: a program may send the same bytes in this
  // time only if it sends them by two system calls.
  Duration without_id_within = std::chrono::microseconds(50);
};

// How large a full segment is, where the SYNs were not captured.
struct SegmentSizeThresholds {
  std::uint32_t unknown_path = 1200;  // nearly every path carries that much (RFC 8200: 1280 − 60)
  std::uint32_t loopback = 32'000;    // half of the 65,483 that loopback's MTU of 65,536 allows
  std::uint32_t ethernet = 1448;      // 1500 − 40 − 12 for time stamps
  // Segments of one size in a row are full ones only from here: smaller ones are messages.
  std::uint32_t full_row_min = 1200;
  // Above this a capture shows what segmentation offload makes of several segments.
  std::uint32_t largest_ethernet = 1460;
};

// Who answers, and where the capture was made.
struct HandshakeThresholds {
  // Nobody but a kernel on the spot acknowledges a SYN that fast.
  Duration on_the_spot = std::chrono::milliseconds(1);
  std::int64_t nearer_by = 4;  // times as near as the other end
  // The SYN-ACK's first timer is one second (RFC 6298; TCP_TIMEOUT_INIT). One that follows the
  // client's ACK sooner was sent for an earlier copy of the SYN.
  Duration soon_after_ack = std::chrono::milliseconds(200);
  // A way longer than this is a finding by itself, however steady it is.
  Duration slow_way = std::chrono::milliseconds(100);
};

// Windows and the readers behind them.
struct WindowThresholds {
  // A window that never was larger is small, whoever fills it.
  std::uint32_t small = 32 * 1024;
  // A reader that leaves more than half of its window unread for that long is behind.
  Duration behind_min = std::chrono::milliseconds(10);
  // A sender that has data sends at once when the window opens, and a round trip later.
  Duration prompt = std::chrono::milliseconds(2);
  // Learning a scale that was not seen: how far a window must shrink to be measured, how near the
  // ratio must be to a power of two (rounding may do 1/16), and how often that must be seen.
  std::int32_t scale_shrunk_min = 16;
  double scale_near = 0.07;
  std::uint8_t scale_votes_min = 8;
  std::uint8_t scale_votes_per_lower = 3;  // votes for smaller scales that it must outnumber
};

// Bytes that come again.
struct LossThresholds {
  // Linux's smallest RTO is 200 ms (TCP_RTO_MIN), less a tick of the timer wheel.
  Duration timeout_min = std::chrono::milliseconds(180);
  // What arrives out of order within this was overtaken. Linux waits min(RTT)/4 before it believes
  // in a loss (RFC 8985, section 6.2), paths reorder by less.
  Duration overtaken_within = std::chrono::milliseconds(3);
  std::uint32_t dup_acks = 3;  // RFC 5681, section 3.2
};

// A small segment that Nagle's algorithm held until a delayed ACK came.
struct NagleThresholds {
  // Linux delays an ACK by 40 ms at least (TCP_DELACK_MIN), in its quick phase not at all; macOS
  // and Windows by 40 to 200 ms. Less than this may be a busy receiver.
  Duration delayed_ack_min = std::chrono::milliseconds(25);
  // The kernel sends the held segment in the softirq that takes the ACK.
  Duration prompt_release = std::chrono::milliseconds(1);
  // A program's own next write comes at any time: one that comes later than prompt_release and
  // within this is a counterexample.
  Duration near_miss = std::chrono::milliseconds(40);
};

// A part of a segment that a cork (TCP_CORK, MSG_MORE) kept back.
struct CorkThresholds {
  // The kernel gives up after the RTO, TCP_RTO_MIN = 200 ms at least (net/ipv4/tcp_output.c,
  // tcp_check_probe_timer), less a tick, and with the granularity of the timer wheel.
  Duration from = std::chrono::milliseconds(197);
  Duration until = std::chrono::milliseconds(218);
  // A response's cork timer begins when it is written: the thinking before it is part of what is
  // seen.
  Duration think = std::chrono::milliseconds(60);
  // Delays in this range that are not the kernel's are counterexamples: a program that waits.
  Duration miss_from = std::chrono::milliseconds(20);
  Duration miss_until = std::chrono::milliseconds(1000);
  // The timer is set to 200 ms and a round trip, and rounded up to its tick.
  Duration kernel_timer = std::chrono::microseconds(201'500);
  // How likely the steps of a kernel's timer may be by chance (Rayleigh's test).
  double by_chance_consistent = 0.001;
  double by_chance_guessed = 0.02;
};

// A stream of small writes.
struct SmallWriteThresholds {
  Duration gap_max = std::chrono::milliseconds(3);     // longer: the program did something else
  Duration pace_max = std::chrono::microseconds(150);  // from one write to the next, on average
  std::uint32_t segments_min = 50;
  // Loopback's segments are as large as the write: a stream in pieces of this size is not small.
  std::uint32_t segment_of_loopback = 8192;
};

// A sender that its window or its own buffer holds back.
struct FlightThresholds {
  std::uint32_t rounds_min = 6;  // of the same level: a congestion window would have grown
  Duration prompt = std::chrono::milliseconds(2);
  Duration pause = std::chrono::milliseconds(50);  // a sender that pauses has nothing to send
  Duration gap_min = std::chrono::microseconds(50);
  std::uint8_t bulk_segments = 4;  // in a row: what is not a message is a stream
  // A window whose scale is unknown is taken as unscaled once this many of it have passed without
  // more being in flight.
  std::uint32_t unscaled_window_min = 1024;
  std::uint32_t unscaled_windows_passed = 16;
};

// Below these a way is not told apart from the time that kernels and programs take.
struct WayThresholds {
  Duration of_kernels = std::chrono::microseconds(300);
  Duration of_paths = std::chrono::microseconds(500);  // less: two programs of one host
};

// Where one request ends and the next begins.
struct TurnThresholds {
  Duration stream_pause = std::chrono::seconds(1);
  Duration response_pause = std::chrono::seconds(5);
  // An ACK may have been delayed by this much on purpose (Linux: TCP_DELACK_MAX, 200 ms; Windows:
  // 200 ms), with some to spare.
  Duration delayed_ack_max = std::chrono::milliseconds(250);
  // A connection's first request compared with its later ones.
  std::uint32_t first_compared_with = 3;
  Duration first_extra = std::chrono::milliseconds(5);
  std::int64_t first_times_usual = 3;
  // A stall of which others have told of all but a twentieth is none of its own.
  std::int64_t stall_share_inverse = 20;
  // A capture of several devices is not quite in order; a larger step back is a clock that was set.
  Duration clock_step = std::chrono::milliseconds(100);
  std::uint32_t giant_segment = 1500;
};

// What recurs, and what speaks against it.
struct RecurrenceThresholds {
  std::uint64_t recurs = 3;  // what happened three times is no coincidence
  std::uint64_t cork_recurs = 5;
  std::uint64_t first_data_recurs = 5;
  std::uint64_t counterexamples_per_hit = 3;
  std::uint32_t unread_min = 4096;    // bytes in a receive queue
  std::uint64_t first_turn_most = 5;  // connections
  std::uint64_t first_turn_share_inverse = 5;
  double limited_share = 0.2;  // of a socket's busy time, by TCP_INFO
  std::uint64_t refused_share_inverse = 20;
  std::uint32_t listener_looks_min = 10;  // to say that nobody waited
  std::uint32_t listener_waiting_min = 3;
};

// What a cause must cost to be named.
struct CostThresholds {
  Duration mean_min = std::chrono::microseconds(300);  // per slow request
  double weight_alone = 0.2;                           // of the slow requests' time
  double weight = 0.1;                                 // together with `amount`
  Duration amount = std::chrono::milliseconds(5);
  double gain = 0.05;  // of P99, unless slow requests have much more of it, or all have it
  double lift = 1.5;   // slow requests against the others
  double nearly_all = 0.8;
  double think_share = 0.5;  // of the slow requests' time: then the program is what is slow
  double of_all = 0.4;       // of all requests' time: then slow and normal ones suffer alike
  // In a capture of `few` requests two must have it, in one of `many` three.
  std::uint64_t few = 200, many = 1000;
  std::uint64_t slow_requests_min = 5;  // the slowest that stand for P99 in a small capture
};

struct Thresholds {
  CopyThresholds copy;
  SegmentSizeThresholds segment_size;
  HandshakeThresholds handshake;
  WindowThresholds window;
  LossThresholds loss;
  NagleThresholds nagle;
  CorkThresholds cork;
  SmallWriteThresholds small_writes;
  FlightThresholds flight;
  WayThresholds way;
  TurnThresholds turn;
  RecurrenceThresholds recurrence;
  CostThresholds cost;
};

inline constexpr Thresholds thresholds;

}  // namespace tailward::diag
