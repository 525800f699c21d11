#include <gtest/gtest.h>

#include "io/transport.h"

namespace tailward::io {
namespace {

TEST(HostPortTest, ReadsNamesAddressesAndBarePorts) {
  EXPECT_EQ(*parse_host_port("example.org:443"), (HostPort{"example.org", 443}));
  EXPECT_EQ(*parse_host_port("10.0.0.1:80"), (HostPort{"10.0.0.1", 80}));
  EXPECT_EQ(*parse_host_port("[::1]:8080"), (HostPort{"::1", 8080}));
  EXPECT_EQ(*parse_host_port("[fe80::1%eth0]:1"), (HostPort{"fe80::1%eth0", 1}));
  EXPECT_EQ(*parse_host_port(":80"), (HostPort{"", 80}));
  EXPECT_EQ(*parse_host_port("a:0"), (HostPort{"a", 0}));
  EXPECT_EQ(*parse_host_port("a:65535"), (HostPort{"a", 65535}));
}

TEST(HostPortTest, RefusesTheRestWithAHint) {
  for (const char* text :
       {"",          "host",        "host:",          "host:http", "host:65536", "host:-1",
        "host:+1",   "host: 80",    "::1:80",         "[::1]",     "[::1]80",    "[::1",
        "[host]:80", "[]:80",       "http://host:80", "ho st:80",  "host:80/",   "host:80 ",
        "a/b:80",    "[::1]:80:90", "[::1 ]:80"}) {
    const Result<HostPort> parsed = parse_host_port(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().kind, ErrorKind::kInvalid) << text;
    EXPECT_FALSE(parsed.error().hint.empty()) << text;
    EXPECT_NE(parsed.error().message.find(text), std::string::npos) << text;
  }
}

TEST(HostPortTest, WritesWhatItReads) {
  for (const char* text : {"example.org:443", "10.0.0.1:80", "[::1]:8080", ":80", "a:0"}) {
    EXPECT_EQ(to_string(*parse_host_port(text)), text);
  }
}

}  // namespace
}  // namespace tailward::io
