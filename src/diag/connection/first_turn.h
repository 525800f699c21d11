// Whether the first request of a connection waited to be accepted: it took much longer than the
// later ones on the same connection, and none of TCP's ways to lose time explains it.
//
// Thread safety: one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "diag/connection/stall_event.h"
#include "diag/connection/turns.h"

namespace tailward::diag {

class FirstTurn {
 public:
  // Keeps the turn until there are later ones to compare it with.
  void hold(const Turn& turn) { held_ = std::make_unique<Turn>(turn); }
  // One more turn. True once there are enough.
  bool later(const Turn& turn);

  struct Compared {
    Turn turn;  // with its stall, if it has one
    Detection detection;
  };
  // Gives up what is held, with what can be said by now; empty if nothing is. `syn_number`: packet
  // that proves when the connection began.
  std::optional<Compared> settle(std::uint64_t syn_number);

 private:
  std::unique_ptr<Turn> held_;
  Duration later_think_{};  // in all
  std::uint32_t later_ = 0;
};

}  // namespace tailward::diag
