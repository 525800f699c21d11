#include "base/result.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>

namespace tailward {
namespace {

Result<int> half(int number) {
  if (number % 2 != 0) return fail(ErrorKind::kInvalid, "odd", "give an even one");
  return number / 2;
}

Result<std::string> half_as_text(int number) {
  const Result<int> result = half(number);
  if (!result) return fail(result.error().in("halving"));
  return std::to_string(*result);
}

TEST(ResultTest, CarriesTheValue) {
  const Result<int> result = half(8);
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(*result, 4);
}

TEST(ResultTest, CarriesKindMessageAndHintOfTheError) {
  const Result<int> result = half(7);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::kInvalid);
  EXPECT_EQ(result.error().message, "odd");
  EXPECT_EQ(result.error().hint, "give an even one");
}

TEST(ResultTest, AnErrorPassesIntoAResultOfAnotherTypeWithWhereItHappened) {
  EXPECT_EQ(half_as_text(8).value(), "4");
  const Result<std::string> result = half_as_text(7);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::kInvalid);
  EXPECT_EQ(result.error().message, "halving: odd");
  EXPECT_EQ(result.error().hint, "give an even one");
}

TEST(ResultTest, MayHoldNothing) {
  const auto check = [](bool good) -> Result<void> {
    if (!good) return fail(ErrorKind::kDenied, "no");
    return {};
  };
  EXPECT_TRUE(check(true).has_value());
  EXPECT_EQ(check(false).error().kind, ErrorKind::kDenied);
  EXPECT_EQ(check(false).error().hint, "");
}

TEST(ResultTest, MayHoldWhatCannotBeCopied) {
  const auto make = []() -> Result<std::unique_ptr<int>> { return std::make_unique<int>(3); };
  const std::unique_ptr<int> value = std::move(make()).value();
  EXPECT_EQ(*value, 3);
}

TEST(ResultTest, MapsItsValueAndFallsBack) {
  const Result<std::string> mapped = half(12).map([](int x) { return std::to_string(x); });
  EXPECT_EQ(mapped.value(), "6");
  const Result<std::string> failed = half(3).map([](int x) { return std::to_string(x); });
  EXPECT_EQ(failed.error().message, "odd");
  EXPECT_EQ(half(7).value_or(-1), -1);
}

TEST(ResultTest, EveryKindHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (const ErrorKind kind :
       {ErrorKind::kInvalid, ErrorKind::kOverloaded, ErrorKind::kDisconnected, ErrorKind::kTimedOut,
        ErrorKind::kCancelled, ErrorKind::kUnsupported, ErrorKind::kDenied, ErrorKind::kInternal}) {
    names.insert(to_string(kind));
  }
  EXPECT_EQ(names.size(), 8U);
  EXPECT_EQ(to_string(ErrorKind::kTimedOut), "timed_out");
  EXPECT_EQ(names.count(""), 0U);
}

}  // namespace
}  // namespace tailward
