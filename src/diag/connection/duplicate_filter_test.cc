#include "diag/connection/duplicate_filter.h"

#include <gtest/gtest.h>

#include <chrono>

namespace tailward::diag {
namespace {

using namespace std::chrono_literals;

tcp::Segment data(std::uint16_t ip_id) {
  tcp::Segment s;
  s.seq = 100;
  s.payload = 50;
  s.ack_flag = true;
  s.ip_id = ip_id;
  s.ts_value = 7;
  return s;
}

TEST(DuplicateFilterTest, TheSamePacketWithinAMillisecondIsACopy) {
  DuplicateFilter filter;
  EXPECT_FALSE(filter.is_copy(data(1), 10ms));
  EXPECT_TRUE(filter.is_copy(data(1), 10ms + 900us));
  EXPECT_FALSE(filter.is_copy(data(1), 12ms));
}

TEST(DuplicateFilterTest, ARetransmissionHasAnIdentificationOfItsOwn) {
  DuplicateFilter filter;
  EXPECT_FALSE(filter.is_copy(data(1), 10ms));
  EXPECT_FALSE(filter.is_copy(data(2), 10ms + 100us));
}

TEST(DuplicateFilterTest, WithoutIdentificationItTakesAnotherInterfaceOrNoTime) {
  DuplicateFilter filter;
  EXPECT_FALSE(filter.is_copy(data(0), 10ms));
  tcp::Segment elsewhere = data(0);
  elsewhere.interface = 3;
  EXPECT_TRUE(filter.is_copy(elsewhere, 10ms + 800us));
  EXPECT_TRUE(filter.is_copy(data(0), 10ms + 40us));
  EXPECT_FALSE(filter.is_copy(data(0), 10ms + 200us));
}

TEST(DuplicateFilterTest, PureAcksMayBeAlikeByRight) {
  DuplicateFilter filter;
  tcp::Segment ack = data(0);
  ack.payload = 0;
  EXPECT_FALSE(filter.is_copy(ack, 10ms));
  EXPECT_FALSE(filter.is_copy(ack, 10ms + 10us));  // three of these are a loss (RFC 5681)
}

}  // namespace
}  // namespace tailward::diag
