#include "hedge/proof/switchback.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "stats/curve.h"
#include "stats/interval.h"

namespace tailward::hedge {
namespace {

Duration from_ns(double ns) { return std::isfinite(ns) ? Duration{std::llround(ns)} : Duration{}; }

// How much slower counts as harm: a share of the median.
double limit(const SwitchbackEffect& effect) {
  constexpr double kNoTrifle = 0.02;
  constexpr double kOfLoad = 0.5;
  return std::max(kNoTrifle, kOfLoad * effect.extra_load);
}

double share_of_median(const SwitchbackEffect& effect, Duration p50) {
  return effect.p50_without <= Duration{}
             ? 0
             : static_cast<double>(p50.count()) / static_cast<double>(effect.p50_without.count());
}

}  // namespace

bool harms(const SwitchbackEffect& effect) {
  constexpr std::uint32_t kPairsMin = 5;
  return effect.pairs >= kPairsMin && share_of_median(effect, effect.p50) >= limit(effect) &&
         share_of_median(effect, effect.p50_low) >= limit(effect) / 2;
}

bool harmless(const SwitchbackEffect& effect) {
  constexpr std::uint32_t kPairsMin = 5;
  return effect.pairs >= kPairsMin && share_of_median(effect, effect.p50_high) < limit(effect);
}

void Switchback::pause() {
  if (slice_ % 2 == 1) ++slice_;
  last_measured_ = slice_;
  // A rest goes on: what flickers must not make pairs more frequent.
  if (in_pair_) ends_ = TimePoint{};
  in_pair_ = false;
}

void Switchback::restart() {
  // The numbers go on, so that what has begun is not counted in a slice to come.
  const std::uint32_t slice = slice_ + slice_ % 2 + kBuffers;
  *this = Switchback(config_);
  slice_ = slice;
  last_measured_ = slice;
}

void Switchback::begin_slice(TimePoint now, bool hedging) {
  ++slice_;
  Slice& slice = buffer(slice_);
  slice.first_attempts.clear();
  slice.requests = 0;
  slice.hedges = 0;
  slice.hedging = hedging;
  hedging_ = hedging;
  ends_ = now + length_;
  counts_from_ = now + from_ns(static_cast<double>(length_.count()) * config_.washed_out);
}

bool Switchback::trial_goes_on() const {
  if (pairs_begun_ >= 2 * std::max(config_.trial_pairs_min, config_.trial_pairs_max))
    return false;  // too few requests to tell
  if (pairs_kept_ < config_.trial_pairs_min) return true;
  return pairs_kept_ < config_.trial_pairs_max && !harmless(effect());
}

void Switchback::tick(TimePoint now, Duration median, double requests_per_s, Rng& rng) {
  if (!config_.enabled || now < ends_) return;
  const bool second_next = in_pair_ && slice_ % 2 == 1;
  if (second_next) {
    begin_slice(now, !hedging_);
    // What began in the pair before has ended by now, or lasts too long to matter for a median.
    if (slice_ > 2) measure(slice_ - 2);
    return;
  }
  constexpr double kLongest = 60;
  constexpr int kMedians = 6;
  const double for_requests = config_.requests / std::max(requests_per_s, 1e-3);
  length_ =
      std::max({config_.slice, kMedians * median, from_ns(std::min(for_requests, kLongest) * 1e9)});
  trial_ = trial_ && trial_goes_on();
  if (in_pair_ && !trial_) {
    in_pair_ = false;
    // Not quite regular, so that nothing periodic keeps in step with it.
    ends_ =
        now + from_ns(static_cast<double>(length_.count()) * (config_.rest + rng.uniform(0, 4)));
    return;
  }
  if (!in_pair_ && slice_ >= 2) measure(slice_);
  in_pair_ = true;
  ++pairs_begun_;
  begin_slice(now, rng.chance(0.5));
}

void Switchback::record(std::uint32_t slice, Duration latency, bool censored,
                        std::uint32_t hedges) {
  // Slices older than the last kBuffers have been measured.
  if (slice == 0 || slice + kBuffers <= slice_) return;
  Slice& into = buffer(slice);
  censored ? into.first_attempts.record_censored(latency) : into.first_attempts.record(latency);
  ++into.requests;
  into.hedges += hedges;
}

void Switchback::measure(std::uint32_t second_slice) {
  if (second_slice <= last_measured_) return;
  last_measured_ = second_slice;
  const Slice& second = buffer(second_slice);
  const Slice& first = buffer(second_slice - 1);
  const Slice& with = first.hedging ? first : second;
  const Slice& without = first.hedging ? second : first;
  if (std::min(with.first_attempts.finished_weight(), without.first_attempts.finished_weight()) <
      config_.samples_min) {
    return;
  }
  // NaN where the losers hide it.
  const auto quantile = [](const Slice& slice, double q) {
    const std::optional<Duration> value = stats::Curve(slice.first_attempts).quantile(q);
    return value ? static_cast<double>(value->count()) : std::nan("");
  };
  const double p50 = quantile(with, 0.5) - quantile(without, 0.5);
  if (std::isnan(p50)) return;
  Pair& pair = pairs_[measured_ % kPairs];
  pair.p50 = p50;
  pair.p99 = quantile(with, 0.99) - quantile(without, 0.99);
  pair.p50_without = quantile(without, 0.5);
  pair.requests = static_cast<double>(with.requests);
  pair.hedges = static_cast<double>(with.hedges);
  ++measured_;
  pairs_kept_ = std::min(pairs_kept_ + 1, kPairs);
}

SwitchbackEffect Switchback::effect(double confidence) const {
  SwitchbackEffect effect;
  effect.pairs = static_cast<std::uint32_t>(pairs_kept_);
  if (pairs_kept_ < 2) return effect;
  effect.known = true;
  std::array<double, kPairs> values;
  const auto interval = [&](double Pair::*what) {
    std::size_t known = 0;
    for (std::size_t i = 0; i < pairs_kept_; ++i) {
      if (!std::isnan(pairs_[i].*what)) values[known++] = pairs_[i].*what;
    }
    return stats::mean_interval(std::span(values.data(), known), confidence);
  };
  const stats::MeanInterval p50 = interval(&Pair::p50);
  const stats::MeanInterval p99 = interval(&Pair::p99);
  effect.p50 = from_ns(p50.mean);
  effect.p50_low = from_ns(p50.low);
  effect.p50_high = from_ns(p50.high);
  effect.p99_known = std::isfinite(p99.low);
  effect.p99 = from_ns(p99.mean);
  effect.p99_low = from_ns(p99.low);
  effect.p99_high = from_ns(p99.high);
  effect.p50_without = from_ns(interval(&Pair::p50_without).mean);
  const double requests = interval(&Pair::requests).mean;
  if (requests > 0) effect.extra_load = interval(&Pair::hedges).mean / requests;
  return effect;
}

}  // namespace tailward::hedge
