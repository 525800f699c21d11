// One TCP connection as a capture shows it. Every segment goes through here; the parts say what it
// means: sequence_space, segment_size, window_tracker, round_trip, loss_detector, nagle_detector,
// cork_detector, small_write_detector, bulk_detector, handshake, turns, first_turn. What they find
// goes to a Collector, with the time that no other stall has told of already.
//
// Thread safety: one thread. The collector and the service outlive it.
#pragma once

#include <array>

#include "diag/analysis.h"
#include "diag/collector.h"
#include "diag/connection/endpoint.h"
#include "diag/connection/first_turn.h"
#include "diag/connection/handshake.h"
#include "diag/connection/round_trip.h"
#include "diag/connection/turns.h"

namespace tailward::diag {

class Connection {
 public:
  Connection(std::uint32_t serial, const tcp::SocketAddress& client,
             const tcp::SocketAddress& server, Collector& collector);

  // For a connection whose SYNs were not captured: the shifts of the windows that each side offers.
  void know_scales(std::uint8_t of_client, std::uint8_t of_server);
  // `at`: the segment's time, made monotonic.
  void add(tcp::Side side, const tcp::Segment& segment, Duration at);
  // Takes what is there; the connection is over, or the capture. Call once.
  void finish();

  // A SYN that begins another connection between the same two ports.
  [[nodiscard]] bool is_reuse(tcp::Side side, const tcp::Segment& segment) const;
  [[nodiscard]] bool closed() const { return handshake_.state() == Handshake::State::kClosed; }
  [[nodiscard]] const tcp::SocketAddress& client() const { return client_; }
  [[nodiscard]] const tcp::SocketAddress& server() const { return server_; }
  [[nodiscard]] ConnectionSummary summary() const;

 private:
  struct Counters {
    std::uint64_t packets = 0, retransmissions = 0, duplicates = 0, reordered = 0, turns = 0;
  };

  void on_syn(tcp::Side side, const tcp::Segment& segment);
  void on_syn_ack(const tcp::Segment& segment);
  void on_established(const tcp::Segment& segment);
  void on_reset(tcp::Side side, const tcp::Segment& segment);
  void on_ack(tcp::Side by, const tcp::Segment& segment);
  void on_progress(tcp::Side by, const tcp::Segment& segment);
  void on_data(tcp::Side side, const tcp::Segment& segment);
  void on_new_data(tcp::Side side, const tcp::Segment& segment);
  void on_old_data(tcp::Side side, const tcp::Segment& segment);
  void on_fin(tcp::Side side, const tcp::Segment& segment);
  // The detectors of a held, small or limited segment, in the order in which they may claim time.
  void look_for_holds(tcp::Side side, const tcp::Segment& segment);
  void look_for_limits(tcp::Side side, const tcp::Segment& segment);
  // Bytes that the turns have not had yet. `all_acked`: all that this side had sent before.
  void deliver(tcp::Side side, bool all_acked);
  void report_loss(tcp::Side side, const SentSegment& sent, Duration until, std::uint64_t number);
  void report_handshake(const StallEvent& event);
  void report(tcp::Side sender, const std::optional<StallEvent>& event);
  void report(tcp::Side sender, StallKind kind, const Detection& detection);
  void report_turn(const std::optional<Turn>& turn);
  void report_first_turn();

  [[nodiscard]] std::uint32_t segment_size(tcp::Side side) const;
  [[nodiscard]] bool is_full(tcp::Side side, std::uint32_t payload) const;
  [[nodiscard]] bool same_host() const;
  // The capture was made where the server is.
  [[nodiscard]] bool at_server() const;

  ConnectionTag tag_;
  Collector* collector_;
  tcp::SocketAddress client_, server_;
  bool saw_end_ = false;
  Vantage vantage_ = Vantage::kUnknown;
  Duration now_{};
  Counters counters_;
  Handshake handshake_;
  RoundTripEstimator rtt_;
  std::array<Endpoint, 2> endpoints_;
  TurnTracker turns_;
  FirstTurn first_turn_;
};

}  // namespace tailward::diag
