#include "diag/connection/segment_size.h"

#include <gtest/gtest.h>

namespace tailward::diag {
namespace {

SegmentSize with_option(std::uint16_t mss, bool timestamps) {
  tcp::Segment syn;
  syn.mss = mss;
  if (timestamps) syn.ts_value = 1;
  SegmentSize size;
  size.take_options(syn);
  return size;
}

TEST(SegmentSizeTest, TheSmallerOptionLessTheTimeStamps) {
  EXPECT_EQ(with_option(1460, true).largest(with_option(1400, true), false), 1388u);
  EXPECT_EQ(with_option(1460, true).largest(with_option(1400, false), false), 1400u);
  EXPECT_EQ(with_option(0, true).largest(with_option(1, true), false), 52u);  // hostile
}

TEST(SegmentSizeTest, WithoutSynsWhatIsSentShowsIt) {
  const SegmentSize peer;
  SegmentSize size;
  size.sent(100);
  EXPECT_EQ(size.largest(peer, false), 1200u);
  EXPECT_EQ(size.largest(peer, true), 32'000u);
  size.sent(1300);
  EXPECT_EQ(size.largest(peer, false), 1300u);
  size.sent(9000);  // offloaded
  EXPECT_EQ(size.largest(peer, false), 1448u);
}

TEST(SegmentSizeTest, ARowOfTheLargestIsFullWhereThePathTakesLess) {
  const SegmentSize peer = with_option(1460, false);
  SegmentSize size = with_option(1460, false);
  size.sent(1300);
  EXPECT_FALSE(size.is_full(1300, peer, false));
  size.repeated(1300);
  EXPECT_TRUE(size.is_full(1300, peer, false));
  size.sent(1310);  // larger ones pass: 1300 was a message
  EXPECT_FALSE(size.is_full(1300, peer, false));
}

TEST(SegmentSizeTest, ARowOfSmallMessagesIsNotFull) {
  const SegmentSize peer = with_option(1460, false);
  SegmentSize size = with_option(1460, false);
  size.sent(200);
  size.repeated(200);
  EXPECT_FALSE(size.is_full(200, peer, false));
}

}  // namespace
}  // namespace tailward::diag
