// The slow requests against the others: where did they lose their time? And the replay: what would
// they have taken without it?
//
// Thread safety: immutable after construction. The analysis outlives it.
#pragma once

#include <array>
#include <span>

#include "diag/analysis.h"
#include "diag/network_diagnosis.h"

namespace tailward::diag {

// A set of stall kinds, a bit for each.
using Kinds = std::uint32_t;
constexpr Kinds kinds(StallKind kind) { return 1u << static_cast<unsigned>(kind); }

class Contrast {
 public:
  // Slow are the requests from P99 on, at least five, and all of three times the median or more if
  // those are more: a cause may strike one request in three.
  explicit Contrast(std::span<const Turn> turns);

  // What the requests lost in these ways.
  struct Loss {
    double of_all = 0;                              // of the time of all requests
    Duration slow{}, normal{};                      // means, per request
    std::uint64_t affected = 0, affected_slow = 0;  // requests that lost a tenth of their time
    double share_of_slow = 0;
    double weight = 0;  // mean share of a slow request's time
    Duration predicted_p99{};
  };
  [[nodiscard]] Loss loss(Kinds which) const;

  [[nodiscard]] std::vector<NetworkDiagnosis::Part> parts(Kinds shown) const;
  // Of the slow requests' time: between their last byte and the answer's first, less what stalled.
  [[nodiscard]] double think_share() const;
  // The mean extra time of slow requests that is neither a stall nor the way: it passed above TCP,
  // and packets do not say in what.
  [[nodiscard]] Duration unexplained() const;
  [[nodiscard]] std::uint64_t requests() const { return turns_.size(); }
  [[nodiscard]] Duration slow_from() const { return slow_from_; }
  [[nodiscard]] Duration p99() const { return p99_; }
  [[nodiscard]] Duration p50() const { return p50_; }

 private:
  template <class Value>
  [[nodiscard]] NetworkDiagnosis::Part part(std::string name, Value value) const;
  [[nodiscard]] bool is_slow(const Turn& turn) const { return turn.total >= slow_from_; }

  std::span<const Turn> turns_;
  Duration slow_from_{}, p99_{}, p50_{};
  std::uint64_t slow_ = 0;
};

}  // namespace tailward::diag
