#include "diag/connection/first_turn.h"

#include <algorithm>

#include "diag/thresholds.h"

namespace tailward::diag {

bool FirstTurn::later(const Turn& turn) {
  later_think_ += turn.think;
  ++later_;
  return held_ && later_ == thresholds.turn.first_compared_with;
}

std::optional<FirstTurn::Compared> FirstTurn::settle(std::uint64_t syn_number) {
  if (!held_) return {};
  Compared compared{.turn = *held_, .detection = {}};
  held_.reset();
  if (later_ == 0) return compared;
  Turn& turn = compared.turn;
  const Duration usual = later_think_ / later_;
  const Duration extra = turn.think - usual;
  if (extra < thresholds.turn.first_extra ||
      turn.think < thresholds.turn.first_times_usual * usual) {
    compared.detection.counterexample = true;
    return compared;
  }
  Duration left = turn.total;
  for (const auto us : turn.stalled_us) left -= std::chrono::microseconds(us);
  const Duration amount = std::min(extra, left);
  if (amount <= Duration{0}) return compared;
  turn.stalled_us[static_cast<std::size_t>(StallKind::kFirstTurn)] =
      static_cast<std::uint32_t>(amount.count() / 1000);
  const Duration responded = turn.began + turn.total - turn.final_ack_wait - turn.response;
  compared.detection.stall = StallEvent{.kind = StallKind::kFirstTurn,
                                        .sender = tcp::kServer,
                                        .from = responded - turn.think,
                                        .until = responded,
                                        .amount = amount,
                                        .packets = {syn_number}};
  return compared;
}

}  // namespace tailward::diag
