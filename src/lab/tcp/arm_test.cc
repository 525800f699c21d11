#include "lab/tcp/arm.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "lab/experiments.h"
#include "lab/tcp/buffers.h"
#include "lab/tcp/interlock.h"
#include "lab/tcp/nodelay_batch.h"
#include "lab/tcp/nodelay_reqresp.h"
#include "lab/tcp/tcp_result.h"

namespace tailward::lab {
namespace {

using namespace std::chrono_literals;

TcpArm arm(std::string option, std::size_t size, Duration rtt, double ms = 1) {
  TcpArm one;
  one.option = std::move(option);
  one.size = size;
  one.rtt = rtt;
  one.latency.record(from_ms(ms));
  one.medians = {ms};
  return one;
}

TcpArm transfer(std::string option, Duration rtt, double mb_per_s, std::uint32_t in_flight = 0) {
  TcpArm one = arm(std::move(option), 4096, rtt);
  one.mb_per_s = {mb_per_s};
  one.counts.in_flight_max = in_flight;
  return one;
}

std::vector<bool> verdicts(const std::vector<report::Check>& checks) {
  std::vector<bool> ok;
  for (const report::Check& check : checks) ok.push_back(check.ok);
  return ok;
}

TEST(TcpArmTest, NamesLeaveOutWhatDoesNotVary) {
  EXPECT_EQ(tcp_arm_name("nagle", 64, 1ms), "nagle-64-rtt1");
  EXPECT_EQ(tcp_arm_name("8KiB", 0, 0ms), "8KiB-rtt0");
  EXPECT_EQ(tcp_arm_name("nodelay", 512, std::nullopt), "nodelay-512");
}

TEST(TcpArmTest, TheMedianOfAnEvenNumberIsBetweenTheMiddleTwo) {
  EXPECT_EQ(median_of({3, 1, 2}), 2);
  EXPECT_EQ(median_of({4, 1, 2, 3}), 2.5);
  EXPECT_EQ(median_of({}), 0);
}

TEST(TcpArmTest, PairsAreComparedTurnByTurn) {
  // The machine slowed down tenfold in the second turn: both arms did.
  const std::vector<double> a{2, 20, 2};
  const std::vector<double> b{1, 10, 1};
  EXPECT_EQ(paired_ratio(a, b), 2);
  EXPECT_EQ(paired_ratio(a, {}), 0);
}

TEST(TcpArmTest, ThroughputIsTheMedianTransfersOrAllBytesByAllTime) {
  TcpArm one;
  one.bytes = 5'000'000;
  one.seconds = 2;
  EXPECT_EQ(one.throughput(), 2.5);
  one.mb_per_s = {1, 9, 3};
  EXPECT_EQ(one.throughput(), 3);
  EXPECT_EQ(one.steady_throughput(), 3);
  one.steady_mb_per_s = {4};
  EXPECT_EQ(one.steady_throughput(), 4);
}

TEST(TcpArmTest, TheWindowsLimitIsByTheLongerOfBothRoundTrips) {
  TcpArm one = transfer("64KiB", 10ms, 0, 100'000);
  EXPECT_DOUBLE_EQ(one.window_limit(), 10);
  one.smoothed_rtt = 20ms;
  EXPECT_DOUBLE_EQ(one.window_limit(), 5);
  one.smoothed_rtt = 5ms;
  EXPECT_DOUBLE_EQ(one.window_limit(), 10);
  EXPECT_EQ(transfer("64KiB", 0ms, 0, 100'000).window_limit(), 0);
}

TEST(TcpCheckTest, NagleMustBeFasterForSmallBatchesOnly) {
  std::vector<TcpArm> arms{arm("nodelay", 64, 0ms, 10),   arm("nagle", 64, 0ms, 9),
                           arm("nodelay", 512, 0ms, 10),  arm("nagle", 512, 0ms, 11),
                           arm("nodelay", 4096, 0ms, 10), arm("nagle", 4096, 0ms, 99)};
  EXPECT_EQ(verdicts(nodelay_batch_checks(arms)), (std::vector<bool>{true, false}));
}

TEST(TcpCheckTest, ExchangesMayDifferByFifteenPerCentEitherWay) {
  const auto with = [](double nagle_ms) {
    const std::vector<TcpArm> arms{arm("nodelay", 32, 1ms, 1), arm("nagle", 32, 1ms, nagle_ms)};
    return verdicts(nodelay_reqresp_checks(arms));
  };
  EXPECT_EQ(with(1.14), std::vector<bool>{true});
  EXPECT_EQ(with(1.16), std::vector<bool>{false});
  EXPECT_EQ(with(0.84), std::vector<bool>{false});
}

TEST(TcpCheckTest, TheInterlockIsAStepOfFortyMillisecondsAndNothingElseIs) {
  std::vector<TcpArm> arms{arm("nagle", 64, 10ms, 67), arm("nodelay", 64, 10ms, 10.5),
                           arm("one-write", 64, 10ms, 10.5)};
  EXPECT_EQ(verdicts(interlock_checks(arms)), (std::vector<bool>{true, true, true}));
  arms = {arm("nagle", 64, 0ms, 1), arm("nodelay", 64, 0ms, 1.5), arm("nagle", 64, 10ms, 82)};
  EXPECT_EQ(verdicts(interlock_checks(arms)), (std::vector<bool>{false, false, false}));
}

TEST(TcpCheckTest, SmallBuffersMustBeSlowAndWindowsTheLimit) {
  std::vector<TcpArm> arms{
      transfer("default", 0ms, 1000),     transfer("8KiB", 0ms, 590),
      transfer("default", 10ms, 100),     transfer("8KiB", 10ms, 70, 700'000),
      transfer("64KiB", 10ms, 6, 85'000), transfer("1MiB", 10ms, 74, 1'000'000)};
  // Small against default on each path, then each window at 10 ms.
  EXPECT_EQ(verdicts(buffers_checks(arms)), (std::vector<bool>{true, false, true, false, false}));
}

TEST(TcpCheckTest, WhatWasNotMeasuredIsNotJudged) {
  const std::vector<TcpArm> arms{transfer("8KiB", 0ms, 1), transfer("64KiB", 1ms, 1, 1000),
                                 arm("nagle", 64, 0ms)};
  EXPECT_TRUE(buffers_checks(arms).empty());
  EXPECT_TRUE(nodelay_batch_checks(arms).empty());
  EXPECT_TRUE(nodelay_reqresp_checks(arms).empty());
}

TEST(TcpExperimentTest, TheJsonKeepsTheContractsNames) {
  TcpResult result;
  result.arms = {transfer("8KiB", 10ms, 0.8, 10'000)};
  result.arms[0].name = "8KiB-rtt10";
  result.arms[0].article.mb_per_s = 238.1;
  const Experiment experiment = buffers();
  const report::Json json = to_json(experiment, result, {});
  const report::Json& one = json["arms"][0];
  for (const char* field : {"median_ms", "p99_ms", "mb_per_s", "rtt_ms", "option", "size"}) {
    EXPECT_TRUE(one.contains(field)) << field;
  }
  EXPECT_EQ(one["rtt_ms"], 10.0);
  EXPECT_EQ(one["mb_per_s"], 0.8);
  EXPECT_EQ(one["article"]["mb_per_s"], 238.1);
  // Nothing was counted: unknown, not 0.
  EXPECT_TRUE(one["segments"].is_null());
  result.arms[0].counts = {.source = CountSource::kTcpInfo, .messages = 2, .segments = 6};
  const report::Json counted = to_json(experiment, result, {})["arms"][0];
  EXPECT_EQ(counted["segments_per_message"], 3.0);
  EXPECT_TRUE(counted["zero_windows"].is_null());
}

TEST(TcpExperimentTest, EveryExperimentListsTheArmsOfItsTable) {
  EXPECT_EQ((*find_experiment("nodelay-batch"))->arms.size(), 6U);
  EXPECT_EQ((*find_experiment("nodelay-reqresp"))->arms.size(), 24U);
  EXPECT_EQ((*find_experiment("interlock"))->arms.size(), 9U);
  EXPECT_EQ((*find_experiment("buffers"))->arms.front(), "default-rtt0");
}

}  // namespace
}  // namespace tailward::lab
