#include "treat/setting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tailward::treat {
namespace {

using testing::HasSubstr;

std::vector<Setting> parsed(std::string_view text) {
  const Result<std::vector<Setting>> settings = parse_settings(text);
  EXPECT_TRUE(settings) << text << ": " << (settings ? "" : settings.error().message);
  return settings.value_or(std::vector<Setting>{});
}

TEST(SettingTest, ReadsEveryOptionInTheFormsItOffers) {
  EXPECT_EQ(parsed("nodelay=1"), (std::vector<Setting>{{Option::kNodelay, 1}}));
  EXPECT_EQ(parsed("nodelay=on"), parsed("nodelay=1"));
  EXPECT_EQ(parsed("cork=off"), parsed("cork=0"));
  EXPECT_EQ(parsed("nodelay=1,quickack=on,keepalive=0"),
            (std::vector<Setting>{
                {Option::kNodelay, 1}, {Option::kQuickack, 1}, {Option::kKeepalive, 0}}));
  EXPECT_EQ(parsed("sndbuf=64KiB"), (std::vector<Setting>{{Option::kSndbuf, 65536}}));
  EXPECT_EQ(parsed("rcvbuf=auto"), (std::vector<Setting>{{Option::kRcvbuf, 0, true}}));
  EXPECT_EQ(parsed("notsent_lowat=16KiB,user_timeout=1.5s"),
            (std::vector<Setting>{{Option::kNotsentLowat, 16384}, {Option::kUserTimeout, 1500}}));
  EXPECT_EQ(parsed("notsent_lowat=off,user_timeout=off"),
            (std::vector<Setting>{{Option::kNotsentLowat, 0}, {Option::kUserTimeout, 0}}));
  EXPECT_EQ(parsed("keepidle=30s,keepintvl=1m,keepcnt=3"),
            (std::vector<Setting>{
                {Option::kKeepidle, 30}, {Option::kKeepintvl, 60}, {Option::kKeepcnt, 3}}));
  EXPECT_EQ(parsed("rto_min_us=20ms,delack_max_us=5000"),
            (std::vector<Setting>{{Option::kRtoMin, 20'000}, {Option::kDelackMax, 5000}}));
}

TEST(SettingTest, RefusesWhatIsNoValueAndSaysWhatIsOne) {
  for (const char* bad : {"nodelay",          "nodelay=",          "nodelay=2",
                          "nodelay=yes",      "nodelay=1 ",        "cork=-1",
                          "sndbuf=0",         "sndbuf=-5",         "sndbuf=big",
                          "sndbuf=2GiB",      "rcvbuf=AUTO",       "user_timeout=5",
                          "user_timeout=1us", "keepidle=0s",       "keepidle=1.5s",
                          "keepidle=40000s",  "keepcnt=0",         "keepcnt=128",
                          "keepcnt=3x",       "rto_min_us=0",      "rto_min_us=300ms",
                          "delack_max_us=1s", "notsent_lowat=0",   "nodelay=1,",
                          ",nodelay=1",       "nodelay=1,,cork=0", ""}) {
    const Result<std::vector<Setting>> settings = parse_settings(bad);
    ASSERT_FALSE(settings) << bad;
    EXPECT_EQ(settings.error().kind, ErrorKind::kInvalid) << bad;
    EXPECT_FALSE(settings.error().hint.empty()) << bad;
  }
  EXPECT_THAT(parse_settings("sndbuf=x").error().hint, HasSubstr("64KiB, or auto"));
}

TEST(SettingTest, RefusesAnOptionThatItDoesNotKnowOrIsGivenTwice) {
  const Result<std::vector<Setting>> unknown = parse_settings("linger=1");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().message, "'linger' is no option that can be treated");
  EXPECT_THAT(unknown.error().hint, HasSubstr("nodelay, quickack, cork"));
  const Result<std::vector<Setting>> twice = parse_settings("nodelay=1,nodelay=0");
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().message, "nodelay is given twice");
}

TEST(SettingTest, IsWrittenSoThatItCanBeReadAgain) {
  const std::string all =
      "nodelay=1,quickack=1,cork=0,sndbuf=8192,rcvbuf=auto,notsent_lowat=off,user_timeout=1500ms,"
      "keepalive=1,keepidle=30s,keepintvl=5s,keepcnt=3,rto_min_us=20000,delack_max_us=8000";
  EXPECT_EQ(to_string(parsed(all)), all);
  EXPECT_EQ(parsed(all).size(), kOptions);
}

TEST(SettingTest, KnowsTheSettingThatBringsAStateBack) {
  EXPECT_EQ(to_string(setting_for(Option::kNodelay, {0})), "nodelay=0");
  EXPECT_EQ(to_string(setting_for(Option::kSndbuf, {16384, true})), "sndbuf=8192");
  EXPECT_EQ(to_string(setting_for(Option::kSndbuf, {16384, false})), "sndbuf=auto");
}

TEST(SettingTest, TellsWhetherThereIsAnythingToChange) {
  EXPECT_TRUE(satisfies({1}, {Option::kNodelay, 1}));
  EXPECT_FALSE(satisfies({0}, {Option::kNodelay, 1}));
  EXPECT_TRUE(satisfies({16384, true}, {Option::kSndbuf, 8192}));
  EXPECT_FALSE(satisfies({16384, false}, {Option::kSndbuf, 8192}));
  EXPECT_TRUE(satisfies({16384, false}, {Option::kSndbuf, 0, true}));
  EXPECT_FALSE(satisfies({16384, true}, {Option::kSndbuf, 0, true}));
  // The kernel may turn it off again in the next moment.
  EXPECT_FALSE(satisfies({1}, {Option::kQuickack, 1}));
}

TEST(SettingTest, EveryOptionSaysWhatItDoesAndHowItIsPutBack) {
  for (const OptionInfo& one : known_options()) {
    EXPECT_EQ(&info(one.option), &one);
    EXPECT_FALSE(one.what.empty() || one.rollback.empty() || one.form.empty()) << one.name;
  }
}

}  // namespace
}  // namespace tailward::treat
