// Why was this request hedged, or why not? The last few hundred requests, each with what was
// decided for it.
//
// Thread safety: one loop. Fixed memory; recording is a copy of one line.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/time.h"
#include "hedge/engine/counters.h"
#include "hedge/engine/hosts.h"

namespace tailward::hedge {

// Which part of the experiments on hedging itself a request belongs to.
enum class Group : std::uint8_t {
  kHedged,    // hedged when it is due
  kControl,   // the control group: never, whatever its delay
  kSliceOff,  // it began in a slice of the switchback without hedging
  kOff,       // hedging is off: by the policy, by the verdict, or not eligible
};
std::string_view to_string(Group group);

struct Decision {
  std::uint64_t request = 0;  // its number in the route, from 1
  TimePoint at{};             // its end
  Duration latency{};
  Duration delay = kForever;  // its first hedge delay; kForever: none was planned
  HostIndex host = kNoHost;   // of the primary
  Group group = Group::kOff;
  bool due = false;  // the plan asked for a hedge
  std::uint8_t hedges = 0;
  std::uint8_t winner = UINT8_MAX;  // attempt; UINT8_MAX: none
  bool was_denied = false;
  Denied denied{};  // the last reason, where was_denied
};

class Decisions {
 public:
  static constexpr std::size_t kKept = 256;
  void record(const Decision& decision) { ring_[next_++ % kKept] = decision; }
  [[nodiscard]] std::size_t size() const { return next_ < kKept ? next_ : kKept; }
  // 0: the last one. REQUIRES: back < size().
  [[nodiscard]] const Decision& last(std::size_t back) const {
    return ring_[(next_ - 1 - back) % kKept];
  }

 private:
  std::array<Decision, kKept> ring_{};
  std::size_t next_ = 0;
};

}  // namespace tailward::hedge
