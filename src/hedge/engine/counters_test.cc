#include "hedge/engine/counters.h"

#include <gtest/gtest.h>

#include <bit>

namespace tailward::hedge {
namespace {

// Every field as one of a row of integers, whatever it is called.
constexpr std::size_t kFields = sizeof(Counters) / sizeof(std::int64_t);
using Row = std::array<std::int64_t, kFields>;

Row numbered(std::int64_t from) {
  Row row;
  for (std::size_t i = 0; i < kFields; ++i) row[i] = from + static_cast<std::int64_t>(i);
  return row;
}

TEST(CountersTest, AreAddedFieldByFieldAndNoneIsForgotten) {
  Counters counters = std::bit_cast<Counters>(numbered(1));
  counters += std::bit_cast<Counters>(numbered(1000));
  const Row sum = std::bit_cast<Row>(counters);
  for (std::size_t i = 0; i < kFields; ++i) {
    EXPECT_EQ(sum[i], 1001 + 2 * static_cast<std::int64_t>(i)) << "field " << i;
  }
}

TEST(CountersTest, AreSubtractedFieldByFieldAndNoneIsForgotten) {
  Counters counters = std::bit_cast<Counters>(numbered(1000));
  counters -= std::bit_cast<Counters>(numbered(1));
  const Row difference = std::bit_cast<Row>(counters);
  for (std::size_t i = 0; i < kFields; ++i) EXPECT_EQ(difference[i], 999) << "field " << i;
}

// Two requests: one answered by its hedge, whose primary is superseded; one still in flight.
Counters sample() {
  Counters counters;
  counters.requests = counters.eligible = 2;
  counters.hedges = counters.hedges_after_delay = 1;
  counters.hedged_requests = counters.due_requests = counters.hedge_wins = 1;
  counters.attempts = 3;
  counters.succeeded = counters.superseded = counters.answered = 1;
  return counters;
}

TEST(CountersTest, AddUpWhenEveryAttemptHasItsPlace) {
  EXPECT_TRUE(Counters{}.add_up(0));
  EXPECT_TRUE(sample().add_up(1));
  EXPECT_FALSE(sample().add_up(0));
  EXPECT_FALSE(sample().add_up(2));
  Counters without_reason = sample();
  without_reason.hedges_after_delay = 0;
  EXPECT_FALSE(without_reason.add_up(1));
  Counters without_primary = sample();
  ++without_primary.requests;
  EXPECT_FALSE(without_primary.add_up(1));
}

TEST(CountersTest, NoPartIsLargerThanItsWhole) {
  EXPECT_TRUE(sample().parts_within_wholes());
  for (std::uint64_t Counters::*part :
       {&Counters::hedged_requests, &Counters::due_requests, &Counters::eligible,
        &Counters::hedges_not_sent, &Counters::hedge_wins, &Counters::timed_out}) {
    Counters counters = sample();
    counters.*part = 3;
    EXPECT_FALSE(counters.parts_within_wholes());
  }
}

TEST(CountersTest, ExtraLoadLeavesOutWhatWasNeverSent) {
  Counters counters = sample();
  EXPECT_DOUBLE_EQ(counters.extra_load(), 0.5);
  EXPECT_DOUBLE_EQ(counters.trigger_rate(), 0.5);
  counters.hedges_not_sent = counters.not_sent = 1;
  EXPECT_DOUBLE_EQ(counters.extra_load(), 0);
  EXPECT_DOUBLE_EQ(Counters{}.extra_load(), 0);
  EXPECT_DOUBLE_EQ(Counters{}.trigger_rate(), 0);
}

}  // namespace
}  // namespace tailward::hedge
