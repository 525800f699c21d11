// Requests by turn-taking: whoever speaks after the other has finished begins something new. Knows
// no protocol, so it works on encrypted ones too.
//
//   - Requests that are pipelined, or sent while the answer to an earlier one is still on its way,
//     belong to the turn that is open.
//   - What a server says first (SMTP, MySQL) is the answer to the handshake. What it says unasked
//     later is a push: a turn only if it was held up.
//   - A stream that nobody answers is one turn, until it pauses for a second with everything
//     acknowledged; an answer that pauses for five seconds is followed by pushes.
//   - A half-closed client still gets its answer.
//
// Thread safety: one thread. Times as in Segment::at; they do not run backwards.
#pragma once

#include <optional>

#include "diag/analysis.h"

namespace tailward::diag {

// To either end and back, at the least, as seen from the capture. 0 where unknown.
struct RoundTrips {
  Duration to_client{};
  Duration to_server{};
};

class TurnTracker {
 public:
  // The first turn will begin with the handshake. `stalled`: of its time, in one way.
  void handshake(Duration began, Duration took);
  void handshake_stall(StallKind kind, Duration amount);

  // New data. Returns the turn that it ends, if any. `acked`: everything that this side had sent
  // before; `answered`: everything that the other side had sent before.
  std::optional<Turn> client_data(Duration at, bool acked, bool answered, const RoundTrips& rtts);
  std::optional<Turn> server_data(Duration at, bool acked, const RoundTrips& rtts);
  // The last byte of what was sent up to now has been acknowledged.
  void client_data_acked(Duration at, bool alone);
  void server_data_acked(Duration at);

  // The open turn lost `amount` within from…until. Returns what of it was not counted already: two
  // stalls do not share the same time.
  Duration stall(StallKind kind, Duration from, Duration until, Duration amount);

  // The connection ends, or the capture. `waited_until`: of a request without an answer.
  std::optional<Turn> close(std::optional<Duration> waited_until, const RoundTrips& rtts);

  [[nodiscard]] bool open() const { return phase_ != Phase::kIdle; }
  [[nodiscard]] bool first() const { return turns_ == 0; }

 private:
  enum class Phase : std::uint8_t { kIdle, kRequest, kAnswer, kPush };

  void begin(Phase phase, Duration at);
  void add_wire(Turn& turn, const RoundTrips& rtts) const;

  Phase phase_ = Phase::kIdle;
  bool handshake_pending_ = false;
  bool greeting_ = false;
  Duration handshake_began_{}, handshake_took_{};
  Duration began_{};  // the turn's first byte
  Duration last_request_{}, first_answer_{}, last_answer_{};
  // Zero: not yet.
  Duration request_acked_{}, request_acked_alone_{}, answer_acked_{};
  Duration covered_{};  // stalls up to here are counted
  std::array<std::uint32_t, kStallKinds> stalled_us_{};
  std::array<std::uint32_t, kStallKinds> handshake_stalled_us_{};
  std::uint64_t turns_ = 0;
};

}  // namespace tailward::diag
