#include "hedge/proof/switchback.h"

#include <gtest/gtest.h>

#include <functional>
#include <iostream>

#include "stats/curve.h"
#include "stats/interval.h"

namespace tailward::hedge {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kStart{1s};
constexpr std::uint64_t kSeed = 20250306;

Duration curve_median(Duration latency) {
  stats::Survival samples;
  samples.record(latency);
  return *stats::Curve(samples).quantile(0.5);
}

// Slices of half a second, as with many fast requests.
class SwitchbackTest : public ::testing::Test {
 protected:
  using Latency = std::function<Duration(bool hedging, int slice)>;

  void tick(double rate = 1000, Duration median = 5ms) {
    switchback_.tick(now_, median, rate, rng_);
  }
  [[nodiscard]] std::uint32_t counted() const { return switchback_.slice(now_ + 499ms); }
  // From the start of a slice to the start of the next; `requests` begin in its second half.
  void run_slice(const Latency& latency, int requests = 20, std::uint32_t hedges = 0) {
    const std::uint32_t slice = counted();
    for (int i = 0; i < requests; ++i) {
      switchback_.record(slice, latency(switchback_.hedging(), slices_), false,
                         switchback_.hedging() ? hedges : 0);
    }
    ++slices_;
    now_ += 500ms;
    tick();
  }
  void run_pairs(int pairs, const Latency& latency, int requests = 20, std::uint32_t hedges = 0) {
    for (int i = 0; i < 2 * pairs; ++i) run_slice(latency, requests, hedges);
  }
  // How long hedging stays on from now on.
  Duration rest() {
    const TimePoint from = now_;
    while (counted() == 0 && now_ < from + 1h) {
      EXPECT_TRUE(switchback_.hedging());
      now_ += 1ms;
      tick();
    }
    return now_ - from;
  }

