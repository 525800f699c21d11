#include "lab/scorecard.h"

#include <gtest/gtest.h>

namespace tailward::lab {
namespace {

using diag::Cause;

ScoredRun scored(Cause fault, Cause found, const char* from = "live") {
  ScoredRun one;
  one.fault = fault;
  one.found = found;
  one.from = from;
  return one;
}

TEST(ScorecardTest, AsksForNineteenOfTwentyRight) {
  Scorecard scorecard;
  for (int at = 0; at < 19; ++at) {
    scorecard.cases.push_back(scored(Cause::kCorked, Cause::kCorked));
    scorecard.cases.push_back(scored(Cause::kCorked, Cause::kCorked, "capture"));
  }
  scorecard.cases.push_back(scored(Cause::kCorked, Cause::kNone));
  EXPECT_TRUE(scorecard.ok());
  scorecard.cases.push_back(scored(Cause::kCorked, Cause::kSlowReader));
  EXPECT_FALSE(scorecard.ok());
}

TEST(ScorecardTest, ForgivesNoFindingOnAHealthyServer) {
  Scorecard scorecard;
  for (int at = 0; at < 99; ++at) scorecard.cases.push_back(scored(Cause::kNone, Cause::kNone));
  EXPECT_TRUE(scorecard.ok());
  scorecard.cases.push_back(scored(Cause::kNone, Cause::kPacketLoss));
  EXPECT_FALSE(scorecard.ok());
}

TEST(ScorecardTest, DoesNotHoldWhereARunCouldNotBeMade) {
  Scorecard scorecard;
  scorecard.cases.push_back(scored(Cause::kNone, Cause::kNone));
  scorecard.failed.push_back("corked, seed 3: no room");
  EXPECT_FALSE(scorecard.ok());
}

}  // namespace
}  // namespace tailward::lab
