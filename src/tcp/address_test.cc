#include "tcp/address.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tailward::tcp {
namespace {

Address v6(std::initializer_list<unsigned> groups) {
  Address address;
  auto at = address.bytes.begin();
  for (const unsigned group : groups) {
    *at++ = static_cast<std::uint8_t>(group >> 8);
    *at++ = static_cast<std::uint8_t>(group);
  }
  return address;
}

Address v4(unsigned a, unsigned b, unsigned c, unsigned d) {
  return v6({0, 0, 0, 0, 0, 0xffff, a << 8 | b, c << 8 | d});
}

TEST(AddressTest, PrintsAMappedAddressAsFourNumbers) {
  EXPECT_EQ(to_string(v4(10, 0, 0, 1)), "10.0.0.1");
  EXPECT_EQ(to_string(v4(255, 255, 255, 255)), "255.255.255.255");
}

TEST(AddressTest, ShortensTheFirstLongestRunOfZerosOnly) {
  EXPECT_EQ(to_string(v6({0, 0, 0, 0, 0, 0, 0, 0})), "::");
  EXPECT_EQ(to_string(v6({0, 0, 0, 0, 0, 0, 0, 1})), "::1");
  EXPECT_EQ(to_string(v6({0x2001, 0xdb8, 0, 0, 0, 0, 0, 0})), "2001:db8::");
  EXPECT_EQ(to_string(v6({0x2001, 0xdb8, 0, 0, 1, 0, 0, 1})), "2001:db8::1:0:0:1");
  EXPECT_EQ(to_string(v6({0x2001, 0, 0, 1, 0, 0, 0, 1})), "2001:0:0:1::1");
  // A single zero group stays (RFC 5952, section 4.2.2).
  EXPECT_EQ(to_string(v6({0x2001, 0xdb8, 0, 1, 1, 1, 1, 1})), "2001:db8:0:1:1:1:1:1");
  EXPECT_EQ(to_string(v6({0xfe80, 1, 2, 3, 4, 5, 6, 0xabcd})), "fe80:1:2:3:4:5:6:abcd");
}

TEST(AddressTest, PutsThePortBehindAndBracketsAroundIpv6) {
  EXPECT_EQ(to_string(SocketAddress{v4(10, 0, 0, 1), 80}), "10.0.0.1:80");
  EXPECT_EQ(to_string(SocketAddress{v6({0, 0, 0, 0, 0, 0, 0, 1}), 65535}), "[::1]:65535");
}

TEST(AddressTest, KnowsLoopback) {
  EXPECT_TRUE(v4(127, 0, 0, 1).is_loopback());
  EXPECT_TRUE(v4(127, 8, 9, 10).is_loopback());
  EXPECT_FALSE(v4(128, 0, 0, 1).is_loopback());
  EXPECT_TRUE(v6({0, 0, 0, 0, 0, 0, 0, 1}).is_loopback());
  EXPECT_FALSE(v6({0, 0, 0, 0, 0, 0, 0, 0}).is_loopback());
  EXPECT_FALSE(v6({1, 0, 0, 0, 0, 0, 0, 1}).is_loopback());
  EXPECT_FALSE(v6({0, 0, 0, 0, 0, 0, 0, 1}).is_v4());
  EXPECT_TRUE(v4(0, 0, 0, 0).is_v4());
}

}  // namespace
}  // namespace tailward::tcp
