#include "hedge/safety/auto_off.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace tailward::hedge {
namespace {

using namespace std::chrono_literals;

// First attempts take 5 ms without hedging, and `with` ms while it is on.
class AutoOffTest : public ::testing::Test {
 protected:
  // One slice of the switchback, and then the look at its pairs.
  void run_slice(Duration with) {
    const std::uint32_t slice = switchback_.slice(now_ + 499ms);
    for (int i = 0; i < 20; ++i) {
      const bool hedging = switchback_.hedging();
      switchback_.record(slice, hedging ? with : 5ms, false, hedging ? 1 : 0);
    }
    now_ += 500ms;
    switchback_.tick(now_, 5ms, 1000, rng_);
    auto_off_.tick(switchback_, now_);
  }
  // How many slices it takes until hedging is off; 1,000: it stays on.
  int slices_until_off(Duration with) {
    switchback_.tick(now_, 5ms, 1000, rng_);
    for (int slice = 0; slice < 1000; ++slice) {
      if (auto_off_.off()) return slice;
      run_slice(with);
    }
    return 1000;
  }
  // From the instant at which hedging went off.
  Duration time_until_retrial() {
    const TimePoint since = *auto_off_.since();
    while (auto_off_.off()) auto_off_.tick(switchback_, now_ += 1s);
    return now_ - since;
  }

  TimePoint now_{1s};
  Rng rng_{7};
  Switchback switchback_{SwitchbackConfig{}};
  AutoOff auto_off_{true, 5min, 12min};
};

TEST_F(AutoOffTest, StaysOnWithoutHarm) { EXPECT_EQ(slices_until_off(5ms), 1000); }

TEST_F(AutoOffTest, GoesOffWhenHarmIsShown) {
  ASSERT_LT(slices_until_off(10ms), 1000);
  EXPECT_EQ(*auto_off_.since(), now_);
}

TEST_F(AutoOffTest, EveryRetrialComesAfterTwiceTheTimeUpToTheMost) {
  for (const Duration wait : {Duration{5min}, Duration{10min}, Duration{12min}, Duration{12min}}) {
    ASSERT_LT(slices_until_off(10ms), 1000);
    const Duration waited = time_until_retrial();
    EXPECT_GE(waited, wait);
    EXPECT_LT(waited, wait + 1s);
  }
}

TEST_F(AutoOffTest, AResetBringsHedgingBackAndTheFirstWait) {
  ASSERT_LT(slices_until_off(10ms), 1000);
  (void)time_until_retrial();
  ASSERT_LT(slices_until_off(10ms), 1000);
  auto_off_.reset();
  EXPECT_FALSE(auto_off_.off());
  switchback_.restart();
  ASSERT_LT(slices_until_off(10ms), 1000);
  const Duration waited = time_until_retrial();
  EXPECT_GE(waited, 5min);
  EXPECT_LT(waited, 5min + 1s);
}

TEST_F(AutoOffTest, NeverGoesOffWhenItIsNotAllowedTo) {
  auto_off_ = AutoOff{false, 5min, 12min};
  EXPECT_EQ(slices_until_off(10ms), 1000);
}

}  // namespace
}  // namespace tailward::hedge
