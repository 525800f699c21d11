#include "hedge/engine/hosts.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"

namespace tailward::hedge {

Result<HostIndex> Hosts::add(std::string name) {
  if (hosts_.size() >= kHostsMax) {
    return fail(ErrorKind::kInvalid, fmt::format("a pool takes at most {} hosts", kHostsMax),
                "name fewer hosts, or put a load balancer in front of them");
  }
  Host host;
  host.name = std::move(name);
  host.first_attempts = std::make_unique<stats::Survival>();
  hosts_.push_back(std::move(host));
  return static_cast<HostIndex>(hosts_.size() - 1);
}

bool Hosts::usable(HostIndex host, std::span<const HostIndex> excluded, TimePoint now) const {
  if (now < any_suspended_until_ && now < hosts_[host].suspended_until) return false;
  if (on_probation(host) && now != kNever) return false;
  return std::find(excluded.begin(), excluded.end(), host) == excluded.end();
}

HostIndex Hosts::choose(std::span<const HostIndex> excluded, TimePoint now, Rng& rng) {
  const std::uint64_t count = hosts_.size();
  if (count == 0) return kNoHost;
  const auto busier = [this](HostIndex a, HostIndex b) {
    return hosts_[a].in_flight > hosts_[b].in_flight;
  };
  if (count == 1) return excluded.empty() ? HostIndex{0} : kNoHost;

  // Two different hosts; mostly both are usable, and that is all.
  const auto first = static_cast<HostIndex>(rng.below(count));
  auto second = static_cast<HostIndex>(rng.below(count - 1));
  if (second >= first) ++second;
  const bool first_usable = usable(first, excluded, now);
  const bool second_usable = usable(second, excluded, now);
  if (first_usable && second_usable) return busier(first, second) ? second : first;
  if (first_usable) return first;
  if (second_usable) return second;

  // Few are left: look at them all, from a random start, the not suspended ones first.
  HostIndex best = kNoHost;
  HostIndex best_suspended = kNoHost;
  for (std::uint64_t step = 0; step < count; ++step) {
    const auto host = static_cast<HostIndex>((first + step) % count);
    if (usable(host, excluded, now)) {
      if (best == kNoHost || busier(best, host)) best = host;
    } else if (usable(host, excluded, kNever)) {
      if (best_suspended == kNoHost || busier(best_suspended, host)) best_suspended = host;
    }
  }
  return best != kNoHost ? best : best_suspended;
}

HostIndex Hosts::probe(TimePoint now, bool saved) {
  constexpr std::uint32_t kUnsavedTimes = 4;
  if (shifted_ == 0 || !probation_) return kNoHost;
  if (++since_probe_ < config_.probe_requests * (saved ? 1 : kUnsavedTimes)) return kNoHost;
  HostIndex due = kNoHost;
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    const auto index = static_cast<HostIndex>(i);
    const Host& host = hosts_[i];
    if (!on_probation(index) || host.in_flight > 0 || now < host.next_probe ||
        now < host.suspended_until) {
      continue;
    }
    // Each in its turn: the one that has waited longest.
    if (due == kNoHost || host.next_probe < hosts_[due].next_probe) due = index;
  }
  if (due == kNoHost) return kNoHost;
  hosts_[due].next_probe = now + config_.probe_every;
  since_probe_ = 0;
  return due;
}

bool Hosts::sample_change(HostIndex index, bool longer, const ChangeScale& scale, TimePoint now) {
  Host& host = hosts_[index];
  const bool before = host.change.shifted();
  host.change.sample(longer, scale);
  const bool after = host.change.shifted();
  if (before == after) return false;
  after ? ++shifted_ : --shifted_;
  if (after) host.shifted_since = now;
  // Well again: what it was like on probation is no guide.
  if (!after && probation_ && host.first_attempts != nullptr) host.first_attempts->clear();
  return true;
}

void Hosts::forget_latencies() {
  for (Host& host : hosts_) {
    host.change.reset();
    host.per_host_delay.reset();
    if (host.first_attempts != nullptr) host.first_attempts->clear();
  }
  shifted_ = 0;
}

void Hosts::attempt_begins(HostIndex index, TimePoint now) {
  Host& host = hosts_[index];
  ++host.attempts;
  ++host.in_flight;
  host.last_used = now;
}

void Hosts::attempt_ends(HostIndex index) {
  TAILWARD_CHECK(hosts_[index].in_flight > 0);
  --hosts_[index].in_flight;
}

void Hosts::attempt_failed(HostIndex index, TimePoint now) {
  Host& host = hosts_[index];
  ++host.failures;
  // What was under way when it was suspended fails with it: one fault, one suspension.
  if (now < host.suspended_until) return;
  ++host.failures_in_a_row;
  if (host.failures_in_a_row < config_.failures_min) return;
  const int doublings = std::min(host.failures_in_a_row - config_.failures_min, 20);
  const Duration length =
      std::min<Duration>(config_.suspend * (std::int64_t{1} << doublings), config_.suspend_max);
  host.suspended_until = now + length;
  any_suspended_until_ = std::max(any_suspended_until_, host.suspended_until);
}

stats::Survival& Hosts::first_attempts(HostIndex index) {
  Host& host = hosts_[index];
  if (host.first_attempts == nullptr) host.first_attempts = std::make_unique<stats::Survival>();
  return *host.first_attempts;
}

void Hosts::decay(double factor, TimePoint now) {
  for (Host& host : hosts_) {
    if (host.first_attempts == nullptr) continue;
    host.first_attempts->decay(factor);
    const bool idle =
        host.in_flight == 0 && host.attempts > 0 && now - host.last_used > config_.evict_after;
    if (idle) host.first_attempts.reset();
  }
}

}  // namespace tailward::hedge
