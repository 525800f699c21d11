// The servers of the simulator, on the ordered log of how attempts ended.
#include "sim/service.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace tailward::sim {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr Duration kSettled = 10s;

// A service with the log of what its client is told: "token at time since the start".
struct Bench {
  explicit Bench(const ServiceConfig& config)
      : start(timers.now()),
        service(config, timers, 1, [this](std::uint64_t token, const hedge::Outcome& outcome) {
          const bool good = outcome.result == hedge::Outcome::Class::kGood;
          log.push_back(fmt::format("{}{} {:g}ms", good ? "" : "failed ", token,
                                    to_ms(timers.now() - start)));
        }) {}

  void until(Duration at) { timers.advance_to(start + at); }

  // Attempts 1 to `count` go to host 0, one is cancelled, and then everything runs to its end.
  void send_and_cancel(std::uint64_t count, std::uint64_t cancelled, Duration at) {
    std::vector<Service::JobId> jobs;
    for (std::uint64_t i = 1; i <= count; ++i) jobs.push_back(service.send(0, 0, i));
    until(at);
    service.cancel(jobs[cancelled - 1]);
    until(kSettled);
  }

  io::Timers timers;
  TimePoint start;
  std::vector<std::string> log;
  Service service;
};

HostConfig host(Duration work) { return {.name = "host", .work = Law::constant(work)}; }

ServiceConfig locked(HeedsCancel heeds, std::uint32_t shards = 1) {
  HostConfig one = host(100ms);
  one.lock = 0;
  one.heeds_cancel = heeds;
  return {.hosts = {one, one}, .locks = {{.hold = Law::constant(10ms), .shards = shards}}};
}

TEST(ServiceTest, AResponseTakesTheWorkAndTheNetworkTwice) {
  ServiceConfig config{.hosts = {host(20ms)}, .network = 3ms};
  Bench bench(config);
  bench.service.send(0, 0, 7);
  EXPECT_EQ(bench.service.jobs(), 1u);
  bench.until(26ms - 1ns);
  EXPECT_THAT(bench.log, IsEmpty());
  bench.until(26ms);
  EXPECT_THAT(bench.log, ElementsAre("7 26ms"));
  EXPECT_EQ(bench.service.jobs(), 0u);
  EXPECT_EQ(bench.service.counters().attempts, 1u);
  EXPECT_EQ(bench.service.counters().answered, 1u);
}

TEST(ServiceTest, NothingEndsFromWithinSend) {
  Bench bench({.hosts = {host(0ms)}});
  bench.service.send(0, 0, 1);
  EXPECT_THAT(bench.log, IsEmpty());
  bench.until(0ms);
  EXPECT_THAT(bench.log, ElementsAre("1 0ms"));
}

TEST(ServiceTest, SlotsAreServedInTheOrderOfArrival) {
  HostConfig narrow = host(10ms);
  narrow.concurrency = 2;
  Bench bench({.hosts = {narrow}});
  for (std::uint64_t token = 1; token <= 5; ++token) bench.service.send(0, 0, token);
  bench.until(kSettled);
  EXPECT_THAT(bench.log, ElementsAre("1 10ms", "2 10ms", "3 20ms", "4 20ms", "5 30ms"));
  EXPECT_EQ(bench.service.counters().slot_queue_max, 3u);
}

TEST(ServiceTest, ACancelledAttemptLeavesTheSlotQueueOfAHostThatHeedsIt) {
  HostConfig narrow = host(10ms);
  narrow.concurrency = 1;
  Bench bench({.hosts = {narrow}});
  bench.send_and_cancel(3, 2, 5ms);
  EXPECT_THAT(bench.log, ElementsAre("1 10ms", "3 20ms"));
  EXPECT_EQ(bench.service.counters().stopped, 1u);
}

TEST(ServiceTest, CancellingWorkFreesItsSlotAtOnce) {
  HostConfig narrow = host(10ms);
  narrow.concurrency = 1;
  Bench bench({.hosts = {narrow}});
  bench.send_and_cancel(2, 1, 4ms);
  EXPECT_THAT(bench.log, ElementsAre("2 14ms"));
}

