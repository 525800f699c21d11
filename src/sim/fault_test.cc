#include "sim/fault.h"

#include <gtest/gtest.h>

#include <vector>

namespace tailward::sim {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kOrigin{1s};

FaultSchedule schedule(const std::vector<Fault>& faults) { return {faults, kOrigin}; }

TEST(FaultScheduleTest, WithoutFaultsWorkTakesItsTime) {
  EXPECT_EQ(schedule({}).finish(kOrigin + 5ms, 10ms), kOrigin + 15ms);
}

TEST(FaultScheduleTest, WorkGoesOnAtTheSlowerPaceWhileTheFaultLasts) {
  const FaultSchedule slow = schedule({{.from = 100ms, .until = 200ms, .slow_by = 10}});
  EXPECT_EQ(slow.finish(kOrigin, 100ms), kOrigin + 100ms) << "done just before";
  EXPECT_EQ(slow.finish(kOrigin + 90ms, 15ms), kOrigin + 150ms) << "10 before, 5 slow ones";
  EXPECT_EQ(slow.finish(kOrigin + 100ms, 5ms), kOrigin + 150ms);
  EXPECT_EQ(slow.finish(kOrigin + 190ms, 5ms), kOrigin + 204ms) << "1 slow one, 4 after";
  EXPECT_EQ(slow.finish(kOrigin + 200ms, 5ms), kOrigin + 205ms);
  EXPECT_EQ(slow.finish(kOrigin + 50ms, 200ms), kOrigin + 340ms) << "across the whole of it";
}

TEST(FaultScheduleTest, AHangStopsWhatIsUnderWayUntilItsEnd) {
  const FaultSchedule hang = schedule({{.from = 100ms, .until = 200ms, .hang = true}});
  EXPECT_EQ(hang.finish(kOrigin + 90ms, 30ms), kOrigin + 220ms);
  EXPECT_EQ(hang.finish(kOrigin + 150ms, 0ms), kOrigin + 200ms);
}

TEST(FaultScheduleTest, AHangForEverNeverEnds) {
  const FaultSchedule hang = schedule({{.from = 100ms, .hang = true}});
  EXPECT_EQ(hang.finish(kOrigin, 100ms), kOrigin + 100ms);
  EXPECT_EQ(hang.finish(kOrigin, 101ms), kNever);
}

TEST(FaultScheduleTest, OverlappingSlowDownsMultiplyAndAHangBeatsThem) {
  const FaultSchedule both = schedule({{.from = 0ms, .until = 300ms, .slow_by = 2},
                                       {.from = 100ms, .until = 200ms, .slow_by = 5},
                                       {.from = 250ms, .until = 260ms, .hang = true}});
  EXPECT_EQ(both.finish(kOrigin, 50ms), kOrigin + 100ms);
  EXPECT_EQ(both.finish(kOrigin + 100ms, 10ms), kOrigin + 200ms);
  EXPECT_EQ(both.finish(kOrigin + 240ms, 10ms), kOrigin + 270ms);
}

TEST(FaultScheduleTest, NamesTheErrorsOfTheMoment) {
  const FaultSchedule errors = schedule({{.from = 100ms, .until = 200ms, .error_share = 0.5}});
  const auto count = [&](TimePoint now) {
    int faults = 0;
    errors.for_each_error(now, [&](const Fault& fault) {
      EXPECT_EQ(fault.error_share, 0.5);
      ++faults;
    });
    return faults;
  };
  EXPECT_EQ(count(kOrigin + 100ms - 1ns), 0);
  EXPECT_EQ(count(kOrigin + 100ms), 1);
  EXPECT_EQ(count(kOrigin + 200ms - 1ns), 1);
  EXPECT_EQ(count(kOrigin + 200ms), 0);
}

}  // namespace
}  // namespace tailward::sim
