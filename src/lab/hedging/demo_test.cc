#include "lab/hedging/demo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "lab/checks.h"

namespace tailward::lab {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

ArmResult arm(const std::string& name, Duration latency) {
  ArmResult result;
  result.name = name;
  result.latency.record(latency);
  return result;
}

HedgingResult arms(Duration unhedged, Duration hedged) {
  HedgingResult result;
  result.arms.push_back(arm("none", unhedged));
  result.arms.push_back(arm("fixed", hedged));
  return result;
}

TEST(DemoTest, EndsAsToldOnlyWhenEveryCheckHolds) {
  const report::Check good = check_above("the lock's wait grows (times)", 12, 4);
  const report::Check bad = check_above("hedging alone worsens P50 (times)", 1.2, 1.5);
  EXPECT_THAT(demo_closing({good}), HasSubstr("The P99 dropped both times."));
  const std::string closing = demo_closing({good, bad});
  EXPECT_THAT(closing, Not(HasSubstr("dropped both times")));
  EXPECT_THAT(closing, HasSubstr("hedging alone worsens P50 (times): 1.2, expected > 1.5"));
  EXPECT_THAT(closing, Not(HasSubstr("the lock's wait")));
  EXPECT_THAT(closing, HasSubstr("./run lab list"));
}

TEST(DemoTest, ChecksThatHedgingLoweredTheP99) {
  EXPECT_TRUE(demo_check(arms(480ms, 240ms)).ok);
  EXPECT_FALSE(demo_check(arms(240ms, 480ms)).ok);
  EXPECT_FALSE(demo_check(arms(0ms, 480ms)).ok);
  EXPECT_FALSE(demo_check({}).ok) << "nothing was measured";
}

}  // namespace
}  // namespace tailward::lab
