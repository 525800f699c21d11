#include "diag/contrast.h"

#include <algorithm>

#include "diag/thresholds.h"
#include "stats/interval.h"

namespace tailward::diag {
namespace {

Duration lost(const Turn& turn, Kinds which) {
  std::uint64_t us = 0;
  for (std::size_t i = 0; i < kStallKinds; ++i) {
    if ((which >> i & 1u) != 0) us += turn.stalled_us[i];
  }
  return std::chrono::microseconds(us);
}

Duration mean(double sum_ns, std::uint64_t n) {
  return n == 0 ? Duration{} : Duration{static_cast<std::int64_t>(sum_ns / static_cast<double>(n))};
}

double share(double part, double whole) { return whole > 0 ? part / whole : 0; }

Duration quantile(std::vector<Duration>& values, double q) {
  if (values.empty()) return {};
  const auto rank = static_cast<std::ptrdiff_t>(stats::nearest_rank(values.size(), q) - 1);
  std::nth_element(values.begin(), values.begin() + rank, values.end());
  return values[static_cast<std::size_t>(rank)];
}

}  // namespace

Contrast::Contrast(std::span<const Turn> turns) : turns_(turns) {
  if (turns.empty()) return;
  std::vector<Duration> totals;
  totals.reserve(turns.size());
  for (const Turn& turn : turns) totals.push_back(turn.total);
  p50_ = quantile(totals, 0.5);
  p99_ = quantile(totals, 0.99);
  std::sort(totals.begin(), totals.end());
  const std::size_t at_least =
      std::min<std::size_t>(thresholds.cost.slow_requests_min, totals.size());
  slow_from_ = std::min(p99_, totals[totals.size() - at_least]);
  if (p50_ > Duration{0}) slow_from_ = std::min(slow_from_, 3 * p50_);
  const auto first = std::lower_bound(totals.begin(), totals.end(), slow_from_);
  slow_from_ = *first;  // 3 × median may be longer than none: then min() chose another
  slow_ = static_cast<std::uint64_t>(totals.end() - first);
}

Contrast::Loss Contrast::loss(Kinds which) const {
  Loss loss;
  double slow_ns = 0, normal_ns = 0, weight = 0, all_ns = 0;
  std::vector<Duration> without;
  without.reserve(turns_.size());
  for (const Turn& turn : turns_) {
    const Duration amount = std::min(lost(turn, which), turn.total);
    without.push_back(turn.total - amount);
    all_ns += static_cast<double>(turn.total.count());
    const bool slow = is_slow(turn);
    (slow ? slow_ns : normal_ns) += static_cast<double>(amount.count());
    if (slow) {
      weight += share(static_cast<double>(amount.count()), static_cast<double>(turn.total.count()));
    }
    if (amount > Duration{0} && amount >= turn.total / 10) {
      ++loss.affected;
      if (slow) ++loss.affected_slow;
    }
  }
  loss.slow = mean(slow_ns, slow_);
  loss.normal = mean(normal_ns, turns_.size() - slow_);
  loss.of_all = share(slow_ns + normal_ns, all_ns);
  loss.weight = share(weight, static_cast<double>(slow_));
  loss.share_of_slow = share(static_cast<double>(loss.affected_slow), static_cast<double>(slow_));
  loss.predicted_p99 = quantile(without, 0.99);
  return loss;
}

template <class Value>
NetworkDiagnosis::Part Contrast::part(std::string name, Value value) const {
  double slow_ns = 0, normal_ns = 0, whole_ns = 0;
  for (const Turn& turn : turns_) {
    const auto ns = static_cast<double>(Duration{value(turn)}.count());
    (is_slow(turn) ? slow_ns : normal_ns) += ns;
    if (is_slow(turn)) whole_ns += static_cast<double>(turn.total.count());
  }
  NetworkDiagnosis::Part part{.name = std::move(name),
                              .slow = mean(slow_ns, slow_),
                              .normal = mean(normal_ns, turns_.size() - slow_)};
  part.extra = part.slow - part.normal;
  part.share_of_slow = share(slow_ns, whole_ns);
  return part;
}

std::vector<NetworkDiagnosis::Part> Contrast::parts(Kinds shown) const {
  if (turns_.empty()) return {};
  std::vector<NetworkDiagnosis::Part> parts{
      part("handshake", [](const Turn& t) { return t.handshake; }),
      part("request", [](const Turn& t) { return t.request; }),
      part("wire", [](const Turn& t) { return t.wire; }),
      part("think", [](const Turn& t) { return t.think; }),
      part("response", [](const Turn& t) { return t.response; }),
      part("tail", [](const Turn& t) { return t.final_ack_wait; }),
  };
  for (std::size_t i = 0; i < kStallKinds; ++i) {
    const auto kind = static_cast<StallKind>(i);
    if ((shown & kinds(kind)) == 0) continue;
    parts.push_back(
        part(std::string(to_string(kind)), [&](const Turn& t) { return lost(t, kinds(kind)); }));
    parts.back().within_others = true;
  }
  return parts;
}

Duration Contrast::unexplained() const {
  double slow_ns = 0, normal_ns = 0;
  for (const Turn& turn : turns_) {
    const Duration rest = std::max(Duration{0}, turn.total - turn.wire - lost(turn, ~Kinds{0}));
    (is_slow(turn) ? slow_ns : normal_ns) += static_cast<double>(rest.count());
  }
  const Duration extra = mean(slow_ns, slow_) - mean(normal_ns, turns_.size() - slow_);
  return std::max(Duration{0}, extra);
}

double Contrast::think_share() const {
  double think = 0, whole = 0;
  for (const Turn& turn : turns_) {
    if (!is_slow(turn)) continue;
    const Duration stalled = lost(turn, ~Kinds{0});
    think += static_cast<double>(std::max(Duration{0}, turn.think - stalled).count());
    whole += static_cast<double>(turn.total.count());
  }
  return share(think, whole);
}

}  // namespace tailward::diag
