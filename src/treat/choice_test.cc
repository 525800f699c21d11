#include "treat/choice.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tailward::treat {
namespace {

tcp::SocketAddress peer(std::string_view address, std::uint16_t port) {
  return {parse_remote(address)->address, port};
}

tcp::SocketFacts a_socket(tcp::TcpState state, std::uint16_t local, std::uint16_t remote) {
  tcp::SocketFacts facts;
  facts.state = state;
  facts.local.port = local;
  facts.remote.port = remote;
  return facts;
}

TEST(ChoiceTest, TakesForTheServersPortTheOneThatIsListenedOn) {
  using tcp::TcpState;
  const std::vector<tcp::SocketFacts> both = {
      a_socket(TcpState::kListen, 60'000, 0),
      a_socket(TcpState::kEstablished, 60'000, 33'000),  // a server above the ephemeral ports
      a_socket(TcpState::kEstablished, 33'001, 50'051),  // a client of such a server
  };
  EXPECT_EQ(server_ports(both), (std::set<std::uint16_t>{60'000, 50'051}));
}

TEST(ChoiceTest, MatchesAnAddressANetworkOrAnAddressWithItsPort) {
  const auto one = peer("10.1.2.3", 4000);
  EXPECT_TRUE(parse_remote("10.1.2.3")->matches(one));
  EXPECT_FALSE(parse_remote("10.1.2.4")->matches(one));
  EXPECT_TRUE(parse_remote("10.1.2.3:4000")->matches(one));
  EXPECT_FALSE(parse_remote("10.1.2.3:4001")->matches(one));
  EXPECT_TRUE(parse_remote("10.0.0.0/8")->matches(one));
  EXPECT_TRUE(parse_remote("10.1.2.2/31")->matches(one));
  EXPECT_FALSE(parse_remote("10.1.2.4/31")->matches(one));
  EXPECT_TRUE(parse_remote("0.0.0.0/0")->matches(one));
  const auto six = peer("2001:db8::7", 443);
  EXPECT_TRUE(parse_remote("2001:db8::/32")->matches(six));
  EXPECT_FALSE(parse_remote("2001:db9::/32")->matches(six));
  EXPECT_TRUE(parse_remote("[2001:db8::7]:443")->matches(six));
  EXPECT_FALSE(parse_remote("0.0.0.0/0")->matches(six));
  // A socket that listens on both families has its IPv4 peers as mapped addresses.
  EXPECT_TRUE(parse_remote("::ffff:10.1.2.3")->matches(one));
}

TEST(ChoiceTest, RefusesWhatIsNoAddress) {
  for (const char* bad : {"", "10.1.2", "10.1.2.3:", "10.1.2.3:0", "10.1.2.3:70000", "10.0.0.0/33",
                          "10.0.0.0/", "[::1]", "[::1]:", "::1/129", "localhost", "1.2.3.4/8:80"}) {
    EXPECT_FALSE(parse_remote(bad)) << bad;
  }
}

TEST(ChoiceTest, DrawsHalfOfTheConnectionsOfEachPeerAndOfTheBusyOnes) {
  std::vector<Candidate> candidates;
  for (std::uint16_t i = 0; i < 20; ++i) {
    candidates.push_back({peer(i % 2 == 0 ? "10.0.0.1" : "10.0.0.2", i), i < 10 ? 1'000'000u : 5u});
  }
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Rng rng(seed);
    const std::vector<bool> treated = draw_half(candidates, rng);
    int first_peer = 0;
    int busy = 0;
    for (std::size_t i = 0; i < treated.size(); ++i) {
      first_peer += treated[i] && i % 2 == 0 ? 1 : 0;
      busy += treated[i] && i < 10 ? 1 : 0;
    }
    EXPECT_EQ(first_peer, 5);
    EXPECT_NEAR(busy, 5, 1);  // five busy ones of each peer: two pairs and one over
  }
}

TEST(ChoiceTest, TreatsEachConnectionWithTheSameChance) {
  std::vector<Candidate> candidates;
  for (std::uint16_t i = 0; i < 5; ++i) candidates.push_back({peer("10.0.0.1", i), i});
  std::vector<int> times(5);
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    Rng rng(seed);
    const std::vector<bool> treated = draw_half(candidates, rng);
    for (std::size_t i = 0; i < 5; ++i) times[i] += treated[i] ? 1 : 0;
  }
  for (const int count : times) EXPECT_NEAR(count, 500, 60);
}

TEST(ChoiceTest, EachPairOfSlicesHasOneWithTheTreatment) {
  Rng rng(1);
  const std::vector<bool> slices = draw_slices(50, rng);
  ASSERT_EQ(slices.size(), 100u);
  int first = 0;
  for (std::size_t i = 0; i < slices.size(); i += 2) {
    EXPECT_NE(slices[i], slices[i + 1]);
    first += slices[i] ? 1 : 0;
  }
  EXPECT_GT(first, 10);
  EXPECT_LT(first, 40);
}

}  // namespace
}  // namespace tailward::treat
