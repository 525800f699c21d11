#include "sim_tcp/exchange.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace tailward::sim_tcp {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using ::testing::ElementsAre;

// "12.1 > 200 P": milliseconds, direction (> to the server), payload, flags.
std::string told(const tcp::Segment& s) {
  std::string flags;
  if (s.syn) flags += "S";
  if (s.fin) flags += "F";
  if (s.psh) flags += "P";
  if (s.ack_flag) flags += ".";
  return fmt::format("{} {} {}", s.to.port == 80 ? ">" : "<", s.payload, flags);
}

std::vector<std::string> told(const Recording& recording) {
  std::vector<std::string> lines;
  for (const tcp::Segment& s : recording.segments) lines.push_back(told(s));
  return lines;
}

Duration between(const Recording& recording, std::size_t first, std::size_t second) {
  return recording.segments.at(second).at - recording.segments.at(first).at;
}

CapturePlan plan_of(Script client, Script server) {
  CapturePlan plan;
  plan.link.delay = milliseconds(1);
  plan.connections = {{.client = std::move(client), .server = std::move(server)}};
  return plan;
}

TEST(Exchange, HandshakeRequestAndAnswer) {
  const Recording seen =
      run(plan_of({write(200), read(500)}, {read(200), wait(milliseconds(3)), write(500)}));
  // Both ends are still in their quick phase: each segment of data is acknowledged at once.
  EXPECT_THAT(told(seen),
              ElementsAre("> 0 S", "< 0 S.", "> 0 .", "> 200 P.", "< 0 .", "< 500 P.", "> 0 ."));
  EXPECT_EQ(seen.scripts_done, 2u);
  EXPECT_GE(between(seen, 0, 2), milliseconds(2));
}

TEST(Exchange, SameSeedSameRecording) {
  CapturePlan plan = plan_of({write(200'000), read(300'000)}, {read(200'000), write(300'000)});
  plan.link.loss = 0.05;
  const Recording one = run(plan), two = run(plan);
  ASSERT_EQ(one.segments.size(), two.segments.size());
  for (std::size_t i = 0; i < one.segments.size(); ++i) {
    EXPECT_EQ(one.segments[i].at, two.segments[i].at);
    EXPECT_EQ(one.segments[i].seq, two.segments[i].seq);
  }
}

// Request and answer, again and again, with `server` in the place of the last answer.
CapturePlan after_warm_up(Script last_answer, std::uint64_t bytes) {
  Script client, server;
  for (int i = 0; i < 20; ++i) {
    client.insert(client.end(), {write(200), read(300), wait(milliseconds(5))});
    server.insert(server.end(), {read(200), write(300)});
  }
  client.insert(client.end(), {write(200), read(bytes)});
  server.push_back(read(200));
  server.insert(server.end(), last_answer.begin(), last_answer.end());
  return plan_of(client, server);
}

TEST(Exchange, NagleHoldsTheSecondWriteUntilTheDelayedAck) {
  CapturePlan plan = after_warm_up({write(100), write(700)}, 800);
  plan.server.nodelay = false;
  const Recording seen = run(plan);
  const auto lines = told(seen);
  ASSERT_GE(lines.size(), 4u);
  const std::size_t n = lines.size();
  const std::vector<std::string> tail(lines.end() - 4, lines.end() - 1);
  EXPECT_THAT(tail, ElementsAre("< 100 P.", "> 0 .", "< 700 P."));
  const Duration held = between(seen, n - 4, n - 2);
  EXPECT_GE(held, milliseconds(42));
  EXPECT_LE(held, milliseconds(51));
}

TEST(Exchange, NodelaySendsBothWritesAtOnce) {
  const Recording seen = run(after_warm_up({write(100), write(700)}, 800));
  const auto lines = told(seen);
  const auto head = std::find(lines.begin(), lines.end(), "< 100 P.");
  ASSERT_NE(head, lines.end());
  EXPECT_EQ(*(head + 1), "< 700 P.");
}

TEST(Exchange, CorkedRestLeavesAfterTheKernelsPatience) {
  const Recording seen =
      run(plan_of({write(200), read(2000)}, {read(200), cork(true), write(2000)}));
  const auto lines = told(seen);
  const auto rest = std::find(lines.begin(), lines.end(), "< 552 P.");
  ASSERT_NE(rest, lines.end());
  const auto at = static_cast<std::size_t>(rest - lines.begin());
  EXPECT_EQ(lines.at(at - 1), "> 0 .");
  EXPECT_GE(between(seen, at - 1, at), milliseconds(200));
  EXPECT_LE(between(seen, at - 1, at), milliseconds(212));
}

TEST(Exchange, UncorkedRestLeavesAtOnce) {
  const Recording seen =
      run(plan_of({write(200), read(2000)}, {read(200), cork(true), write(2000), cork(false)}));
  EXPECT_LT(seen.length, milliseconds(60));
}

TEST(Exchange, LostSynIsSentAgainAfterASecond) {
  CapturePlan plan = plan_of({write(200), read(500)}, {read(200), write(500)});
  plan.capture = CapturePlan::Capture::kClient;
  plan.link.syn_loss = 0.5;
  plan.until = std::chrono::seconds(30);
  bool seen_twice = false;
  for (plan.seed = 1; plan.seed <= 20 && !seen_twice; ++plan.seed) {
    const Recording seen = run(plan);
    const auto lines = told(seen);
    if (seen.lost != 1 || lines.at(1) != "> 0 S") continue;
    seen_twice = true;
    EXPECT_GE(between(seen, 0, 1), milliseconds(1000));
    EXPECT_LE(between(seen, 0, 1), milliseconds(1008));
  }
  EXPECT_TRUE(seen_twice) << "no seed of 20 lost the SYN";
}

TEST(Exchange, EverythingArrivesWhateverIsLost) {
  CapturePlan plan = plan_of({write(100'000), read(200'000)}, {read(100'000), write(200'000)});
  plan.until = std::chrono::seconds(600);
  for (plan.seed = 1; plan.seed <= 50; ++plan.seed) {
    plan.link.loss = plan.link.syn_loss = 0.1;
    EXPECT_EQ(run(plan).scripts_done, 2u) << "seed " << plan.seed;
  }
}

TEST(Exchange, AFullListenerDropsWhoComesThen) {
  CapturePlan plan = plan_of({}, {});
  plan.backlog = 2;
  plan.accept_rest = milliseconds(20);
  const ConnectionPlan one{.client = {write(200), read(500)}, .server = {read(200), write(500)}};
  plan.connections.assign(12, one);
  const Recording seen = run(plan);
  EXPECT_GT(seen.overflows, 0u);
  EXPECT_EQ(seen.scripts_done, 24u);
  EXPECT_GE(seen.length, milliseconds(200));
}

TEST(Exchange, AReaderThatRestsShutsItsWindowAndTheSenderProbes) {
  CapturePlan plan = plan_of({write(100'000), read(10)},
                             {wait(std::chrono::seconds(1)), read(100'000), write(10)});
  plan.server.receive_buffer = 16 * 1024;
  const Recording seen = run(plan);
  EXPECT_EQ(seen.scripts_done, 2u);
  std::size_t shut = 0, probes = 0;
  for (const tcp::Segment& s : seen.segments) {
    if (s.from.port == 80 && s.window == 0) ++shut;
    if (s.to.port == 80 && shut > 0 && s.payload == 0 && !s.syn) ++probes;
  }
  EXPECT_GT(shut, 0u);
  EXPECT_GT(probes, 0u);
}

}  // namespace
}  // namespace tailward::sim_tcp
