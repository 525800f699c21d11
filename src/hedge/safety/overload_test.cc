#include "hedge/safety/overload.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace tailward::hedge {
namespace {

using namespace std::chrono_literals;
using State = Overload::State;

constexpr TimePoint kStart{1s};

// First attempts evenly from 0 to 10 ms: median and mean 5 ms, limit 10 ms. A host shifts after
// five long samples in a row (ln 30 each), the pool after 40 (ln 1.5 each).
Baseline healthy() {
  stats::Survival samples;
  for (int i = 1; i <= 2000; ++i) samples.record(Duration{10ms} * i / 2000);
  Baseline baseline{Baseline::Config{}};
  baseline.update(samples, 100ms, true);
  EXPECT_TRUE(baseline.learned());
  return baseline;
}

class OverloadTest : public ::testing::Test {
 protected:
  void add_hosts(int count) {
    for (int i = 0; i < count; ++i) EXPECT_TRUE(hosts_.add(fmt::format("host{}", i)).has_value());
  }
  // Ticks twice, which is when rates are known.
  void begin(int hosts) {
    add_hosts(hosts);
    tick(0, 0ms);
    tick(0);
  }
  void tick(std::int64_t in_flight, Duration later = 100ms, std::uint64_t arrived = 100) {
    now_ += later;
    overload_.tick(hosts_, baseline_, in_flight, arrived, now_);
  }
  void sample(HostIndex host, bool longer, int times) {
    for (int i = 0; i < times; ++i) overload_.sample(hosts_, host, longer, now_);
  }
  // How many of 10,000 hedges are allowed now.
  int allowed() {
    int count = 0;
    for (int i = 0; i < 10'000; ++i) count += overload_.allows_hedge(now_, rng_) ? 1 : 0;
    return count;
  }

  TimePoint now_ = kStart;
  Rng rng_{1};
  Hosts hosts_;
  Baseline baseline_ = healthy();
  Overload overload_{OverloadConfig{}};
};

TEST_F(OverloadTest, UntilTheBaselineIsKnownThereIsNone) {
  baseline_ = Baseline{Baseline::Config{}};
  begin(3);
  EXPECT_EQ(overload_.limit(), kForever);
  for (HostIndex host = 0; host < 3; ++host) sample(host, true, 100);
  tick(1'000'000);
  EXPECT_EQ(overload_.state(), State::kClear);
  EXPECT_EQ(hosts_.shifted(), 0u);
}

TEST_F(OverloadTest, ThereIsNoneWhereItIsDisabled) {
  overload_ = Overload{OverloadConfig{.enabled = false}};
  begin(3);
  for (HostIndex host = 0; host < 3; ++host) sample(host, true, 100);
  tick(1'000'000);
  EXPECT_EQ(overload_.state(), State::kClear);
  EXPECT_EQ(overload_.limit(), kForever);
  EXPECT_NEAR(overload_.arrivals_per_s(), 1000, 1) << "arrivals are counted all the same";
}

TEST_F(OverloadTest, TheLimitIsTheBaselines) {
  begin(1);
  EXPECT_EQ(overload_.limit(), baseline_.limit());
  EXPECT_NEAR(to_ms(overload_.limit()), 10, 0.2);
}

TEST_F(OverloadTest, OneOfThreeHostsThatIsSlowGoesOnProbationAndHedgingGoesOn) {
  begin(3);
  sample(0, true, 4);
  EXPECT_FALSE(hosts_.on_probation(0));
  sample(0, true, 1);
  EXPECT_TRUE(hosts_.on_probation(0));
  EXPECT_EQ(overload_.state(), State::kClear);
  EXPECT_EQ(allowed(), 10'000);
}

TEST_F(OverloadTest, TwoOfThreeAreAnOverloadAtOnceAndNobodyIsOnProbation) {
  begin(3);
  sample(0, true, 5);
  now_ += 7ms;
  sample(1, true, 5);
  EXPECT_EQ(overload_.state(), State::kOverloaded);
  EXPECT_EQ(overload_.since(), now_);
  EXPECT_EQ(overload_.times(), 1u);
  EXPECT_EQ(hosts_.shifted(), 2u);
  EXPECT_FALSE(hosts_.on_probation(0));
  EXPECT_FALSE(hosts_.on_probation(1));
  EXPECT_EQ(allowed(), 0);
}

TEST_F(OverloadTest, HalfOfTheHostsAreNotMost) {
  begin(4);
  sample(0, true, 5);
  sample(1, true, 5);
  EXPECT_EQ(overload_.state(), State::kClear);
  EXPECT_TRUE(hosts_.on_probation(0));
  EXPECT_TRUE(hosts_.on_probation(1));
  sample(2, true, 5);
  EXPECT_EQ(overload_.state(), State::kOverloaded);
}

TEST_F(OverloadTest, TheOnlyHostIsAllOfThem) {
  begin(1);
  sample(0, true, 5);
  EXPECT_EQ(overload_.state(), State::kOverloaded);
  EXPECT_FALSE(hosts_.on_probation(0));
}

TEST_F(OverloadTest, ThePoolIsSlowBeforeAnyOfManyHostsHasEnoughSamples) {
  begin(100);
  for (HostIndex host = 0; host < 39; ++host) sample(host, true, 1);
  EXPECT_EQ(overload_.state(), State::kClear);
  sample(39, true, 1);
  EXPECT_EQ(overload_.state(), State::kOverloaded);
  EXPECT_EQ(hosts_.shifted(), 0u);
}

TEST_F(OverloadTest, OneSlowHostOfTwoDoesNotCountAsThePool) {
  begin(2);
  for (int i = 0; i < 1000; ++i) {
    sample(0, true, 1);
    sample(1, false, 1);
  }
  EXPECT_EQ(overload_.times(), 0u);
  EXPECT_TRUE(hosts_.on_probation(0));
}

// 1,000 a second of 5 ms are 5 in flight; four times as many and 16 more are too many.
TEST_F(OverloadTest, MoreInFlightThanArrivalsAndLatencyAccountForIsAnOverload) {
  begin(3);
  tick(35);
  EXPECT_EQ(overload_.state(), State::kClear);
  tick(38);
  EXPECT_EQ(overload_.state(), State::kOverloaded);
  EXPECT_EQ(allowed(), 0);
}

TEST_F(OverloadTest, TheInFlightMustFallToHalfOfWhatSetItOff) {
  begin(3);
  tick(38);
  tick(20);
  EXPECT_EQ(overload_.state(), State::kOverloaded);
  tick(17);
  EXPECT_EQ(overload_.state(), State::kReturning);
  tick(35);
  EXPECT_EQ(overload_.state(), State::kReturning) << "and what sets it off is as before";
}

TEST_F(OverloadTest, HedgesComeBackInSteps) {
  begin(3);
  tick(38);
  tick(0);
  ASSERT_EQ(overload_.state(), State::kReturning);
  const TimePoint returning = now_;
  EXPECT_EQ(overload_.since(), returning);
  now_ = returning + 500ms - 1ns;
  EXPECT_NEAR(allowed(), 2500, 200);
  now_ = returning + 500ms;
  EXPECT_NEAR(allowed(), 5000, 200);
  now_ = returning + 900ms;
  tick(0, 100ms - 1ns);
  EXPECT_EQ(overload_.state(), State::kReturning);
  tick(0, 1ns, 0);
  EXPECT_EQ(overload_.state(), State::kClear);
  EXPECT_EQ(overload_.since(), returning + 1s);
  EXPECT_EQ(allowed(), 10'000);
}

TEST_F(OverloadTest, ARelapseOnTheWayBackIsAnotherOne) {
  begin(3);
  tick(38);
  tick(0);
  tick(38);
  EXPECT_EQ(overload_.state(), State::kOverloaded);
  EXPECT_EQ(overload_.times(), 2u);
  tick(0);
  EXPECT_EQ(overload_.since(), now_) << "the steps begin anew";
}

TEST_F(OverloadTest, ItIsOverWhenNothingHoldsAnyMore) {
  begin(3);
  for (HostIndex host = 0; host < 3; ++host) sample(host, true, 5);
  ASSERT_EQ(overload_.state(), State::kOverloaded);
  sample(0, false, 100);
  EXPECT_EQ(overload_.state(), State::kOverloaded) << "two of three are still slow";
  sample(1, false, 100);
  EXPECT_EQ(overload_.state(), State::kReturning);
  EXPECT_TRUE(hosts_.on_probation(2)) << "now it is the only one";
}

TEST_F(OverloadTest, ArrivalsAreThoseOfAboutTheLastSecond) {
  begin(3);
  for (int i = 0; i < 10; ++i) tick(0, 100ms, 0);
  EXPECT_NEAR(overload_.arrivals_per_s(), 1000 / 2.718, 1);
  for (int i = 0; i < 60; ++i) tick(0, 100ms, 20);
  EXPECT_NEAR(overload_.arrivals_per_s(), 200, 1);
}

TEST_F(OverloadTest, AnEmptyPoolHasNone) {
  begin(0);
  tick(0);
  EXPECT_EQ(overload_.state(), State::kClear);
}

TEST_F(OverloadTest, NamesItsStates) {
  EXPECT_EQ(to_string(State::kClear), "clear");
  EXPECT_EQ(to_string(State::kOverloaded), "brownout");
  EXPECT_EQ(to_string(State::kReturning), "returning");
}

}  // namespace
}  // namespace tailward::hedge
