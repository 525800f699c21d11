#include "probe/runtime.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

namespace tailward::probe {
namespace {

using tcp::Runtime;

const std::string kElf(
    "\x7f"
    "ELF\x02\x01\x01");

TEST(RuntimeTest, IsKnownByTheProgramsName) {
  EXPECT_EQ(runtime_of("/usr/sbin/nginx", kElf, ""), Runtime::kNginx);
  EXPECT_EQ(runtime_of("/usr/sbin/nginx (deleted)", kElf, ""), Runtime::kNginx);
  EXPECT_EQ(runtime_of("/usr/bin/redis-check-rdb", kElf, ""), Runtime::kRedis);
  EXPECT_EQ(runtime_of("/opt/jdk/bin/java", kElf, ""), Runtime::kJava);
  EXPECT_EQ(runtime_of("/usr/bin/node", kElf, ""), Runtime::kNode);
  EXPECT_EQ(runtime_of("/usr/bin/python3.11", kElf, ""), Runtime::kPython);
  EXPECT_EQ(runtime_of("/usr/bin/nginx-agent", kElf, ""), Runtime::kNative);
}

TEST(RuntimeTest, IsKnownByWhatIsMapped) {
  const std::string jvm = "7f0-7f1 r-xp 00000000 08:01 42 /opt/jdk/lib/server/libjvm.so\n";
  EXPECT_EQ(runtime_of("/opt/app/launcher", kElf, jvm), Runtime::kJava);
  const std::string python = "7f0-7f1 r-xp 00000000 08:01 42 /usr/lib/libpython3.11.so.1.0\n";
  EXPECT_EQ(runtime_of("/usr/bin/uwsgi", kElf, python), Runtime::kPython);
}

TEST(RuntimeTest, GoIsKnownByItsBuildId) {
  const std::string note("\x04\x00\x00\x00\x53\x00\x00\x00\x04\x00\x00\x00Go\x00\x00", 16);
  EXPECT_EQ(runtime_of("/srv/app", kElf + std::string(4000, 'x') + note, ""), Runtime::kGo);
  EXPECT_EQ(runtime_of("/srv/app", kElf + std::string(40'000, 'x') + note, ""), Runtime::kNative);
}

TEST(RuntimeTest, WhatCannotBeReadIsUnknown) {
  EXPECT_EQ(runtime_of("", "", ""), Runtime::kUnknown);
  EXPECT_EQ(detect_runtime(0x7fff'fff0), Runtime::kUnknown);
}

TEST(RuntimeTest, ThisProgramIsNative) { EXPECT_EQ(detect_runtime(::getpid()), Runtime::kNative); }

}  // namespace
}  // namespace tailward::probe
