#include "base/units.h"

#include <gtest/gtest.h>

namespace tailward {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::nanoseconds;
using std::chrono::seconds;

void expect_duration(std::string_view text, Duration expected) {
  const Result<Duration> parsed = parse_duration(text);
  ASSERT_TRUE(parsed.has_value()) << text << ": " << parsed.error().message;
  EXPECT_EQ(*parsed, expected) << text;
}

TEST(UnitsTest, ParsesDurationsAsPeopleTypeThem) {
  expect_duration("17ns", nanoseconds(17));
  expect_duration("250us", microseconds(250));
  expect_duration("250µs", microseconds(250));
  expect_duration("10ms", milliseconds(10));
  expect_duration("10 ms", milliseconds(10));
  expect_duration("1.5s", milliseconds(1500));
  expect_duration("0.25ms", microseconds(250));
  expect_duration("2m", minutes(2));
  expect_duration("2min", minutes(2));
  expect_duration("1h", hours(1));
  expect_duration("0", Duration{0});
  expect_duration("0s", Duration{0});
}

TEST(UnitsTest, RefusesWhatIsNoDurationAndSaysHowToWriteOne) {
  for (const char* text :
       {"", " ", "ms", "10", "10 parsecs", "10MS", "10mss", "10ms ", "-1ms", "+1ms", "nanms",
        "infs", "1e3ms", "1.2.3s", "ten ms", "0x10ms", "10ms5"}) {
    const Result<Duration> parsed = parse_duration(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().kind, ErrorKind::kInvalid) << text;
    EXPECT_NE(parsed.error().hint.find("10ms"), std::string::npos) << text;
  }
  EXPECT_EQ(parse_duration("10").error().message, "'10' has no unit");
  EXPECT_EQ(parse_duration("10 days").error().message, "'10 days' has an unknown unit");
}

TEST(UnitsTest, RefusesADurationThatOverflows) {
  EXPECT_FALSE(parse_duration("99999999999h"));
  EXPECT_FALSE(parse_duration("1000000000000000000000000000000000s"));
  expect_duration("1000000h", hours(1'000'000));
}

TEST(UnitsTest, ParsesSizes) {
  EXPECT_EQ(parse_size("0").value(), 0U);
  EXPECT_EQ(parse_size("512").value(), 512U);
  EXPECT_EQ(parse_size("512B").value(), 512U);
  EXPECT_EQ(parse_size("64KiB").value(), 65536U);
  EXPECT_EQ(parse_size("64K").value(), 65536U);
  EXPECT_EQ(parse_size("64kB").value(), 64000U);
  EXPECT_EQ(parse_size("1.5MiB").value(), 1572864U);
  EXPECT_EQ(parse_size("10MB").value(), 10'000'000U);
  EXPECT_EQ(parse_size("2 GiB").value(), 2147483648U);
}

TEST(UnitsTest, RefusesWhatIsNoSize) {
  for (const char* text : {"", "KiB", "-1", "1e3", "10XB", "10kib", "nan", "99999999999GiB"}) {
    const Result<std::uint64_t> parsed = parse_size(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().kind, ErrorKind::kInvalid) << text;
    EXPECT_FALSE(parsed.error().hint.empty()) << text;
  }
}

TEST(UnitsTest, ParsesShares) {
  EXPECT_DOUBLE_EQ(parse_share("5%").value(), 0.05);
  EXPECT_DOUBLE_EQ(parse_share("5 %").value(), 0.05);
  EXPECT_DOUBLE_EQ(parse_share("0.05").value(), 0.05);
  EXPECT_DOUBLE_EQ(parse_share("0").value(), 0);
  EXPECT_DOUBLE_EQ(parse_share("1").value(), 1);
  EXPECT_DOUBLE_EQ(parse_share("100%").value(), 1);
  EXPECT_DOUBLE_EQ(parse_share("0.1%").value(), 0.001);
}

TEST(UnitsTest, RefusesWhatIsNoShare) {
  for (const char* text : {"", "%", "-1%", "1.01", "101%", "5", "5%%", "5 percent", "nan"}) {
    const Result<double> parsed = parse_share(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().kind, ErrorKind::kInvalid) << text;
    EXPECT_FALSE(parsed.error().hint.empty()) << text;
  }
}

TEST(UnitsTest, FormatsDurationsToThreeDigitsInTheUnitThatReadsBest) {
  EXPECT_EQ(format_duration(Duration{0}), "0 ns");
  EXPECT_EQ(format_duration(nanoseconds(870)), "870 ns");
  EXPECT_EQ(format_duration(microseconds(1)), "1.00 µs");
  EXPECT_EQ(format_duration(nanoseconds(12'345)), "12.3 µs");
  EXPECT_EQ(format_duration(microseconds(12'300)), "12.3 ms");
  EXPECT_EQ(format_duration(milliseconds(120)), "120 ms");
  EXPECT_EQ(format_duration(milliseconds(1250)), "1.25 s");
  EXPECT_EQ(format_duration(minutes(2)), "120 s");
  EXPECT_EQ(format_duration(milliseconds(-2)), "-2.00 ms");
}

TEST(UnitsTest, RoundsIntoTheNextUnitAndNeverToFourDigits) {
  EXPECT_EQ(format_duration(nanoseconds(9'996)), "10.0 µs");
  EXPECT_EQ(format_duration(nanoseconds(99'960)), "100 µs");
  EXPECT_EQ(format_duration(nanoseconds(999'499)), "999 µs");
  EXPECT_EQ(format_duration(nanoseconds(999'600)), "1.00 ms");
  EXPECT_EQ(format_duration(nanoseconds(999'999'999)), "1.00 s");
  EXPECT_EQ(format_duration(microseconds(-12'300)), "-12.3 ms");
}

TEST(UnitsTest, WhatIsFormattedParsesBackWithinItsDigits) {
  for (double ns = 1; ns < 1e12; ns *= 1.37) {
    const Duration duration{static_cast<std::int64_t>(ns)};
    const Result<Duration> back = parse_duration(format_duration(duration));
    ASSERT_TRUE(back.has_value()) << format_duration(duration);
    EXPECT_NEAR(to_ms(*back), to_ms(duration), 0.0051 * to_ms(duration));
  }
}

TEST(UnitsTest, FormatsSharesAndCounts) {
  EXPECT_EQ(format_share(0.147), "14.7 %");
  EXPECT_EQ(format_share(1), "100.0 %");
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1000), "1,000");
  EXPECT_EQ(format_count(1'234'567), "1,234,567");
  EXPECT_EQ(format_count(UINT64_MAX), "18,446,744,073,709,551,615");
}

TEST(UnitsTest, ParsesPercentiles) {
  EXPECT_EQ(parse_percentile("p50").value(), 0.5);
  EXPECT_EQ(parse_percentile("P99").value(), 0.99);
  EXPECT_EQ(parse_percentile("p99.9").value(), 0.999);
  EXPECT_EQ(parse_percentile("p99.99").value(), 0.9999);
  EXPECT_EQ(parse_percentile("p0.1").value(), 0.001);
  EXPECT_EQ(parse_percentile("0.999").value(), 0.999);
  EXPECT_EQ(parse_percentile("0.5").value(), 0.5);
}

TEST(UnitsTest, RefusesWhatIsNoPercentileAndSaysHowToWriteOne) {
  for (const char* text : {"", "p", "99", "p100", "p0", "0", "1", "p-1", "-0.5", "p99%", "99%",
                           "p99ms", "pp99", "q99", "nan", "pnan", "p1e1", " p99", "p 99"}) {
    const Result<double> parsed = parse_percentile(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().kind, ErrorKind::kInvalid) << text;
    EXPECT_NE(parsed.error().hint.find("p99.9"), std::string::npos) << text;
  }
}

TEST(UnitsTest, PercentilesAreReadBackAsTheyWere) {
  EXPECT_EQ(format_percentile(0.5), "p50");
  EXPECT_EQ(format_percentile(0.999), "p99.9");
  EXPECT_EQ(format_percentile(0.07), "p7");
  for (int n = 1; n < 10'000; ++n) {
    const double quantile = n / 10'000.0;
    EXPECT_EQ(parse_percentile(format_percentile(quantile)).value(), quantile);
  }
}

}  // namespace
}  // namespace tailward
