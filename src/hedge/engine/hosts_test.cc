#include "hedge/engine/hosts.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <set>

namespace tailward::hedge {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kStart{1s};

Hosts hosts_of(int count, const HostsConfig& config = {}) {
  Hosts hosts(config);
  for (int i = 0; i < count; ++i) EXPECT_EQ(*hosts.add(fmt::format("host{}", i)), i);
  return hosts;
}

// Every host that is drawn in many draws.
std::set<HostIndex> drawn(Hosts& hosts, std::span<const HostIndex> excluded,
                          TimePoint now = kStart) {
  Rng rng(1);
  std::set<HostIndex> all;
  for (int i = 0; i < 500; ++i) all.insert(hosts.choose(excluded, now, rng));
  return all;
}

void fail_in_a_row(Hosts& hosts, HostIndex host, int times, TimePoint now) {
  for (int i = 0; i < times; ++i) hosts.attempt_failed(host, now);
}

TEST(HostsTest, WithoutHostsThereIsNone) {
  Hosts hosts;
  Rng rng(1);
  EXPECT_EQ(hosts.choose({}, kStart, rng), kNoHost);
}

TEST(HostsTest, TheOnlyHostIsChosenUnlessItIsExcluded) {
  Hosts hosts = hosts_of(1);
  const std::array<HostIndex, 1> used{0};
  EXPECT_EQ(drawn(hosts, {}), (std::set<HostIndex>{0}));
  EXPECT_EQ(drawn(hosts, used), (std::set<HostIndex>{kNoHost}));
}

TEST(HostsTest, EveryHostButTheExcludedIsDrawn) {
  Hosts hosts = hosts_of(5);
  const std::array<HostIndex, 2> used{1, 4};
  EXPECT_EQ(drawn(hosts, {}), (std::set<HostIndex>{0, 1, 2, 3, 4}));
  EXPECT_EQ(drawn(hosts, used), (std::set<HostIndex>{0, 2, 3}));
  const std::array<HostIndex, 5> all{0, 1, 2, 3, 4};
  EXPECT_EQ(drawn(hosts, all), (std::set<HostIndex>{kNoHost}));
}

TEST(HostsTest, TheLessBusyOfTwoIsChosen) {
  Hosts hosts = hosts_of(2);
  hosts.attempt_begins(0, kStart);
  EXPECT_EQ(drawn(hosts, {}), (std::set<HostIndex>{1}));
  hosts.attempt_ends(0);
  EXPECT_EQ(drawn(hosts, {}), (std::set<HostIndex>{0, 1}));
}

TEST(HostsTest, TheBusiestOfManyIsNeverChosen) {
  Hosts hosts = hosts_of(4);
  for (int i = 0; i < 3; ++i) hosts.attempt_begins(2, kStart);
  EXPECT_EQ(drawn(hosts, {}), (std::set<HostIndex>{0, 1, 3}));
  EXPECT_EQ(hosts.at(2).attempts, 3u);
  EXPECT_EQ(hosts.at(2).in_flight, 3u);
}

TEST(HostsTest, AHostThatFailsTimeAndAgainIsSuspendedForAWhile) {
  Hosts hosts = hosts_of(3);
  fail_in_a_row(hosts, 1, 2, kStart);
  EXPECT_EQ(drawn(hosts, {}).count(1), 1u) << "twice is not yet in a row";
  fail_in_a_row(hosts, 1, 1, kStart);
  EXPECT_EQ(drawn(hosts, {}, kStart + 1s - 1ns), (std::set<HostIndex>{0, 2}));
  EXPECT_EQ(drawn(hosts, {}, kStart + 1s), (std::set<HostIndex>{0, 1, 2}));
}

TEST(HostsTest, ASuccessInBetweenStartsTheRowAnew) {
  Hosts hosts = hosts_of(2);
  fail_in_a_row(hosts, 0, 2, kStart);
  hosts.attempt_answered(0);
  fail_in_a_row(hosts, 0, 2, kStart);
  EXPECT_EQ(drawn(hosts, {}), (std::set<HostIndex>{0, 1}));
  EXPECT_EQ(hosts.at(0).failures, 4u);
}

TEST(HostsTest, ASuspensionDoublesUpToItsLimit) {
  Hosts hosts = hosts_of(2);
  fail_in_a_row(hosts, 0, 3, kStart);
  TimePoint now = kStart;
  for (const Duration length : {1s, 2s, 4s, 8s, 16s, 30s, 30s}) {
    EXPECT_EQ(hosts.at(0).suspended_until, now + length);
    now += length;
    fail_in_a_row(hosts, 0, 1, now);
  }
}

// A host that restarts resets all its connections at once: that is one fault.
TEST(HostsTest, ABurstOfFailuresIsOneSuspension) {
  Hosts hosts = hosts_of(2);
  fail_in_a_row(hosts, 0, 50, kStart);
  EXPECT_EQ(hosts.at(0).suspended_until, kStart + 1s);
  EXPECT_EQ(hosts.at(0).failures, 50u);
}

TEST(HostsTest, ASuspendedHostIsBetterThanNone) {
  Hosts hosts = hosts_of(3);
  for (HostIndex host = 0; host < 3; ++host) fail_in_a_row(hosts, host, 3, kStart);
  EXPECT_EQ(drawn(hosts, {}), (std::set<HostIndex>{0, 1, 2})) << "all suspended: none is";
  const std::array<HostIndex, 2> used{0, 2};
  EXPECT_EQ(drawn(hosts, used), (std::set<HostIndex>{1}));
}

TEST(HostsTest, AnIdleHostGivesItsEstimatorBackAndGetsAnotherWhenItIsNeeded) {
  Hosts hosts = hosts_of(2, {.evict_after = 60s});
  hosts.attempt_begins(0, kStart);
  hosts.first_attempts(0).record(5ms);
  hosts.decay(1, kStart + 61s);
  EXPECT_NE(hosts.at(0).first_attempts, nullptr) << "it is in use";
  hosts.attempt_ends(0);
  hosts.decay(1, kStart + 60s);
  EXPECT_NE(hosts.at(0).first_attempts, nullptr);
  hosts.decay(1, kStart + 60s + 1ns);
  EXPECT_EQ(hosts.at(0).first_attempts, nullptr);
  EXPECT_EQ(hosts.first_attempts(0).weight(), 0);
}

TEST(HostsTest, AgesTheSamplesOfAllHosts) {
  Hosts hosts = hosts_of(2);
  for (HostIndex host = 0; host < 2; ++host) {
    for (int i = 0; i < 8; ++i) hosts.first_attempts(host).record(5ms);
  }
  hosts.decay(0.5, kStart);
  EXPECT_DOUBLE_EQ(hosts.first_attempts(0).weight(), 4);
  EXPECT_DOUBLE_EQ(hosts.first_attempts(1).weight(), 4);
}

TEST(HostsTest, APoolHasALimit) {
  Hosts hosts = hosts_of(static_cast<int>(kHostsMax));
  const Result<HostIndex> beyond = hosts.add("one more");
  ASSERT_FALSE(beyond.has_value());
  EXPECT_EQ(beyond.error().kind, ErrorKind::kInvalid);
  EXPECT_EQ(hosts.size(), kHostsMax);
}

// A host shifts after five long samples, and is well again after 18 short ones.
const ChangeScale kScale(0.02, 0.6, 16);

bool sample(Hosts& hosts, HostIndex host, bool longer, int times, TimePoint now = kStart) {
  bool turned = false;
  for (int i = 0; i < times; ++i) turned |= hosts.sample_change(host, longer, kScale, now);
  return turned;
}

TEST(HostsTest, AHostThatHasShiftedIsOnProbation) {
  Hosts hosts = hosts_of(3);
  EXPECT_FALSE(sample(hosts, 1, true, 4));
  EXPECT_FALSE(hosts.on_probation(1));
  EXPECT_TRUE(sample(hosts, 1, true, 1, kStart + 3s));
  EXPECT_TRUE(hosts.on_probation(1));
  EXPECT_EQ(hosts.shifted(), 1u);
  EXPECT_EQ(hosts.at(1).shifted_since, kStart + 3s);
  EXPECT_EQ(drawn(hosts, {}), (std::set<HostIndex>{0, 2}));
}

TEST(HostsTest, AHostOnProbationIsBetterThanNone) {
  Hosts hosts = hosts_of(3);
  sample(hosts, 1, true, 5);
  const std::array<HostIndex, 2> used{0, 2};
  EXPECT_EQ(drawn(hosts, used), (std::set<HostIndex>{1}));
  const std::array<HostIndex, 3> all{0, 1, 2};
  EXPECT_EQ(drawn(hosts, all), (std::set<HostIndex>{kNoHost}));
}

TEST(HostsTest, WhenMostHaveShiftedNoneIsAvoided) {
  Hosts hosts = hosts_of(3);
  sample(hosts, 1, true, 5);
  hosts.set_probation(false);
  EXPECT_FALSE(hosts.on_probation(1));
  EXPECT_EQ(drawn(hosts, {}), (std::set<HostIndex>{0, 1, 2}));
  hosts.set_probation(true);
  EXPECT_TRUE(hosts.on_probation(1));
}

TEST(HostsTest, AHostThatIsWellAgainBeginsItsEstimatorAnew) {
  Hosts hosts = hosts_of(3);
  sample(hosts, 1, true, 5);
  hosts.first_attempts(1).record(500ms);
  EXPECT_TRUE(sample(hosts, 1, false, 18));
  EXPECT_FALSE(hosts.on_probation(1));
  EXPECT_EQ(hosts.shifted(), 0u);
  EXPECT_EQ(hosts.first_attempts(1).weight(), 0);
}

TEST(HostsTest, AHostThatIsWellAgainWithoutAnEstimatorIsNoTrouble) {
  Hosts hosts = hosts_of(2, {.evict_after = 60s});
  sample(hosts, 0, true, 5);
  hosts.attempt_begins(0, kStart);
  hosts.attempt_ends(0);
  hosts.decay(1, kStart + 61s);
  ASSERT_EQ(hosts.at(0).first_attempts, nullptr);
  EXPECT_TRUE(sample(hosts, 0, false, 18));
}

TEST(HostsTest, OneRequestInTwoHundredIsAProbe) {
  Hosts hosts = hosts_of(3);
  EXPECT_EQ(hosts.probe(kStart, true), kNoHost) << "nobody is on probation";
  sample(hosts, 2, true, 5);
  TimePoint now = kStart;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 199; ++i) ASSERT_EQ(hosts.probe(now += 10ms, true), kNoHost);
    EXPECT_EQ(hosts.probe(now += 10ms, true), 2);
  }
}

