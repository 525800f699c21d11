// What hedging does to everybody: hedging is switched off for short slices of time, at random, and
// first attempts are compared between the slices with and without it. A control group cannot see
// this, because both groups share the servers.
//
// The design: pairs of neighbouring slices, one with hedging and one without, in random order. The
// slice is the unit, not the request: within a slice all requests share the same queue. From each
// slice the first part is left out, until what the slice before has left behind is gone (Bojinov,
// Simchi-Levi, Zhao, "Design and analysis of switchback experiments", Management Science 2023).
// The effect is the mean of the pairs' differences, its interval Student's over the pairs.
//
// At first every pair follows on the last: a trial of hedging, in which half of the time is
// without, until harm is shown or excluded. After that only one pair in `rest` slices goes on, so
// that hedging is off for about 1 ÷ (rest + 2) of the time.
//
// Thread safety: one loop. Time and randomness are given. Memory: four estimators (37 KiB) and the
// last pairs.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/rng.h"
#include "base/time.h"
#include "stats/survival.h"

namespace tailward::hedge {

struct SwitchbackConfig {
  bool enabled = true;
  // The shortest slice; longer where six medians are, or the time in which so many requests come.
  Duration slice = std::chrono::milliseconds(500);
  double requests = 40;
  double washed_out = 0.5;  // of each slice, at its beginning
  std::uint32_t trial_pairs_min = 8;
  std::uint32_t trial_pairs_max = 24;
  std::uint32_t rest = 48;  // slices between pairs after the trial
  double samples_min = 15;  // of a slice; a pair with fewer does not count
};

// With hedging − without, of first attempts.
struct SwitchbackEffect {
  std::uint32_t pairs = 0;
  Duration p50{};  // the effect on the median
  Duration p50_low{};
  Duration p50_high{};
  Duration p99{};
  Duration p99_low{};
  Duration p99_high{};
  Duration p50_without{};  // the mean of the slices' medians without hedging
  double extra_load = 0;   // hedges per request in the slices with hedging
  bool known = false;      // two pairs at least
  bool p99_known = false;  // the same; losers often hide a slice's P99
};

// Hedging does harm: by at least 2 % of the median and at least half of the share of load that was
// added, as happens only where something is contended; and beyond doubt at the effect's confidence
// by half of that. Five pairs at least. kHarmConfidence allows for looking after every pair.
inline constexpr double kHarmConfidence = 0.995;
bool harms(const SwitchbackEffect& effect);
// It does not: all of the interval lies below that.
bool harmless(const SwitchbackEffect& effect);

class Switchback {
 public:
  explicit Switchback(const SwitchbackConfig& config) : config_(config) {}

  // Goes on to the next slice when it is time. The slices' length follows from the median of first
  // attempts and from the rate of requests.
  void tick(TimePoint now, Duration median, double requests_per_s, Rng& rng);
  // Gives up the pair under way, and those not yet measured: the service is not what it was.
  void pause();
  // Begins a trial anew, with nothing known.
  void restart();

  // Whether requests that begin now may be hedged.
  [[nodiscard]] bool hedging() const { return !in_pair_ || hedging_; }
  // How much of the time is without hedging, once the trial is over.
  [[nodiscard]] double share_off() const { return config_.enabled ? 1.0 / (config_.rest + 2) : 0; }
  // The slice that a request which begins now is counted in; 0: in none.
  [[nodiscard]] std::uint32_t slice(TimePoint now) const {
    return in_pair_ && now >= counts_from_ ? slice_ : 0;
  }
  // How a first attempt ended that began in that slice.
  void record(std::uint32_t slice, Duration latency, bool censored, std::uint32_t hedges);

  [[nodiscard]] SwitchbackEffect effect(double confidence = 0.95) const;
  // Pairs that were measured, ever: changes when there is something new to look at.
  [[nodiscard]] std::uint64_t measured() const { return measured_; }
  [[nodiscard]] bool on_trial() const { return trial_; }

 private:
  static constexpr std::size_t kBuffers = 4;
  static constexpr std::size_t kPairs = 64;
  struct Slice {
    stats::Survival first_attempts;
    std::uint64_t requests = 0;
    std::uint64_t hedges = 0;
    bool hedging = false;
  };
  struct Pair {
    double p50 = 0;  // differences, ns
    double p99 = 0;
    double p50_without = 0;
    double requests = 0;  // of the slice with hedging
    double hedges = 0;
  };
  void begin_slice(TimePoint now, bool hedging);
  [[nodiscard]] bool trial_goes_on() const;
  void measure(std::uint32_t second_slice);
  [[nodiscard]] Slice& buffer(std::uint32_t slice) { return slices_[slice % kBuffers]; }

  SwitchbackConfig config_;
  std::uint32_t slice_ = 0;  // the running number; pairs are (odd, even)
  bool in_pair_ = false;
  bool hedging_ = true;
  TimePoint ends_{};
  TimePoint counts_from_{};
  bool trial_ = true;
  std::uint32_t pairs_begun_ = 0;
  Duration length_{};  // of a slice
  std::uint64_t measured_ = 0;
  std::uint32_t last_measured_ = 0;  // slice
  std::array<Slice, kBuffers> slices_;
  std::array<Pair, kPairs> pairs_{};
  std::size_t pairs_kept_ = 0;
};

}  // namespace tailward::hedge
