#include "diag/packet_analyser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>
#include <random>

#include "base/rng.h"
#include "diag/testing.h"

namespace tailward::diag::testing {
namespace {

Duration sum(const Turn& t) {
  return t.handshake + t.request + t.wire + t.think + t.response + t.final_ack_wait;
}

Duration stalled(const Turn& turn) {
  return std::chrono::microseconds(
      std::accumulate(turn.stalled_us.begin(), turn.stalled_us.end(), std::uint64_t{0}));
}

TEST(PacketsTest, KnowsWhereTheCaptureWasMade) {
  const std::pair<Place, Vantage> kCases[] = {{kAtServer, Vantage::kServer},
                                              {kAtClient, Vantage::kClient},
                                              {kBetweenThem, Vantage::kBetween},
                                              {kOneHost, Vantage::kUnknown}};
  for (const auto& [place, vantage] : kCases) {
    Capture capture;
    Talk(capture, place).opens();
    const auto analysis = capture.analyse();
    ASSERT_EQ(analysis.connections.size(), 1u);
    EXPECT_EQ(to_string(analysis.connections[0].vantage), to_string(vantage));
    EXPECT_EQ(analysis.connections[0].handshake, place.to_client + place.to_server);
    EXPECT_EQ(analysis.connections[0].rtt_min, place.to_client + place.to_server);
  }
}

TEST(PacketsTest, SequenceNumbersWrapAround) {
  Capture capture;
  Talk talk(capture, kAtServer, {.client_isn = UINT32_MAX - 700, .server_isn = UINT32_MAX - 2000});
  talk.opens();
  for (int i = 0; i < 10; ++i) talk.after(5ms).exchange(200, 1ms, 500);
  talk.after(5ms).client().sends(200);
  talk.after(210ms).client().sends_again(200, 200);
  talk.answer().server().sends(500);
  talk.answer().client().acks();
  const auto analysis = capture.analyse();
  EXPECT_EQ(analysis.turns_seen, 11u);
  EXPECT_EQ(analysis.retransmissions, 1u);
  EXPECT_EQ(analysis.connections[0].bytes_from_client, 2200u);
}

TEST(PacketsTest, ANewSynBetweenTheSamePortsIsANewConnection) {
  Capture capture;
  Talk first(capture, kAtServer);
  first.opens().exchange(100, 1ms, 100);
  Talk second(capture, kAtServer,
              {.began = first.now() + 1s, .client_isn = 77'000, .server_isn = 88'000});
  second.opens().exchange(100, 1ms, 100);
  const auto analysis = capture.analyse();
  EXPECT_EQ(analysis.connections_seen, 2u);
  EXPECT_EQ(analysis.turns_seen, 2u);
  EXPECT_EQ(analysis.retransmissions, 0u);
}

TEST(PacketsTest, AClockThatIsSetBackIsCountedAndGoesOn) {
  Capture capture;
  Talk talk(capture, kAtServer);
  talk.opens().exchange(100, 1ms, 100);
  PacketAnalyser analyser;
  for (const tcp::Segment& s : capture.segments()) analyser.add(s);
  Capture later;
  Talk more(later, kAtServer, {.client_port = 40'001, .began = talk.now() - 1h});
  more.opens().exchange(100, 30ms, 100);
  for (const tcp::Segment& s : later.segments()) analyser.add(s);
  const auto analysis = analyser.finish();
  EXPECT_EQ(analysis.clock_steps, 1u);
  ASSERT_EQ(analysis.turns_seen, 2u);
  EXPECT_EQ(analysis.turns[1].think, 30ms);
}

TEST(PacketsTest, AConnectionSeenFromTheMiddleHasTurnsAndRepliesToTheLowerPort) {
  Capture capture;
  Talk talk(capture, kAtServer, {.client_port = 50'000, .server_port = 5432});
  for (int i = 0; i < 5; ++i) talk.after(5ms).exchange(100, 1ms, 100);
  const auto analysis = capture.analyse();
  EXPECT_EQ(analysis.turns_seen, 5u);
  EXPECT_EQ(analysis.connections[0].server.port, 5432);
  EXPECT_FALSE(analysis.connections[0].saw_start);
}

TEST(PacketsTest, TheNamedServerPortDecidesWhoServes) {
  Capture capture;
  Talk talk(capture, kAtServer, {.client_port = 2'000, .server_port = 9'000});
  talk.exchange(100, 1ms, 100);
  EXPECT_EQ(capture.analyse().connections[0].server.port, 2'000);
  EXPECT_EQ(capture.analyse({}, {9'000}).connections[0].server.port, 9'000);
}

TEST(PacketsTest, AOneSidedCaptureIsSaidToBeOne) {
  Capture capture;
  Talk talk(capture, kAtServer);
  talk.opens();
  for (int i = 0; i < 5; ++i) talk.after(5ms).exchange(100, 1ms, 100);
  auto& all = capture.segments();
  std::erase_if(all, [](const tcp::Segment& s) { return s.from.port == 80; });
  const auto analysis = capture.analyse();
  EXPECT_EQ(analysis.one_sided, 1u);
  EXPECT_TRUE(analysis.connections[0].one_sided);
}

TEST(PacketsTest, ProofsHoldThePacketsAroundTheStall) {
  Capture capture;
  Talk talk(capture, kAtServer);
  talk.opens();
  for (int i = 0; i < 10; ++i) talk.after(5ms).exchange(100, 1ms, 100);
  talk.client().sends(200);
  talk.after(210ms).client().sends_again(200, 200);
  talk.answer().server().sends(500);
  talk.answer().client().acks();
  for (int i = 0; i < 10; ++i) talk.after(5ms).exchange(100, 1ms, 100);
  const auto analysis = capture.analyse();
  ASSERT_EQ(analysis.proofs.size(), 1u);
  const ProofPackets& proof = analysis.proofs[0];
  EXPECT_EQ(proof.connection, 0u);
  EXPECT_EQ(proof.stall.kind, StallKind::kRetransmission);
  EXPECT_TRUE(proof.stall.sender_is_client);
  EXPECT_LE(proof.segments.size(), 48u + 6u);
  for (const std::uint64_t number : proof.stall.packets) {
    EXPECT_TRUE(std::any_of(proof.segments.begin(), proof.segments.end(),
                            [&](const tcp::Segment& s) { return s.number == number; }));
  }
  EXPECT_GT(proof.segments.back().number, proof.stall.packets.back());
}

TEST(PacketsTest, ConnectionsOverTheLimitAreLetGoAndCounted) {
  Capture capture;
  for (std::uint16_t i = 0; i < 30; ++i) {
    Talk talk(capture, kOneHost, {.client_port = static_cast<std::uint16_t>(40'000 + i)});
    talk.after(i * 1ms).opens().exchange(100, 10us, 100);
  }
  const auto analysis = capture.analyse({.connections_max = 10});
  EXPECT_EQ(analysis.connections_seen, 30u);
  EXPECT_EQ(analysis.connections_let_go, 20u);
  EXPECT_EQ(analysis.turns_seen, 30u);
}

TEST(PacketsTest, TurnsOverTheLimitAreASample) {
  Capture capture;
  Talk talk(capture, kOneHost);
  talk.opens();
  for (int i = 0; i < 500; ++i) talk.after(50us).exchange(100, 10us, 100);
  const auto analysis = capture.analyse({.turns_max = 100});
  EXPECT_EQ(analysis.turns_seen, 500u);
  EXPECT_EQ(analysis.latency.count(), 500u);
  EXPECT_EQ(analysis.turns.size(), 100u);
}

// The list of what is kept stays short however many connections come one after the other; the
// memory itself is measured by the sanitizers' builds and by hand.
TEST(PacketsTest, AMillionConnectionsOneAfterTheOther) {
  PacketAnalyser analyser({}, {.connections_max = 1'000, .turns_max = 1'000});
  Capture capture;
  Talk(capture, kOneHost).opens().exchange(100, 10us, 100);
  auto pattern = capture.segments();
  const int connections = std::getenv("TAILWARD_LONG_TESTS") != nullptr ? 1'000'000 : 50'000;
  for (int i = 0; i < connections; ++i) {
    for (tcp::Segment& s : pattern) {
      tcp::Segment copy = s;
      copy.at += i * 1ms;
      tcp::SocketAddress& client = s.to.port == 80 ? copy.from : copy.to;
      client.port = static_cast<std::uint16_t>(1'024 + i % 60'000);
      client.address.bytes[13] = static_cast<std::uint8_t>(i / 60'000);
      analyser.add(copy);
    }
  }
  const auto analysis = analyser.finish();
  EXPECT_EQ(analysis.connections_seen, static_cast<std::uint64_t>(connections));
  EXPECT_EQ(analysis.turns_seen, static_cast<std::uint64_t>(connections));
  EXPECT_EQ(analysis.turns.size(), 1'000u);
  EXPECT_LE(analysis.connections.size(), 1'000u);
}

// Whatever the segments are: no crash, and what should sum sums.
TEST(PacketsTest, ASoupOfRandomSegments) {
  const std::uint64_t seed = std::random_device{}();
  RecordProperty("seed", std::to_string(seed));
  SCOPED_TRACE("seed " + std::to_string(seed));
  for (std::uint64_t round = 0; round < 60; ++round) {
    Rng rng = Rng::stream(seed, round);
    PacketAnalyser analyser({}, {.connections_max = 8, .turns_max = 50, .proofs_max = 3});
    Duration now = round % 2 == 0 ? 0s : 1'700'000'000s;
    std::uint32_t base = static_cast<std::uint32_t>(rng.next());
    for (int i = 0; i < 3'000; ++i) {
      now += Duration{static_cast<std::int64_t>(rng.exponential(rng.chance(0.05) ? 3e8 : 2e5))};
      tcp::Segment s;
      s.at = rng.chance(0.01) ? now - 5s : now;
      s.number = static_cast<std::uint64_t>(i);
      const auto port = static_cast<std::uint16_t>(40'000 + rng.below(12));
      const bool out = rng.chance(0.5);
      s.from = out ? address(1, port) : address(2, 80);
      s.to = out ? address(2, 80) : address(1, port);
      const bool wild = rng.chance(0.02);
      const auto number = [&] {
        return wild ? static_cast<std::uint32_t>(rng.next())
                    : base + static_cast<std::uint32_t>(rng.below(9'000));
      };
      s.seq = number();
      s.ack = number();
      s.ack_flag = rng.chance(0.95);
      s.payload = static_cast<std::uint32_t>(rng.chance(0.4) ? 0 : rng.below(3'000));
      s.window = static_cast<std::uint16_t>(rng.chance(0.1) ? 0 : rng.below(65'536));
      s.syn = rng.chance(0.03);
      s.fin = rng.chance(0.02);
      s.rst = rng.chance(0.005);
      s.ip_id = static_cast<std::uint16_t>(rng.below(4));
      if (rng.chance(0.5)) s.ts_value = static_cast<std::uint32_t>(now / 1ms);
      if (rng.chance(0.1)) s.window_scale = static_cast<std::uint8_t>(rng.below(256));
      if (rng.chance(0.1)) s.mss = static_cast<std::uint16_t>(rng.below(65'536));
      s.sack_count = static_cast<std::uint8_t>(rng.chance(0.1) ? rng.below(5) : 0);
      for (auto& block : s.sack) block = {number(), number()};
      analyser.add(s);
      if (rng.chance(0.001)) base += 1'000'000'000;
    }
    const auto analysis = analyser.finish();
    EXPECT_EQ(analysis.packets, 3'000u);
    for (const Turn& turn : analysis.turns) {
      EXPECT_EQ(sum(turn), turn.total);
      EXPECT_LE(stalled(turn), turn.total);
      for (const Duration part : {turn.handshake, turn.request, turn.wire, turn.think,
                                  turn.response, turn.final_ack_wait}) {
        EXPECT_GE(part, Duration{0});
      }
    }
    for (const StallPattern& pattern : analysis.patterns) EXPECT_GE(pattern.total, Duration{0});
    const auto diagnosis = diagnose_network({.packets = &analysis});
    EXPECT_FALSE(diagnosis.sentence.empty());
  }
}

}  // namespace
}  // namespace tailward::diag::testing
