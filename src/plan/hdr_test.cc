#include "plan/hdr.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/testing.h"

namespace tailward::plan {
namespace {

using ::testing::HasSubstr;
using testing::HdrWriter;

struct Outcome {
  std::vector<HdrCount> counts;
  std::string error;
};

Outcome decode(std::string_view base64) {
  Outcome outcome;
  const Result<void> decoded =
      decode_hdr(base64, [&outcome](const HdrCount& count) { outcome.counts.push_back(count); });
  if (!decoded) outcome.error = decoded.error().message;
  return outcome;
}

TEST(HdrTest, DecodesWhatTheFormatsOwnLibraryWrote) {
  // Written by HdrHistogram 2.1.9 for Java.
  const Outcome outcome = decode(
      "HISTFAAAAEV42pNpmSzMwMCgyAABTBDKT4GBgdnNYMcCBvsPEBEJISEuATEZMQ4uASkhIR4nrxg9v2lMaxhvMekILGZk"
      "KmcCAEf2CsI=");
  EXPECT_EQ(outcome.error, "");
  ASSERT_FALSE(outcome.counts.empty());
  std::uint64_t total = 0;
  for (const HdrCount& count : outcome.counts) total += count.times;
  EXPECT_GT(total, 0u);
  // The line that it is from says that the longest took 2.769 ms.
  EXPECT_LE(outcome.counts.back().low, 2'769'000u);
  EXPECT_GE(outcome.counts.back().high + 1000, 2'769'000u);
}

TEST(HdrTest, KnowsTheValuesOfItsIndices) {
  // 3 digits: 2,048 values of one unit, then 1,024 of two, of four, …
  HdrWriter writer;
  writer.counts = {7, -2046, 1, 2, -1023, 3};
  const Outcome outcome = decode(writer.base64());
  EXPECT_EQ(outcome.error, "");
  ASSERT_EQ(outcome.counts.size(), 4u);
  EXPECT_EQ(outcome.counts[0].low, 0u);
  EXPECT_EQ(outcome.counts[0].high, 0u);
  EXPECT_EQ(outcome.counts[0].times, 7u);
  EXPECT_EQ(outcome.counts[1].low, 2047u);
  EXPECT_EQ(outcome.counts[2].low, 2048u);
  EXPECT_EQ(outcome.counts[2].high, 2049u);
  EXPECT_EQ(outcome.counts[3].low, 4096u);
  EXPECT_EQ(outcome.counts[3].high, 4099u);
  EXPECT_EQ(outcome.counts[3].times, 3u);
}

TEST(HdrTest, ScalesByTheLowestValueThatIsToldApart) {
  HdrWriter writer;
  writer.lowest = 1000;  // 512 is the power of two below
  writer.counts = {-10, 1};
  const Outcome outcome = decode(writer.base64());
  ASSERT_EQ(outcome.counts.size(), 1u);
  EXPECT_EQ(outcome.counts[0].low, 5120u);
  EXPECT_EQ(outcome.counts[0].high, 5631u);
}

TEST(HdrTest, ReadsLargeCounts) {
  HdrWriter writer;
  writer.counts = {std::int64_t{1} << 49, 200, 70'000};
  const Outcome outcome = decode(writer.base64());
  ASSERT_EQ(outcome.counts.size(), 3u);
  EXPECT_EQ(outcome.counts[0].times, std::uint64_t{1} << 49);
  EXPECT_EQ(outcome.counts[2].times, 70'000u);
}

TEST(HdrTest, RefusesWhatMakesNoSense) {
  const auto error_of = [](const HdrWriter& writer) { return decode(writer.base64()).error; };
  EXPECT_THAT(error_of({.digits = 6, .counts = {1}}), HasSubstr("precision"));
  EXPECT_THAT(error_of({.lowest = 0, .counts = {1}}), HasSubstr("precision"));
  EXPECT_THAT(error_of({.lowest = UINT64_MAX, .counts = {1}}), HasSubstr("precision"));
  EXPECT_THAT(error_of({.cookie = 7, .counts = {1}}), HasSubstr("no histogram"));
  EXPECT_THAT(error_of({.ratio = 0.5, .counts = {1}}), HasSubstr("fractions"));
  EXPECT_THAT(error_of({.counts = {INT64_MAX}}), HasSubstr("too large"));
  EXPECT_THAT(error_of({.counts = {INT64_MIN, 1}}), HasSubstr("beyond"));
  EXPECT_THAT(error_of({.counts = {-4'000'000'000, 1}}), HasSubstr("beyond"));
  EXPECT_THAT(error_of({.outer_cookie = 0x1c849301, .counts = {1}}), HasSubstr("version 2"));
  EXPECT_EQ(error_of({.counts = {}}), "");
}

TEST(HdrTest, GivesNothingOfAHistogramThatIsCutOrDamagedAnywhere) {
  HdrWriter writer;
  writer.counts = {5, -100, 3, 200'000, 1};
  const std::string whole = writer.base64();
  ASSERT_EQ(decode(whole).error, "");
  const std::string bare = whole.substr(0, whole.find('='));
  for (std::size_t cut = 0; cut < bare.size(); ++cut) {
    const Outcome outcome = decode(bare.substr(0, cut));
    EXPECT_NE(outcome.error, "") << "cut after " << cut;
    EXPECT_TRUE(outcome.counts.empty());
  }
  const std::string plain = writer.plain();
  for (std::size_t cut = 0; cut < plain.size(); ++cut) {
    const std::string inner = testing::compressed(plain.substr(0, cut), testing::kZlibWrap);
    const Outcome outcome = decode(writer.wrapped(inner));
    EXPECT_NE(outcome.error, "") << "cut after " << cut;
    EXPECT_TRUE(outcome.counts.empty());
  }
  EXPECT_NE(decode("HISTnot*base64").error, "");
  EXPECT_NE(decode("").error, "");
}

TEST(HdrTest, RefusesAHistogramThatInflatesWithoutEnd) {
  HdrWriter writer;
  const std::string bomb = testing::compressed(std::string(20 << 20, '\0'), testing::kZlibWrap);
  EXPECT_LT(bomb.size(), 200'000u);
  EXPECT_THAT(decode(writer.wrapped(bomb)).error, HasSubstr("16 MiB"));
}

}  // namespace
}  // namespace tailward::plan
