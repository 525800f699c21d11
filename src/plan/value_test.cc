#include "plan/value.h"

#include <gtest/gtest.h>

namespace tailward::plan {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

TEST(ValueTest, ReadsNumbersInTheUnitThatIsUsual) {
  EXPECT_EQ(parse_value("12.5", Unit::kMs).latency, microseconds(12'500));
  EXPECT_EQ(parse_value("0.123", Unit::kS).latency, milliseconds(123));
  EXPECT_EQ(parse_value("1e-3", Unit::kS).latency, milliseconds(1));
  EXPECT_EQ(parse_value(" 7\t", Unit::kUs).latency, microseconds(7));
  EXPECT_EQ(parse_value("0", Unit::kNs).latency, nanoseconds(0));
  EXPECT_EQ(parse_value("0.0000004", Unit::kMs).latency, nanoseconds(0));
  EXPECT_EQ(parse_value("5.", Unit::kNs).latency, nanoseconds(5));
  EXPECT_FALSE(parse_value("12.5", Unit::kMs).own_unit);
}

TEST(ValueTest, ReadsAUnitOfTheirOwn) {
  for (const Unit bare : {Unit::kNs, Unit::kS}) {
    EXPECT_EQ(parse_value("12.5ms", bare).latency, microseconds(12'500));
    EXPECT_EQ(parse_value("800 us", bare).latency, microseconds(800));
    EXPECT_EQ(parse_value("800\xc2\xb5s", bare).latency, microseconds(800));
    EXPECT_EQ(parse_value("1.2s", bare).latency, milliseconds(1200));
    EXPECT_EQ(parse_value("9ns", bare).latency, nanoseconds(9));
    EXPECT_TRUE(parse_value("12.5ms", bare).own_unit);
  }
}

TEST(ValueTest, SaysWhyThereIsNone) {
  const auto why = [](std::string_view text) { return parse_value(text, Unit::kMs).skip; };
  EXPECT_EQ(why("1"), Skip::kNone);
  EXPECT_EQ(why(""), Skip::kNoValue);
  EXPECT_EQ(why("  "), Skip::kNoValue);
  EXPECT_EQ(why("-"), Skip::kNoValue);
  EXPECT_EQ(why("abc"), Skip::kNoNumber);
  EXPECT_EQ(why("12 apples"), Skip::kNoNumber);
  EXPECT_EQ(why("12,5"), Skip::kNoNumber);
  EXPECT_EQ(why("1.2.3"), Skip::kNoNumber);
  EXPECT_EQ(why("0x10"), Skip::kNoNumber);
  EXPECT_EQ(why("+5"), Skip::kNoNumber);
  EXPECT_EQ(why("5MS"), Skip::kNoNumber);
  EXPECT_EQ(why("nan"), Skip::kNotFinite);
  EXPECT_EQ(why("NaN"), Skip::kNotFinite);
  EXPECT_EQ(why("inf"), Skip::kNotFinite);
  EXPECT_EQ(why("-inf"), Skip::kNotFinite);
  EXPECT_EQ(why("-1"), Skip::kNegative);
  EXPECT_EQ(why("-0.001ms"), Skip::kNegative);
  EXPECT_EQ(why("1e300"), Skip::kTooLong);
  EXPECT_EQ(why("1e999"), Skip::kTooLong);
  EXPECT_EQ(why("86400001"), Skip::kTooLong);
  EXPECT_EQ(why("86400000"), Skip::kNone);
}

TEST(ValueTest, KnowsItsUnits) {
  for (const Unit unit : {Unit::kNs, Unit::kUs, Unit::kMs, Unit::kS}) {
    EXPECT_EQ(parse_unit(to_string(unit)), unit);
  }
  EXPECT_EQ(parse_unit("m"), std::nullopt);
  EXPECT_EQ(parse_unit(""), std::nullopt);
}

}  // namespace
}  // namespace tailward::plan