  TimePoint now_ = kStart;
  Rng rng_{kSeed};
  int slices_ = 0;
  Switchback switchback_{SwitchbackConfig{}};
};

Duration same(bool /*hedging*/, int /*slice*/) { return 10ms; }

TEST_F(SwitchbackTest, BeforeTheFirstTickHedgingIsOnAndNothingIsCounted) {
  EXPECT_TRUE(switchback_.hedging());
  EXPECT_EQ(counted(), 0u);
  EXPECT_TRUE(switchback_.on_trial());
  EXPECT_FALSE(switchback_.effect().known);
}

TEST_F(SwitchbackTest, WhereItIsDisabledHedgingIsAlwaysOn) {
  switchback_ = Switchback{SwitchbackConfig{.enabled = false}};
  for (int i = 0; i < 1000; ++i, now_ += 100ms) {
    tick();
    EXPECT_TRUE(switchback_.hedging());
    EXPECT_EQ(counted(), 0u);
  }
}

TEST_F(SwitchbackTest, TheFirstHalfOfASliceDoesNotCount) {
  tick();
  EXPECT_EQ(switchback_.slice(kStart), 0u);
  EXPECT_EQ(switchback_.slice(kStart + 250ms - 1ns), 0u);
  EXPECT_EQ(switchback_.slice(kStart + 250ms), 1u);
  now_ = kStart + 500ms - 1ns;
  tick();
  EXPECT_EQ(switchback_.slice(now_), 1u);
  now_ = kStart + 500ms;
  tick();
  EXPECT_EQ(switchback_.slice(now_), 0u);
  EXPECT_EQ(switchback_.slice(kStart + 750ms - 1ns), 0u);
  EXPECT_EQ(switchback_.slice(kStart + 750ms), 2u);
}

TEST_F(SwitchbackTest, EveryPairHasBothKindsInRandomOrder) {
  std::cout << "seed " << kSeed << '\n';
  switchback_ = Switchback{SwitchbackConfig{.trial_pairs_min = 1000}};
  tick();
  int first_with = 0;
  for (int pair = 0; pair < 400; ++pair) {
    const bool first = switchback_.hedging();
    run_slice(same, 0);
    EXPECT_NE(switchback_.hedging(), first);
    run_slice(same, 0);
    first_with += first ? 1 : 0;
  }
  EXPECT_NEAR(first_with, 200, 40);  // four standard errors
}

TEST_F(SwitchbackTest, APairIsMeasuredOneSliceAfterItsEnd) {
  tick();
  run_slice(same);
  run_slice(same);
  EXPECT_EQ(switchback_.measured(), 0u) << "its last requests may still be under way";
  run_slice(same);
  EXPECT_EQ(switchback_.measured(), 1u);
  run_slice(same);
  EXPECT_EQ(switchback_.measured(), 1u);
  run_slice(same);
  EXPECT_EQ(switchback_.measured(), 2u);
}

TEST_F(SwitchbackTest, NoPairIsMeasuredTwice) {
  tick();
  run_pairs(12, same);
  ASSERT_FALSE(switchback_.on_trial());
  std::uint64_t measured = switchback_.measured();
  for (int round = 0; round < 5; ++round) {
    (void)rest();
    EXPECT_LE(switchback_.measured(), measured + 1);
    measured = switchback_.measured();
    run_pairs(1, same);
    EXPECT_EQ(switchback_.measured(), measured) << "the next one is measured after its rest";
  }
}

TEST_F(SwitchbackTest, ALateAnswerCountsInItsOwnSliceUntilThatIsMeasured) {
  tick();
  const std::uint32_t first = counted();
  const bool first_hedging = switchback_.hedging();
  run_slice(same, 0);
  run_slice([](bool, int) { return 20ms; });
  for (int i = 0; i < 20; ++i) switchback_.record(first, 10ms, false, 0);
  run_slice(same);
  run_pairs(1, same);
  ASSERT_EQ(switchback_.measured(), 2u);
  const Duration difference = curve_median(20ms) - curve_median(10ms);
  const Duration expected = (first_hedging ? -difference : difference) / 2;  // mean with the 2nd: 0
  EXPECT_NEAR(to_ms(switchback_.effect().p50), to_ms(expected), 1e-5);
}

TEST_F(SwitchbackTest, AnAnswerThatIsTooLateDoesNotGetIntoAnothersSlice) {
  tick();
  run_pairs(2, same);
  const std::uint32_t now = counted();
  ASSERT_EQ(now, 5u);
  // Slice 1 had the place that slice 5 has now.
  for (int i = 0; i < 1000; ++i) switchback_.record(1, 1s, false, 1);
  for (int i = 0; i < 1000; ++i) switchback_.record(0, 1s, false, 1);
  run_pairs(3, same);
  EXPECT_EQ(switchback_.effect().p50_high, 0ms);
  EXPECT_EQ(switchback_.effect().extra_load, 0);
}

TEST_F(SwitchbackTest, TheEffectIsTheMeanOfThePairsDifferences) {
  const Duration added[] = {1ms, 4ms, 2ms, 6ms};
  tick();
  run_pairs(4, [&](bool hedging, int slice) { return 20ms + (hedging ? added[slice / 2] : 0ms); });
  run_slice(same);
  ASSERT_EQ(switchback_.measured(), 4u);
  std::vector<double> differences;
  for (const Duration more : added) {
    differences.push_back(to_ms(curve_median(20ms + more) - curve_median(20ms)));
  }
  for (const double confidence : {0.95, kHarmConfidence}) {
    const SwitchbackEffect effect = switchback_.effect(confidence);
    const stats::MeanInterval expected = stats::mean_interval(differences, confidence);
    EXPECT_TRUE(effect.known);
    EXPECT_EQ(effect.pairs, 4u);
    EXPECT_NEAR(to_ms(effect.p50), 3.25, 0.2) << "1, 4, 2 and 6 ms";
    EXPECT_NEAR(to_ms(effect.p50), expected.mean, 1e-5);
    EXPECT_NEAR(to_ms(effect.p50_low), expected.low, 1e-5);
    EXPECT_NEAR(to_ms(effect.p50_high), expected.high, 1e-5);
    EXPECT_EQ(effect.p50_without, curve_median(20ms));
  }
}

TEST_F(SwitchbackTest, TheTailsEffectIsMeasuredBesideTheMediansOne) {
  tick();
  int request = 0;
  run_pairs(
      3,
      [&](bool hedging, int) {
        const bool slow = request++ % 20 == 0;  // 5 %
        return slow ? (hedging ? 300ms : 200ms) : 10ms;
      },
      40);
  run_slice(same);
  const SwitchbackEffect effect = switchback_.effect();
  EXPECT_EQ(effect.p50, 0ms);
  EXPECT_NEAR(to_ms(effect.p99), 100, 4);
}

TEST_F(SwitchbackTest, KnowsTheLoadThatWasAdded) {
  tick();
  for (int pair = 0; pair < 3; ++pair) {
    for (int slice = 0; slice < 2; ++slice) {
      // One request in four is hedged.
      for (int i = 0; i < 20; ++i) {
        switchback_.record(counted(), 10ms, false, switchback_.hedging() && i % 4 == 0 ? 1 : 0);
      }
      run_slice(same, 0);
    }
  }
  run_slice(same);
  ASSERT_EQ(switchback_.measured(), 3u);
  EXPECT_DOUBLE_EQ(switchback_.effect().extra_load, 0.25);
}

TEST_F(SwitchbackTest, APairWithTooFewRequestsInOneSliceDoesNotCount) {
  tick();
  run_slice(same, 14);
  run_slice(same, 1000);
  run_slice(same, 15);
  EXPECT_EQ(switchback_.measured(), 0u);
  run_slice(same, 15);
  run_slice(same);
  EXPECT_EQ(switchback_.measured(), 1u);
}

TEST_F(SwitchbackTest, APairWhoseMedianTheLosersHideDoesNotCount) {
  tick();
  for (int slice = 0; slice < 2; ++slice) {
    for (int i = 0; i < 20; ++i) switchback_.record(counted(), 10ms, false, 0);
    for (int i = 0; i < 21; ++i) switchback_.record(counted(), 20ms, true, 0);
    run_slice(same, 0);
  }
  run_slice(same);
  EXPECT_EQ(switchback_.measured(), 0u);
}

TEST_F(SwitchbackTest, TheTrialIsOverAsSoonAsHarmIsExcluded) {
  tick();
  run_pairs(8, same);
  EXPECT_TRUE(switchback_.on_trial()) << "the eighth pair is not measured yet";
  run_pairs(1, same);
  EXPECT_FALSE(switchback_.on_trial());
  // 48 slices and up to four more.
  const Duration first = rest();
  EXPECT_GE(first, 24s);
  EXPECT_LE(first, 26s);
  run_pairs(1, same);
  EXPECT_NE(rest(), first) << "not quite regular";
}

TEST_F(SwitchbackTest, TheTrialGoesOnWhileNothingIsCertainButNotForEver) {
  tick();
  // As often far better as far worse.
  const Latency uncertain = [](bool hedging, int slice) {
    return hedging ? (slice / 2 % 2 == 0 ? 8ms : 13ms) : 10ms;
  };
  run_pairs(24, uncertain);
  EXPECT_TRUE(switchback_.on_trial());
  run_pairs(1, uncertain);
  EXPECT_FALSE(switchback_.on_trial());
}

TEST_F(SwitchbackTest, APauseGivesUpThePairUnderWayAndWhatIsNotYetMeasured) {
  tick();
  run_pairs(1, same);
  run_slice([](bool, int) { return 500ms; });
  ASSERT_EQ(switchback_.measured(), 1u);
  switchback_.pause();
  EXPECT_TRUE(switchback_.hedging());
  EXPECT_EQ(counted(), 0u);
  now_ += 10s;
  tick();
  EXPECT_EQ(counted() % 2, 1u) << "a pair begins with its first slice";
  run_pairs(2, same);
  run_slice(same);
  EXPECT_EQ(switchback_.measured(), 3u);
  EXPECT_EQ(switchback_.effect().p50_high, 0ms) << "nothing of the slow slice is left";
}

TEST_F(SwitchbackTest, APauseWhileItRestsGivesUpThePairThatIsNotMeasured) {
  tick();
  run_pairs(9, same);
  ASSERT_FALSE(switchback_.on_trial());
  ASSERT_EQ(switchback_.measured(), 8u);
  switchback_.pause();
  switchback_.pause();
  EXPECT_LE(rest(), 26s);
  EXPECT_EQ(switchback_.measured(), 8u);
  run_pairs(1, same);
  (void)rest();
  EXPECT_EQ(switchback_.measured(), 9u);
}

TEST_F(SwitchbackTest, ARestartKnowsNothingAndBeginsATrial) {
  tick();
  run_pairs(12, same);
  ASSERT_FALSE(switchback_.on_trial());
  switchback_.restart();
  EXPECT_TRUE(switchback_.on_trial());
  EXPECT_EQ(switchback_.measured(), 0u);
  EXPECT_FALSE(switchback_.effect().known);
  tick();
  EXPECT_NE(counted(), 0u);
}

// The length of the first slice of a pair.
Duration slice_length(Duration median, double rate) {
  Switchback switchback{SwitchbackConfig{}};
  Rng rng(kSeed);
  switchback.tick(kStart, median, rate, rng);
  const bool first = switchback.hedging();
  TimePoint now = kStart;
  while (switchback.hedging() == first) {
    now += 10ms;
    switchback.tick(now, median, rate, rng);
  }
  return now - kStart;
}

TEST_F(SwitchbackTest, SlicesAreAsLongAsFortyRequestsOrSixMediansTake) {
  EXPECT_EQ(slice_length(5ms, 1000), 500ms);
  EXPECT_EQ(slice_length(5ms, 10), 4s);
  EXPECT_EQ(slice_length(2s, 1000), 12s);
  EXPECT_EQ(slice_length(2s, 2), 20s);
  EXPECT_EQ(slice_length(5ms, 0), 60s) << "and no longer than a minute";
}

SwitchbackEffect effect_of(std::uint32_t pairs, Duration p50, Duration half, double load) {
  return {.pairs = pairs,
          .p50 = p50,
          .p50_low = p50 - half,
          .p50_high = p50 + half,
          .p50_without = 100ms,
          .extra_load = load,
          .known = true};
}

TEST(SwitchbackEffectTest, HarmIsAShareOfTheMedianAndOfTheLoad) {
  EXPECT_TRUE(harms(effect_of(5, 2ms, 1ms, 0)));
  EXPECT_FALSE(harms(effect_of(5, 1900us, 0ms, 0))) << "a trifle";
  EXPECT_FALSE(harms(effect_of(5, 2ms, 1100us, 0))) << "not beyond doubt";
  EXPECT_FALSE(harms(effect_of(4, 20ms, 1ms, 0))) << "too few pairs";
  // A tenth more load: five per cent are its due.
  EXPECT_FALSE(harms(effect_of(5, 4900us, 1ms, 0.1)));
  EXPECT_TRUE(harms(effect_of(5, 5ms, 2500us, 0.1)));
  EXPECT_FALSE(harms(effect_of(5, -20ms, 1ms, 0)));
}

TEST(SwitchbackEffectTest, HarmlessIsWhatLiesBelowThatAltogether) {
  EXPECT_TRUE(harmless(effect_of(5, 1ms, 900us, 0)));
  EXPECT_FALSE(harmless(effect_of(5, 1ms, 1ms, 0)));
  EXPECT_TRUE(harmless(effect_of(5, 1ms, 1ms, 0.1)));
  EXPECT_TRUE(harmless(effect_of(5, -20ms, 10ms, 0)));
  EXPECT_FALSE(harmless(effect_of(4, 0ms, 0ms, 0))) << "too few pairs";
}

}  // namespace
}  // namespace tailward::hedge
