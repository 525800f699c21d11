#include "sim/fanout.h"

#include <gtest/gtest.h>

namespace tailward::sim {
namespace {

using namespace std::chrono_literals;

TEST(FanoutTest, TheSlowShareGrowsWithTheFanOutAsTheTheorySays) {
  for (const std::uint32_t n : {1u, 10u, 50u, 100u}) {
    const FanoutResult result = simulate_fanout(n, 2000, 1);
    EXPECT_EQ(result.samples, 2000u);
    EXPECT_EQ(result.latency.count(), 2000u);
    EXPECT_LE(result.interval.low, result.theory) << "n " << n << ", seed 1";
    EXPECT_GE(result.interval.high, result.theory) << "n " << n << ", seed 1";
  }
  EXPECT_NEAR(simulate_fanout(100, 200, 1).theory, 0.634, 0.0005);
}

TEST(FanoutTest, AThousandLegsAreAlwaysSlow) {
  const FanoutResult result = simulate_fanout(1000, 200, 1);
  EXPECT_EQ(result.slow, 200u);
  EXPECT_GE(result.interval.high, result.theory);
  EXPECT_GE(result.latency.quantile(0.5), 1800ms) << "the slowest of about ten slow ones";
}

TEST(FanoutTest, TenThousandLegsGoThroughTheEventQueue) {
  const FanoutResult result = simulate_fanout(10'000, 20, 1);
  EXPECT_EQ(result.slow, 20u);
  EXPECT_GE(result.latency.quantile(0.5), 1950ms);
}

}  // namespace
}  // namespace tailward::sim
