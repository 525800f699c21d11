#include "hedge/safety/overload.h"

#include <algorithm>
#include <cmath>

namespace tailward::hedge {

std::string_view to_string(Overload::State state) {
  switch (state) {
    case Overload::State::kClear:
      return "clear";
    case Overload::State::kOverloaded:
      return "brownout";
    case Overload::State::kReturning:
      return "returning";
  }
  return "clear";
}

void Overload::sample(Hosts& hosts, HostIndex host, bool longer, TimePoint now) {
  if (limit_ >= kForever) return;
  pool_.sample(longer, pool_scale_);
  const bool turned = hosts.sample_change(host, longer, host_scale_, now);
  if (turned || pool_.shifted() != (state_ == State::kOverloaded)) decide(hosts, now);
}

void Overload::tick(Hosts& hosts, const Baseline& baseline, std::int64_t in_flight,
                    std::uint64_t arrived, TimePoint now) {
  const Duration elapsed = last_tick_ == TimePoint{} ? Duration{} : now - last_tick_;
  last_tick_ = now;
  if (elapsed <= Duration{}) return;
  const double seconds = to_seconds(elapsed);
  const double rate = static_cast<double>(arrived) / seconds;
  arrivals_per_s_ = arrivals_per_s_ == 0
                        ? rate
                        : arrivals_per_s_ + (rate - arrivals_per_s_) * (1 - std::exp(-seconds));
  if (!config_.enabled || !baseline.learned()) return;
  limit_ = baseline.limit();
  const double normal = baseline.above_limit();
  host_scale_ =
      ChangeScale(normal, std::max(config_.host_shifted, (1 + normal) / 2), config_.threshold);
  // A surge counts at once, a fall slowly: what is in flight then came before it.
  const double accounted = std::max(arrivals_per_s_, rate) * to_seconds(baseline.mean());
  // On its way back at half of what set it off.
  const double factor = saturated_ ? 0.5 : 1;
  saturated_ = static_cast<double>(in_flight) >
               factor * (config_.in_flight_times * accounted + config_.in_flight_more);
  decide(hosts, now);
}

void Overload::decide(Hosts& hosts, TimePoint now) {
  const bool most = 2 * hosts.shifted() > hosts.size();
  const bool bad = most || pool_.shifted() || saturated_;
  if (bad && state_ != State::kOverloaded) {
    state_ = State::kOverloaded;
    since_ = now;
    ++times_;
  } else if (!bad && state_ == State::kOverloaded) {
    state_ = State::kReturning;
    since_ = now;
  } else if (state_ == State::kReturning && now - since_ >= 2 * config_.step) {
    state_ = State::kClear;
    since_ = now;
  }
  hosts.set_probation(state_ != State::kOverloaded);
}

bool Overload::allows_hedge(TimePoint now, Rng& rng) {
  switch (state_) {
    case State::kClear:
      return true;
    case State::kOverloaded:
      return false;
    case State::kReturning:
      return rng.chance(now - since_ < config_.step ? 0.25 : 0.5);
  }
  return true;
}

}  // namespace tailward::hedge