TEST(ServiceTest, AHostThatHeedsNoCancellationWorksOnForNobody) {
  HostConfig narrow = host(10ms);
  narrow.concurrency = 1;
  narrow.heeds_cancel = HeedsCancel::kNever;
  Bench bench({.hosts = {narrow}});
  bench.send_and_cancel(2, 1, 4ms);
  EXPECT_THAT(bench.log, ElementsAre("2 20ms"));
  EXPECT_EQ(bench.service.counters().answered, 2u);
  EXPECT_EQ(bench.service.counters().unwanted, 1u);
  EXPECT_EQ(bench.service.counters().stopped, 0u);
}

TEST(ServiceTest, TheCancellationNeedsItsTimeOverTheNetwork) {
  HostConfig narrow = host(10ms);
  narrow.concurrency = 1;
  Bench bench({.hosts = {narrow}, .network = 2ms});
  const Service::JobId first = bench.service.send(0, 0, 1);
  bench.service.send(0, 0, 2);
  bench.until(6ms);
  bench.service.cancel(first);
  bench.until(kSettled);
  EXPECT_THAT(bench.log, ElementsAre("2 20ms")) << "heard at 8, worked from then to 18";
}

TEST(ServiceTest, AResponseUnderWayToAClientThatHasGivenUpIsDropped) {
  Bench bench({.hosts = {host(10ms)}, .network = 2ms});
  const Service::JobId job = bench.service.send(0, 0, 1);
  bench.until(13ms);
  bench.service.cancel(job);
  bench.service.cancel(job);
  bench.until(kSettled);
  EXPECT_THAT(bench.log, IsEmpty());
  EXPECT_EQ(bench.service.jobs(), 0u);
}

TEST(ServiceTest, ALockIsHandedOnInOrderAndSharedByHosts) {
  Bench bench(locked(HeedsCancel::kEverywhere));
  bench.service.send(0, 0, 1);
  bench.service.send(1, 1, 2);
  bench.service.send(0, 2, 3);
  bench.until(kSettled);
  EXPECT_THAT(bench.log, ElementsAre("1 110ms", "2 120ms", "3 130ms"));
  const LockCounters& lock = bench.service.lock_counters(0);
  EXPECT_EQ(lock.taken, 3u);
  EXPECT_EQ(lock.waited, 2u);
  EXPECT_EQ(lock.wait, 30ms);
  EXPECT_EQ(lock.wait_max, 20ms);
  EXPECT_EQ(lock.held, 30ms);
  EXPECT_EQ(lock.queue_max, 2u);
  EXPECT_EQ(bench.service.lock_wait(), 30ms);
}

TEST(ServiceTest, ShardsOfALockDoNotWaitForEachOther) {
  Bench bench(locked(HeedsCancel::kEverywhere, 2));
  bench.service.send(0, 4, 1);
  bench.service.send(0, 7, 2);
  bench.service.send(0, 6, 3);
  bench.until(kSettled);
  EXPECT_THAT(bench.log, ElementsAre("1 110ms", "2 110ms", "3 120ms"));
}

// The three ways to heed a cancellation: the first attempt holds the lock until 10 ms, the second
// and the third wait for it; the second is given up at 5 ms.
std::vector<std::string> cancelled_in_the_lock_queue(HeedsCancel heeds, Duration& wait) {
  Bench bench(locked(heeds));
  bench.send_and_cancel(3, 2, 5ms);
  wait = bench.service.lock_wait();
  EXPECT_EQ(bench.service.jobs(), 0u);
  EXPECT_EQ(bench.service.lock_counters(0).taken, 3u) << "nothing interrupts the wait for a mutex";
  return bench.log;
}

TEST(ServiceTest, ACancelledAttemptThatIsHeededEverywhereReleasesTheLockAtOnce) {
  Duration wait{};
  EXPECT_THAT(cancelled_in_the_lock_queue(HeedsCancel::kEverywhere, wait),
              ElementsAre("1 110ms", "3 120ms"));
  EXPECT_EQ(wait, 20ms);
}

