#include "hedge/planning/policy.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <thread>

#include "base/rng.h"

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

void expect_round_trip(const Policy& policy) {
  const std::string text = to_string(policy);
  const auto read = parse_policy(text);
  ASSERT_TRUE(read.has_value()) << text;
  EXPECT_EQ(read->kind, policy.kind) << text;
  EXPECT_EQ(read->copies, policy.copies) << text;
  if (policy.kind == Policy::Kind::kFixed) {
    EXPECT_EQ(read->delay, policy.delay) << text;
  } else {
    EXPECT_EQ(read->quantile, policy.quantile) << text;
  }
}

TEST(PolicyTest, IsReadBackExactlyAsItWas) {
  Rng rng(7);
  const std::int64_t longest = kLastHedgeMax.count();
  for (int copies = 1; copies <= kHedgesMax; ++copies) {
    for (const Duration delay : {Duration{0}, Duration{1}, Duration{999'999}, Duration{1'000'001},
                                 Duration{longest / copies}}) {
      expect_round_trip({.kind = Policy::Kind::kFixed, .delay = delay, .copies = copies});
    }
    for (const double quantile : {1e-300, 1e-5, 0.1, 0.999999999, 1 - 0x1p-53}) {
      expect_round_trip({.kind = Policy::Kind::kQuantile, .quantile = quantile, .copies = copies});
    }
    for (int i = 0; i < 2000; ++i) {
      const double ns = std::exp2(rng.uniform(0, std::log2(static_cast<double>(longest) / copies)));
      expect_round_trip({.kind = Policy::Kind::kFixed,
                         .delay = Duration{static_cast<std::int64_t>(ns)},
                         .copies = copies});
      const double quantile = 1 - std::exp2(-rng.uniform(0.001, 40));
      expect_round_trip({.kind = Policy::Kind::kQuantile, .quantile = quantile, .copies = copies});
    }
  }
}

TEST(PolicyTest, WritesWhatPeopleTypeInOneForm) {
  EXPECT_EQ(to_string(parse_policy("fixed:20m").value()), "fixed:1200000ms");
  EXPECT_EQ(to_string(parse_policy("fixed:250us").value()), "fixed:0.25ms");
  for (int tenths = 1; tenths < 1000; ++tenths) {
    const std::string percent = fmt::format("quantile:{}.{}%", tenths / 10, tenths % 10);
    std::string share = fmt::format("quantile:0.{:03}", tenths);
    share.erase(share.find_last_not_of('0') + 1);
    EXPECT_EQ(to_string(parse_policy(percent).value()), share);
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
                           "fixed:61m",
                           "fixed:16m:4",
                           "fixed:2000000h:4",
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

TEST(PolicyTest, ReadsAndWritesTheAdaptiveForms) {
  struct Form {
    const char* text;
    double goal;
    int copies;
    const char* written;
  };
  for (const Form& form :
       {Form{"adaptive", 0.99, 2, "adaptive:p99"}, Form{"adaptive:p99", 0.99, 2, "adaptive:p99"},
        Form{"adaptive:P99", 0.99, 2, "adaptive:p99"},
        Form{"adaptive:p99.9", 0.999, 2, "adaptive:p99.9"},
        Form{"adaptive:0.95", 0.95, 2, "adaptive:p95"},
        Form{"adaptive:p50:1", 0.5, 1, "adaptive:p50:1"},
        Form{"adaptive:p99.99:2", 0.9999, 2, "adaptive:p99.99"}}) {
    const auto policy = parse_policy(form.text);
    ASSERT_TRUE(policy.has_value()) << form.text;
    EXPECT_EQ(policy->kind, Policy::Kind::kAdaptive);
    EXPECT_EQ(policy->goal, form.goal) << form.text;
    EXPECT_EQ(policy->copies, form.copies) << form.text;
    EXPECT_EQ(to_string(*policy), form.written);
    const auto again = parse_policy(form.written);
    ASSERT_TRUE(again.has_value()) << form.written;
    EXPECT_EQ(again->goal, form.goal) << form.written;
    EXPECT_EQ(again->copies, form.copies) << form.written;
  }
}

TEST(PolicyTest, RefusesAdaptiveFormsThatNobodyCanMean) {
  for (const char* text :
       {"adaptive:", "adaptive:99", "adaptive:p100", "adaptive:p0", "adaptive:0", "adaptive:1",
        "adaptive:p99:", "adaptive:p99:0", "adaptive:p99:3", "adaptive:p99:5", "adaptive:p99:1:1",
        "adaptive:q99", "adaptive:50ms", "Adaptive"}) {
    const auto policy = parse_policy(text);
    ASSERT_FALSE(policy.has_value()) << text;
    EXPECT_EQ(policy.error().kind, ErrorKind::kInvalid) << text;
    EXPECT_NE(policy.error().hint.find("adaptive:p99"), std::string::npos) << text;
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