TEST(HostsTest, WithManyRequestsAProbeComesEveryTenthOfASecond) {
  Hosts hosts = hosts_of(3);
  sample(hosts, 2, true, 5);
  int probes = 0;
  for (int i = 0; i < 100'000; ++i) probes += hosts.probe(kStart + i * 10us, true) == 2 ? 1 : 0;
  EXPECT_EQ(probes, 10);  // in one second
}

TEST(HostsTest, AHostGetsOneProbeAtATime) {
  Hosts hosts = hosts_of(3);
  sample(hosts, 2, true, 5);
  hosts.attempt_begins(2, kStart);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(hosts.probe(kStart + i * 1ms, true), kNoHost);
  hosts.attempt_ends(2);
  EXPECT_EQ(hosts.probe(kStart + 1s, true), 2);
}

TEST(HostsTest, ASuspendedHostIsNotProbed) {
  Hosts hosts = hosts_of(3);
  sample(hosts, 2, true, 5);
  fail_in_a_row(hosts, 2, 3, kStart);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(hosts.probe(kStart + 999ms, true), kNoHost);
  EXPECT_EQ(hosts.probe(kStart + 1s, true), 2);
}

TEST(HostsTest, ForgottenShiftsAreNone) {
  Hosts hosts = hosts_of(3);
  sample(hosts, 0, true, 5);
  sample(hosts, 1, true, 4);
  hosts.forget_latencies();
  EXPECT_EQ(hosts.shifted(), 0u);
  EXPECT_FALSE(hosts.on_probation(0));
  EXPECT_FALSE(sample(hosts, 1, true, 4)) << "nor is what was on its way there";
}

}  // namespace
}  // namespace tailward::hedge