TEST(ServiceTest, ACancelledAttemptThatIsNotHeededInTheLockPhaseHoldsItItsFullTime) {
  for (const HeedsCancel heeds : {HeedsCancel::kOutsideLock, HeedsCancel::kNever}) {
    Duration wait{};
    EXPECT_THAT(cancelled_in_the_lock_queue(heeds, wait), ElementsAre("1 110ms", "3 130ms"));
    EXPECT_EQ(wait, 30ms);
  }
}

TEST(ServiceTest, WhatHasBegunUnderTheLockIsCompletedAndTheWorkAfterItIsNot) {
  HostConfig one = host(100ms);
  one.lock = 0;
  one.concurrency = 1;
  Bench bench({.hosts = {one}, .locks = {{.hold = Law::constant(10ms)}}});
  const Service::JobId first = bench.service.send(0, 0, 1);
  bench.service.send(0, 0, 2);
  bench.until(5ms);
  bench.service.cancel(first);
  bench.until(kSettled);
  EXPECT_THAT(bench.log, ElementsAre("2 120ms"));
  EXPECT_EQ(bench.service.lock_counters(0).held, 20ms);
}

TEST(ServiceTest, ManyCancelledWaitersReleaseTheLockInOneBreath) {
  Bench bench(locked(HeedsCancel::kEverywhere));
  bench.service.send(0, 0, 1);
  std::vector<Service::JobId> waiters;
  for (std::uint64_t i = 0; i < 50'000; ++i) waiters.push_back(bench.service.send(1, 0, 100));
  bench.service.send(0, 0, 2);
  for (const Service::JobId& waiter : waiters) bench.service.cancel(waiter);
  bench.until(kSettled);
  EXPECT_THAT(bench.log, ElementsAre("1 110ms", "2 120ms"));
  EXPECT_EQ(bench.service.jobs(), 0u);
}

TEST(ServiceTest, AFaultyHostFailsFastWithTheGivenOutcome) {
  HostConfig faulty = host(100ms);
  faulty.faults = {{.until = 50ms, .error_share = 1, .error_after = 2ms}};
  Bench bench({.hosts = {faulty}});
  bench.service.send(0, 0, 1);
  bench.until(50ms);
  bench.service.send(0, 0, 2);
  bench.until(kSettled);
  EXPECT_THAT(bench.log, ElementsAre("failed 1 2ms", "2 150ms"));
  EXPECT_EQ(bench.service.counters().failed, 1u);
}

TEST(ServiceTest, TheShareOfErrorsIsAsGiven) {
  HostConfig faulty = host(1ms);
  faulty.faults = {{.error_share = 0.3}};
  Bench bench({.hosts = {faulty}});
  for (std::uint64_t i = 0; i < 10'000; ++i) bench.service.send(0, 0, i);
  EXPECT_NEAR(static_cast<double>(bench.service.counters().failed), 3000, 5 * std::sqrt(2100));
}

TEST(ServiceTest, AHungHostAnswersAfterTheHangOrNever) {
  HostConfig stalls = host(10ms);
  stalls.faults = {{.from = 5ms, .until = 105ms, .hang = true}};
  HostConfig hangs = host(10ms);
  hangs.faults = {{.from = 5ms, .hang = true}};
  Bench bench({.hosts = {stalls, hangs}});
  bench.service.send(0, 0, 1);
  const Service::JobId lost = bench.service.send(1, 0, 2);
  bench.until(kSettled);
  EXPECT_THAT(bench.log, ElementsAre("1 110ms"));
  EXPECT_EQ(bench.service.jobs(), 1u);
  bench.service.cancel(lost);
  EXPECT_EQ(bench.service.jobs(), 0u);
}

TEST(ServiceTest, BeyondItsLimitItRefusesAndCounts) {
  Bench bench({.hosts = {host(10ms)}, .jobs_max = 2});
  for (std::uint64_t token = 1; token <= 3; ++token) bench.service.send(0, 0, token);
  bench.until(kSettled);
  EXPECT_THAT(bench.log, ElementsAre("failed 3 0ms", "1 10ms", "2 10ms"));
  EXPECT_EQ(bench.service.counters().refused, 1u);
  EXPECT_EQ(bench.service.counters().attempts, 2u);
}

}  // namespace
}  // namespace tailward::sim
