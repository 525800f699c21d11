#include "diag/connection/sequence_space.h"

#include <gtest/gtest.h>

namespace tailward::diag {
namespace {

TEST(SequenceSpaceTest, TheSynTakesOneNumber) {
  SequenceSpace space;
  space.start_with_syn(99);
  EXPECT_EQ(space.next(), 100u);
  EXPECT_TRUE(space.all_acked());
  EXPECT_TRUE(space.only_syn_acked());
  space.extend_to(150);
  EXPECT_FALSE(space.all_acked());
  EXPECT_TRUE(space.only_syn_acked());
  space.acknowledge(150);
  EXPECT_TRUE(space.all_acked());
  EXPECT_FALSE(space.only_syn_acked());
}

TEST(SequenceSpaceTest, WrapsAround) {
  SequenceSpace space;
  space.start_at(0xffff'fff0);
  space.extend_to(0x10);
  EXPECT_EQ(space.next(), 0x10u);
  space.extend_to(0xffff'fff8);  // older
  EXPECT_EQ(space.next(), 0x10u);
  space.acknowledge(0x20);  // of data that the capture lost
  EXPECT_EQ(space.next(), 0x20u);
}

TEST(SequenceSpaceTest, ALaterStartIsIgnoredAndAFinCountsOnce) {
  SequenceSpace space;
  space.start_at(10);
  space.start_at(50);
  EXPECT_EQ(space.next(), 10u);
  EXPECT_TRUE(space.finish(20));
  EXPECT_FALSE(space.finish(20));
  EXPECT_EQ(space.next(), 21u);
}

}  // namespace
}  // namespace tailward::diag
