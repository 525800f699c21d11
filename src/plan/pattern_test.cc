#include "plan/pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tailward::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Pattern pattern(std::string_view format, Dialect dialect = Dialect::kNginx) {
  Result<Pattern> parsed = Pattern::parse(format, dialect);
  EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error().message);
  return *parsed;
}

std::string error_of(std::string_view format, Dialect dialect = Dialect::kNginx) {
  const Result<Pattern> parsed = Pattern::parse(format, dialect);
  return parsed ? "no error" : parsed.error().message;
}

TEST(PatternTest, FindsAVariableBetweenItsTexts) {
  const Pattern log = pattern("$remote_addr - [$time] \"$request\" $status ${request_time}s end");
  EXPECT_THAT(log.variables(),
              ElementsAre("remote_addr", "time", "request", "status", "request_time"));
  const std::string_view line = "::1 - [10/Oct] \"GET / HTTP/1.1\" 200 0.125s end";
  EXPECT_EQ(log.find(line, *log.index_of("request_time")), "0.125");
  EXPECT_EQ(log.find(line, *log.index_of("request")), "GET / HTTP/1.1");
  EXPECT_EQ(log.find(line, *log.index_of("remote_addr")), "::1");
  EXPECT_EQ(log.index_of("nothing"), std::nullopt);
}

TEST(PatternTest, FindsNothingInLinesOfAnotherForm) {
  const Pattern log = pattern("[$time] $request_time ms");
  EXPECT_EQ(log.find("[now] 5 ms", 1), "5");
  EXPECT_EQ(log.find("now] 5 ms", 1), std::nullopt);
  EXPECT_EQ(log.find("[now] 5 s", 1), std::nullopt);
  EXPECT_EQ(log.find("[now 5 ms", 1), std::nullopt);
  EXPECT_EQ(log.find("", 0), std::nullopt);
  EXPECT_EQ(log.find("[] ", 0), "");
}

TEST(PatternTest, TakesTheRestForAVariableAtTheEnd) {
  const Pattern log = pattern("$status $request_time");
  EXPECT_EQ(log.find("200 0.1", 1), "0.1");
  EXPECT_EQ(log.find("200 0.1 and more", 1), "0.1 and more");
  EXPECT_EQ(log.find("200 ", 1), "");
}

TEST(PatternTest, ReadsEnvoysOperators) {
  const Pattern log =
      pattern("[%START_TIME%] \"%REQ(:METHOD)% %REQ(X-PATH?:PATH):20%\" 100%% %DURATION%\n",
              Dialect::kEnvoy);
  EXPECT_THAT(log.variables(),
              ElementsAre("START_TIME", "REQ(:METHOD)", "REQ(X-PATH?:PATH):20", "DURATION"));
  EXPECT_EQ(log.find("[now] \"GET /a\" 100% 42\n", 3), "42");
  const Pattern timed = pattern("%START_TIME(%Y/%m)% %DURATION%", Dialect::kEnvoy);
  EXPECT_THAT(timed.variables(), ElementsAre("START_TIME(%Y/%m)", "DURATION"));
}

TEST(PatternTest, RefusesWhatCannotBeToldApart) {
  EXPECT_THAT(error_of("$a$b"), HasSubstr("nothing stands between a and b"));
  EXPECT_THAT(error_of("no variable"), HasSubstr("no variable"));
  EXPECT_THAT(error_of(""), HasSubstr("no variable"));
  EXPECT_THAT(error_of("$ a"), HasSubstr("without a variable"));
  EXPECT_THAT(error_of("${a"), HasSubstr("without a variable"));
  EXPECT_THAT(error_of("%DURATION", Dialect::kEnvoy), HasSubstr("without a variable"));
}

}  // namespace
}  // namespace tailward::plan
