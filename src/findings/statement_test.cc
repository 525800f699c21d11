#include "findings/statement.h"

#include <gtest/gtest.h>

namespace tailward::findings {
namespace {

TEST(StatementTest, NamesLayersAndCertaintiesAsTheContractDoes) {
  EXPECT_EQ(to_string(Layer::kUnknown), "unknown");
  EXPECT_EQ(to_string(Layer::kHealthy), "healthy");
  EXPECT_EQ(to_string(Layer::kWatch), "watch");
  EXPECT_EQ(to_string(Layer::kSymptom), "symptom");
  EXPECT_EQ(to_string(Layer::kAmplification), "amplification");
  EXPECT_EQ(to_string(Layer::kCause), "cause");
  EXPECT_EQ(to_string(Certainty::kProven), "proven");
  EXPECT_EQ(to_string(Certainty::kConsistent), "consistent");
  EXPECT_EQ(to_string(Certainty::kGuessed), "guessed");
}

TEST(StatementTest, IsUnknownUntilSomethingIsSaid) {
  EXPECT_EQ(Statement{}.layer, Layer::kUnknown);
  EXPECT_TRUE(Statement{}.evidence.empty());
}

TEST(StatementTest, PutsAtMostSixPacketsIntoALine) {
  EXPECT_EQ(to_line({"the median is 5 ms"}), "the median is 5 ms");
  EXPECT_EQ(to_line({"held by Nagle", {7}}), "held by Nagle [packets 7]");
  EXPECT_EQ(to_line({"held", {1, 2, 3, 4, 5, 6}}), "held [packets 1, 2, 3, 4, 5, 6]");
  EXPECT_EQ(to_line({"held", {1, 2, 3, 4, 5, 6, 7}}), "held [packets 1, 2, 3, 4, 5, 6, …]");
}

}  // namespace
}  // namespace tailward::findings
