#include "hedge/policy.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace tailward::hedge {
namespace {

using namespace std::chrono_literals;

TEST(PolicyTest, ReadsItsTextForms) {
  const auto off = parse_policy("off");
  ASSERT_TRUE(off.has_value());
  EXPECT_EQ(off->kind, Policy::Kind::kOff);

  const auto fixed = parse_policy("fixed:50ms");
  ASSERT_TRUE(fixed.has_value());
  EXPECT_EQ(fixed->kind, Policy::Kind::kFixed);
  EXPECT_EQ(fixed->delay, 50ms);
  EXPECT_EQ(fixed->copies, 1);

  const auto quantile = parse_policy("quantile:0.95:2");
  ASSERT_TRUE(quantile.has_value());
  EXPECT_EQ(quantile->kind, Policy::Kind::kQuantile);
  EXPECT_DOUBLE_EQ(quantile->quantile, 0.95);
  EXPECT_EQ(quantile->copies, 2);
  EXPECT_DOUBLE_EQ(parse_policy("quantile:95%")->quantile, 0.95);
}

TEST(PolicyTest, WritesWhatItReads) {
  for (const char* text : {"off", "fixed:50ms", "fixed:0.5ms", "fixed:1500ms:4", "quantile:0.95",
                           "quantile:0.999:2"}) {
    const auto policy = parse_policy(text);
    ASSERT_TRUE(policy.has_value()) << text;
    EXPECT_EQ(to_string(*policy), text);
  }
}

TEST(PolicyTest, RefusesTheRestWithTheFormsAsHint) {
  for (const char* text : {"",
                           "on",
                           "OFF",
                           "off:1",
                           "fixed",
                           "fixed:",
                           "fixed:50",
                           "fixed:-5ms",
                           "fixed:50ms:",
                           "fixed:50ms:0",
                           "fixed:50ms:5",
                           "fixed:50ms:x",
                           "fixed:50ms:1:1",
                           "fixed:50ms:-1",
                           "quantile",
                           "quantile:",
                           "quantile:0",
                           "quantile:1",
                           "quantile:1.5",
                           "quantile:-0.1",
                           "quantile:nan",
                           "quantile:0.9:99999999999999999999",
                           " off"}) {
    const auto policy = parse_policy(text);
    ASSERT_FALSE(policy.has_value()) << text;
    EXPECT_EQ(policy.error().kind, ErrorKind::kInvalid) << text;
    EXPECT_NE(policy.error().hint.find("fixed:50ms"), std::string::npos) << text;
  }
}

Plan plan_number(int n) {
  Plan plan;
  plan.stages = 1 + n % kHedgesMax;
  plan.fresh_median = Duration{n};
  for (Stage& stage : plan.stage) stage = {Duration{n}, n / 2.0};
  return plan;
}

TEST(PlanBoardTest, AtFirstSaysNotToHedge) {
  const PlanBoard board;
  EXPECT_EQ(board.read().stages, 0);
}

TEST(PlanBoardTest, GivesBackWhatWasPublishedLast) {
  PlanBoard board;
  board.publish(plan_number(3));
  board.publish(plan_number(7));
  const Plan plan = board.read();
  EXPECT_EQ(plan.stages, 4);
  EXPECT_EQ(plan.fresh_median, 7ns);
  for (const Stage& stage : plan.stage) {
    EXPECT_EQ(stage.delay, 7ns);
    EXPECT_DOUBLE_EQ(stage.probability, 3.5);
  }
}

TEST(PlanBoardTest, AReaderNeverSeesHalfAPlan) {
  PlanBoard board;
  board.publish(plan_number(0));
  constexpr int kPlans = 50'000;
  std::atomic<bool> over{false};
  std::thread reader([&] {
    int last = 0;
    while (!over) {
      const Plan plan = board.read();
      const auto n = static_cast<int>(plan.fresh_median.count());
      EXPECT_GE(n, last) << "it went back";
      last = n;
      EXPECT_EQ(plan.stages, 1 + n % kHedgesMax);
      for (const Stage& stage : plan.stage) {
        EXPECT_EQ(stage.delay, Duration{n});
        EXPECT_EQ(stage.probability, n / 2.0);
      }
    }
  });
  for (int n = 1; n <= kPlans; ++n) board.publish(plan_number(n));
  over = true;
  reader.join();
}

}  // namespace
}  // namespace tailward::hedge
