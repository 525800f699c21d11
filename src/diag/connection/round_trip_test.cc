#include "diag/connection/round_trip.h"

#include <gtest/gtest.h>

#include <chrono>

namespace tailward::diag {
namespace {

using namespace std::chrono_literals;
using tcp::kClient;
using tcp::kServer;

TEST(RoundTripTest, UnknownUntilAKernelHasAcknowledged) {
  ServiceRoundTrips service;
  RoundTripEstimator rtt(service, {});
  EXPECT_FALSE(rtt.known(kClient));
  EXPECT_EQ(rtt.to(kClient), 0ms);
  EXPECT_EQ(rtt.upper_bound(kClient), 0ms);
  rtt.bound(kClient, 20ms);
  EXPECT_EQ(rtt.to(kClient), 0ms);
  EXPECT_EQ(rtt.upper_bound(kClient), 20ms);
  rtt.sample(kClient, 50ms);  // a delayed ACK
  EXPECT_TRUE(rtt.known(kClient));
  EXPECT_EQ(rtt.to(kClient), 20ms);
  rtt.sample(kClient, -1ms);
  EXPECT_EQ(rtt.smallest_sample(kClient), 50ms);
}

TEST(RoundTripTest, AllClientsShareTheWayToTheServerOnly) {
  ServiceRoundTrips service;
  RoundTripEstimator first(service, {}), second(service, {});
  first.bound(kServer, 5ms);
  first.bound(kClient, 5ms);
  second.sample(kServer, 40ms);
  second.sample(kClient, 40ms);
  EXPECT_EQ(second.to(kServer), 5ms);
  EXPECT_EQ(second.to(kClient), 40ms);
}

TEST(RoundTripTest, AtTheServerThereIsNoWayToIt) {
  ServiceRoundTrips service;
  RoundTripEstimator rtt(service, {.at_server = true});
  rtt.sample(kServer, 40ms);
  EXPECT_TRUE(rtt.known(kServer));
  EXPECT_EQ(rtt.to(kServer), 0ms);
  EXPECT_FALSE(rtt.known(kClient));
}

tcp::Segment stamped(std::uint32_t value, std::uint32_t echo, std::uint32_t payload) {
  tcp::Segment s;
  s.ts_value = value;
  s.ts_echo = echo;
  s.payload = payload;
  return s;
}

TEST(RoundTripTest, DataThatEchoATimeStampBoundTheWay) {
  ServiceRoundTrips service;
  RoundTripEstimator rtt(service, {});
  rtt.follow_time_stamps(kClient, stamped(500, 0, 0), 100ms);
  rtt.follow_time_stamps(kClient, stamped(500, 0, 0), 105ms);     // the first of its kind counts
  rtt.follow_time_stamps(kServer, stamped(900, 499, 10), 107ms);  // an echo of an older one
  EXPECT_EQ(rtt.upper_bound(kServer), 0ms);
  rtt.follow_time_stamps(kServer, stamped(900, 500, 10), 112ms);
  EXPECT_EQ(rtt.upper_bound(kServer), 12ms);
  rtt.follow_time_stamps(kServer, stamped(900, 500, 10), 113ms);  // echoes count once
  EXPECT_EQ(rtt.upper_bound(kServer), 12ms);
}

TEST(RoundTripTest, APureAckEchoesAsItLikes) {
  ServiceRoundTrips service;
  RoundTripEstimator rtt(service, {});
  rtt.follow_time_stamps(kClient, stamped(500, 0, 0), 100ms);
  rtt.follow_time_stamps(kServer, stamped(900, 500, 0), 101ms);
  EXPECT_EQ(rtt.upper_bound(kServer), 0ms);
}

}  // namespace
}  // namespace tailward::diag
