#include <gtest/gtest.h>

#include "io/transport.h"

namespace tailward::io {
namespace {

TEST(EndpointTest, ReadsNamesAddressesAndBarePorts) {
  EXPECT_EQ(*parse_endpoint("example.org:443"), (Endpoint{"example.org", 443}));
  EXPECT_EQ(*parse_endpoint("10.0.0.1:80"), (Endpoint{"10.0.0.1", 80}));
  EXPECT_EQ(*parse_endpoint("[::1]:8080"), (Endpoint{"::1", 8080}));
  EXPECT_EQ(*parse_endpoint("[fe80::1%eth0]:1"), (Endpoint{"fe80::1%eth0", 1}));
  EXPECT_EQ(*parse_endpoint(":80"), (Endpoint{"", 80}));
  EXPECT_EQ(*parse_endpoint("a:0"), (Endpoint{"a", 0}));
  EXPECT_EQ(*parse_endpoint("a:65535"), (Endpoint{"a", 65535}));
}

TEST(EndpointTest, RefusesTheRestWithAHint) {
  for (const char* text :
       {"",          "host",        "host:",          "host:http", "host:65536", "host:-1",
        "host:+1",   "host: 80",    "::1:80",         "[::1]",     "[::1]80",    "[::1",
        "[host]:80", "[]:80",       "http://host:80", "ho st:80",  "host:80/",   "host:80 ",
        "a/b:80",    "[::1]:80:90", "[::1 ]:80"}) {
    const Result<Endpoint> parsed = parse_endpoint(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().kind, ErrorKind::kInvalid) << text;
    EXPECT_FALSE(parsed.error().hint.empty()) << text;
    EXPECT_NE(parsed.error().message.find(text), std::string::npos) << text;
  }
}

TEST(EndpointTest, WritesWhatItReads) {
  for (const char* text : {"example.org:443", "10.0.0.1:80", "[::1]:8080", ":80", "a:0"}) {
    EXPECT_EQ(to_string(*parse_endpoint(text)), text);
  }
}

}  // namespace
}  // namespace tailward::io
