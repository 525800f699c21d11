#include "hedge/planning/calibration.h"

#include <gtest/gtest.h>

namespace tailward::hedge {
namespace {

using namespace std::chrono_literals;

TEST(CalibrationTest, IsOneWhileFewHedgesWereExpected) {
  Calibration calibration;
  EXPECT_EQ(calibration.factor(), 1);
  calibration.record(49, 98, 0ms);
  EXPECT_EQ(calibration.factor(), 1);
  calibration.record(1, 2, 0ms);
  EXPECT_DOUBLE_EQ(calibration.factor(), 1.4) << "twice as many, but at most 1.4";
}

TEST(CalibrationTest, IsTheRatioOfHedgesAskedForToHedgesExpected) {
  Calibration calibration;
  calibration.record(100, 120, 0ms);
  EXPECT_DOUBLE_EQ(calibration.factor(), 1.2);
  calibration.record(100, 80, 0ms);
  EXPECT_DOUBLE_EQ(calibration.factor(), 1);
  calibration.record(1000, 0, 0ms);
  EXPECT_DOUBLE_EQ(calibration.factor(), 0.7) << "at least 0.7";
}

TEST(CalibrationTest, ForgetsHalfInTenSeconds) {
  Calibration calibration;
  calibration.record(200, 260, 0ms);
  calibration.record(100, 70, 10s);  // of 200 and 260 half is left
  EXPECT_DOUBLE_EQ(calibration.factor(), 1);
}

}  // namespace
}  // namespace tailward::hedge
