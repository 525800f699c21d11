#include "diag/connection/scale_estimator.h"

#include <gtest/gtest.h>

namespace tailward::diag {
namespace {

// A receiver of `scale` that takes `bytes` at a time and does not read: the window's end stands.
std::optional<std::uint8_t> fill(ScaleEstimator& estimator, int scale, std::uint32_t bytes,
                                 std::uint32_t& ack, int times) {
  std::optional<std::uint8_t> learned;
  std::uint32_t window = 60'000;
  for (int i = 0; i < times; ++i) {
    if (const auto found = estimator.add(static_cast<std::uint16_t>(window), ack)) learned = found;
    ack += bytes;
    window -= bytes >> scale;
  }
  return learned;
}

TEST(ScaleEstimatorTest, LearnsEachScaleFromAReaderThatPauses) {
  for (int scale = 0; scale <= 10; ++scale) {
    ScaleEstimator estimator;
    std::uint32_t ack = 0xffff'0000;  // wraps meanwhile
    const auto learned = fill(estimator, scale, 64u << scale, ack, 20);
    ASSERT_TRUE(learned) << scale;
    EXPECT_EQ(*learned, scale);
  }
}

TEST(ScaleEstimatorTest, FewObservationsAreNotEnough) {
  ScaleEstimator estimator;
  std::uint32_t ack = 0;
  EXPECT_FALSE(fill(estimator, 7, 64u << 7, ack, 8));  // seven steps
}

TEST(ScaleEstimatorTest, OfTwoScalesTheSmallerOneIsBelieved) {
  ScaleEstimator estimator;
  std::uint32_t ack = 0;
  EXPECT_EQ(fill(estimator, 9, 64u << 9, ack, 20), 9);  // it read meanwhile: the ratio was larger
  EXPECT_EQ(fill(estimator, 7, 64u << 7, ack, 20), 7);
  EXPECT_FALSE(fill(estimator, 9, 64u << 9, ack, 200));
}

TEST(ScaleEstimatorTest, NothingIsLearnedWhereTheRatioIsNoPowerOfTwo) {
  ScaleEstimator estimator;
  std::uint32_t ack = 0;
  std::uint16_t window = 60'000;
  for (int i = 0; i < 500; ++i) {
    EXPECT_FALSE(estimator.add(window, ack));
    ack += 64u * 181;  // between 128 and 256
    window = static_cast<std::uint16_t>(window - 64);
  }
}

TEST(ScaleEstimatorTest, ManyThousandsOfSegmentsDoNotOverflowTheVotes) {
  ScaleEstimator estimator;
  std::uint32_t ack = 0;
  EXPECT_EQ(fill(estimator, 2, 16u << 2, ack, 3000), 2);
}

}  // namespace
}  // namespace tailward::diag
