// One TCP connection as a capture shows it: sequence numbers, windows, losses, what was held and
// why, and its turns. Findings go to a Collector as they are made.
//
// Sources: RFC 9293 (TCP), 896 (Nagle), 1122 section 4.2.3.2 (delayed ACK), 5681 (fast retransmit),
// 6298 (RTO; Karn's rule), 8985 (tail-loss probe), 2018 and 2883 (SACK, D-SACK), 7323 (scaling).
//
// Thread safety: one thread. The collector and the service outlive it.
#pragma once

#include <array>
#include <memory>

#include "diag/analysis.h"
#include "diag/collector.h"
#include "diag/endpoint.h"
#include "diag/turns.h"

namespace tailward::diag {

class Connection {
 public:
  Connection(std::uint32_t serial, const tcp::SocketAddress& client,
             const tcp::SocketAddress& server, Collector& collector);

  // For a connection whose SYNs were not captured: the shifts of the windows that each side offers.
  void know_scales(std::uint8_t of_client, std::uint8_t of_server);
  // `at`: the segment's time, made monotonic.
  void add(tcp::Side side, const tcp::Segment& segment, Duration at);
  // Takes what is there; the connection is over, or the capture.
  void finish();

  // A SYN that begins another connection between the same two ports.
  [[nodiscard]] bool is_reuse(tcp::Side side, const tcp::Segment& segment) const;
  [[nodiscard]] bool closed() const { return state_ == State::kClosed; }
  [[nodiscard]] const tcp::SocketAddress& client() const { return client_; }
  [[nodiscard]] const tcp::SocketAddress& server() const { return server_; }
  [[nodiscard]] ConnectionSummary summary() const;

 private:
  enum class State : std::uint8_t { kNew, kSynSent, kSynAnswered, kOpen, kClosed };

  // connection.cc
  [[nodiscard]] bool is_copy(Endpoint& endpoint, const tcp::Segment& segment) const;
  [[nodiscard]] Duration rtt_to(tcp::Side side) const;  // there and back; 0 where unknown
  // The same where it is known, otherwise the best bound on it from above; 0 without either.
  [[nodiscard]] Duration rtt_upper_bound(tcp::Side side) const;
  [[nodiscard]] bool rtt_known(tcp::Side side) const;
  [[nodiscard]] RoundTrips rtts() const { return {rtt_to(tcp::kClient), rtt_to(tcp::kServer)}; }
  [[nodiscard]] std::uint32_t mss(tcp::Side side) const;
  [[nodiscard]] bool is_full(tcp::Side side, std::uint32_t payload) const;
  void on_reset(tcp::Side side, const tcp::Segment& segment);
  void on_data(tcp::Side side, const tcp::Segment& segment);
  void on_new_data(tcp::Side side, const tcp::Segment& segment);
  void on_fin(tcp::Side side, const tcp::Segment& segment);
  void deliver(tcp::Side side, bool acked);
  void emit(StallEvent event);
  void emit_turn(const std::optional<Turn>& turn);
  void settle_first_turn();

  // handshake.cc
  void on_syn(tcp::Side side, const tcp::Segment& segment);
  void on_syn_answer(tcp::Side side, const tcp::Segment& segment);
  void on_established(const tcp::Segment& segment);
  void take_options(Endpoint& endpoint, const tcp::Segment& segment);
  void syn_stall(Duration from, Duration until, std::uint64_t number);
  void finish_handshake();
  [[nodiscard]] Vantage find_vantage() const;
  [[nodiscard]] bool at_server() const;

  // acks.cc
  bool take_window(tcp::Side side, const tcp::Segment& segment);
  void check_reader(tcp::Side receiver, const tcp::Segment& segment);
  void on_ack(tcp::Side by, const tcp::Segment& segment, bool window_changed);
  void on_sack(Endpoint& data, tcp::Side of, const tcp::Segment& segment);
  void advance(tcp::Side by, const tcp::Segment& segment);
  void sample_ack_rtt(tcp::Side by, Duration took);
  void bound_rtt(tcp::Side by, Duration took);
  void follow_stamps(tcp::Side by, const tcp::Segment& segment);
  void on_probe(tcp::Side side, const tcp::Segment& segment);
  void end_zero_window(tcp::Side receiver, const tcp::Segment& segment);
  void emit_zero_window(tcp::Side receiver, Duration until, std::uint64_t number);

  // loss.cc
  void on_old_data(tcp::Side side, const tcp::Segment& segment);
  void add_hole(Endpoint& endpoint, const tcp::Segment& segment);
  bool fill(tcp::Side side, const tcp::Segment& segment);
  [[nodiscard]] bool overtaken(tcp::Side side, const Hole& hole, const tcp::Segment& segment) const;
  void emit_retransmission(tcp::Side side, const Sent& sent, Duration until, std::uint64_t number);

  // holds.cc
  void check_nagle(tcp::Side side, const tcp::Segment& segment);
  void check_cork(tcp::Side side, const tcp::Segment& segment);
  void track_run(tcp::Side side, const tcp::Segment& segment);
  void finish_run(tcp::Side side);
  void track_flight(tcp::Side side, const tcp::Segment& segment);
  void learn_scale(Endpoint& endpoint, const tcp::Segment& segment) const;
  bool compare_with_window(tcp::Side side, const tcp::Segment& segment);

  ConnectionTag tag_;
  Collector* collector_;
  tcp::SocketAddress client_, server_;
  State state_ = State::kNew;
  bool saw_start_ = false, saw_end_ = false;
  bool dropped_by_host_ = false;  // SYN-ACK again although the client's ACK was there
  Vantage vantage_ = Vantage::kUnknown;
  Duration now_{};
  std::array<Endpoint, 2> endpoints_;
  TurnTracker turns_;
  std::uint64_t packets_ = 0, retransmissions_ = 0, duplicates_ = 0, reordered_ = 0,
                turn_count_ = 0;
  // The handshake. Zero: not seen.
  Duration syn_first_{}, syn_last_{}, answer_first_{}, answer_last_{}, established_{};
  std::uint32_t syns_ = 0, syn_answers_ = 0;
  std::uint64_t syn_number_ = 0;
  // The first turn waits for later ones to be compared with.
  std::unique_ptr<Turn> first_turn_;
  Duration later_think_{};
  std::uint32_t later_turns_ = 0;
};

}  // namespace tailward::diag
