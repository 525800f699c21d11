// The hosts of a pool: which one an attempt goes to, and what is known of each.
//
// Thread safety: one loop. Time and randomness are given.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/rng.h"
#include "base/time.h"
#include "hedge/safety/change_detector.h"
#include "stats/survival.h"

namespace tailward::hedge {

using HostIndex = std::uint16_t;
inline constexpr HostIndex kNoHost = UINT16_MAX;
inline constexpr std::size_t kHostsMax = 4096;

struct HostsConfig {
  // A host that failed `failures_min` times in a row gets no attempts for `suspend`, twice as long
  // each time it fails on, up to `suspend_max`; when all are suspended, none counts as suspended.
  int failures_min = 3;
  Duration suspend = std::chrono::seconds(1);
  Duration suspend_max = std::chrono::seconds(30);
  // A host not used for so long gives its estimator back.
  Duration evict_after = std::chrono::minutes(10);
  // A host on probation gets one request at a time, at most every `probe_every` and at most one in
  // `probe_requests`.
  Duration probe_every = std::chrono::milliseconds(100);
  std::uint32_t probe_requests = 200;
};

// What a host costs in memory is its Survival (≤ 12 KiB) and a line of this, ≤ 16 KiB together.
struct Host {
  std::string name;
  std::uint64_t attempts = 0;
  std::uint64_t failures = 0;
  std::uint32_t in_flight = 0;
  int failures_in_a_row = 0;
  TimePoint suspended_until{};
  TimePoint last_used{};
  // Slower than the pool's healthy baseline (hedge/safety/overload.h).
  ChangeDetector change;
  TimePoint shifted_since{};
  TimePoint next_probe{};
  // When a first attempt on this host is to be hedged, where it is not like the others; empty: as
  // the plan says (hedge/planning/per_host_delay.h).
  std::optional<Duration> per_host_delay;
  // First attempts on this host, losers censored. Null while evicted.
  std::unique_ptr<stats::Survival> first_attempts;
};

class Hosts {
 public:
  explicit Hosts(const HostsConfig& config = {}) : config_(config) {}

  // kInvalid beyond kHostsMax. The same name may be added twice: two ways to reach one server.
  Result<HostIndex> add(std::string name);

  // The less busy of two hosts drawn at random ("power of two choices", Mitzenmacher 2001) among
  // those not in `excluded`, not suspended and not on probation; kNoHost when every host is
  // excluded. One that is suspended or on probation is chosen only when no other is left.
  [[nodiscard]] HostIndex choose(std::span<const HostIndex> excluded, TimePoint now, Rng& rng);

  // A host on probation that is due a request, to see whether it is well again; mostly kNoHost.
  // Counts the request that asks. `saved`: a hedge would save it; others are sent there more
  // rarely, so that a host comes back also while nothing is hedged.
  [[nodiscard]] HostIndex probe(TimePoint now, bool saved);
  // One more first attempt on that host, longer than the limit or not. True when its state turned.
  bool sample_change(HostIndex host, bool longer, const ChangeScale& scale, TimePoint now);
  [[nodiscard]] std::size_t shifted() const { return shifted_; }
  // Whether hosts that have shifted are avoided; not when most have.
  void set_probation(bool avoided) { probation_ = avoided; }
  [[nodiscard]] bool on_probation(HostIndex host) const {
    return probation_ && shifted_ > 0 && hosts_[host].change.shifted();
  }
  // Estimators, shifts and own delays begin anew.
  void forget_latencies();
  void set_per_host_delay(HostIndex host, std::optional<Duration> delay) {
    hosts_[host].per_host_delay = delay;
  }

  void attempt_begins(HostIndex host, TimePoint now);
  // The attempt's latency does not come here: first attempts go to first_attempts(host).
  void attempt_ends(HostIndex host);
  // It answered, whatever it answered.
  void attempt_answered(HostIndex host) { hosts_[host].failures_in_a_row = 0; }
  // It did not answer: refused, reset, silent.
  void attempt_failed(HostIndex host, TimePoint now);

  // The estimator of that host; allocates when the host had been evicted.
  [[nodiscard]] stats::Survival& first_attempts(HostIndex host);

  // Ages every host's samples by `factor`, and evicts the idle.
  void decay(double factor, TimePoint now);

  [[nodiscard]] std::size_t size() const { return hosts_.size(); }
  [[nodiscard]] const Host& at(HostIndex host) const { return hosts_[host]; }

 private:
  [[nodiscard]] bool usable(HostIndex host, std::span<const HostIndex> excluded,
                            TimePoint now) const;

  HostsConfig config_;
  std::vector<Host> hosts_;
  std::size_t shifted_ = 0;
  bool probation_ = true;
  std::uint32_t since_probe_ = 0;  // requests
  // While no host is suspended, none needs to be looked at for it.
  TimePoint any_suspended_until_{};
};

}  // namespace tailward::hedge
