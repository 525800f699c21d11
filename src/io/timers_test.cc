#include "io/timers.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/rng.h"

namespace tailward::io {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

struct TimersTest : testing::Test {
  Timers timers;
  TimePoint start = timers.now();
  std::vector<std::string> log;

  Timers::Callback note(std::string what) {
    return [this, what = std::move(what)] { log.push_back(what); };
  }
};

TEST_F(TimersTest, FiresAtItsTimeAndNotANanosecondBefore) {
  Timer timer = timers.after(milliseconds(5), note("a"));
  EXPECT_EQ(timers.next_event(), start + milliseconds(5));
  EXPECT_EQ(timers.advance_to(start + milliseconds(5) - nanoseconds(1)), 0u);
  EXPECT_TRUE(timer.armed());
  EXPECT_EQ(timers.advance_to(start + milliseconds(5)), 1u);
  EXPECT_FALSE(timer.armed());
  EXPECT_EQ(log, (std::vector<std::string>{"a"}));
  EXPECT_EQ(timers.next_event(), kNever);
}

TEST_F(TimersTest, FiresInOrderOfTimeAndThenOfArming) {
  Timer c = timers.after(milliseconds(2), note("c"));
  Timer a = timers.after(milliseconds(1), note("a"));
  Timer d = timers.after(milliseconds(2), note("d"));
  Timer b = timers.after(milliseconds(1), note("b"));
  timers.advance_to(start + milliseconds(10));
  EXPECT_EQ(log, (std::vector<std::string>{"a", "b", "c", "d"}));
}

TEST_F(TimersTest, FiresATimeInThePastAtTheNextAdvanceOnly) {
  timers.advance_to(start + milliseconds(3));
  Timer late = timers.at(start, note("late"));
  EXPECT_TRUE(log.empty());
  timers.advance_to(timers.now());
  EXPECT_EQ(log, (std::vector<std::string>{"late"}));
}

TEST_F(TimersTest, DestroyingOrCancellingATimerKeepsItFromFiring) {
  { Timer destroyed = timers.after(milliseconds(1), note("destroyed")); }
  Timer cancelled = timers.after(milliseconds(1), note("cancelled"));
  cancelled.cancel();
  cancelled.cancel();
  EXPECT_FALSE(cancelled.armed());
  Timer replaced = timers.after(milliseconds(1), note("replaced"));
  replaced = timers.after(milliseconds(2), note("new"));
  EXPECT_EQ(timers.armed_count(), 1u);
  timers.advance_to(start + milliseconds(3));
  EXPECT_EQ(log, (std::vector<std::string>{"new"}));
}

TEST_F(TimersTest, AStaleHandleDoesNotCancelTheTimerThatTookItsSlot) {
  Timer first = timers.after(milliseconds(1), note("first"));
  timers.advance_to(start + milliseconds(1));
  Timer second = timers.after(milliseconds(1), note("second"));
  first.cancel();
  EXPECT_TRUE(second.armed());
  timers.advance_to(start + milliseconds(2));
  EXPECT_EQ(log, (std::vector<std::string>{"first", "second"}));
}

TEST_F(TimersTest, AMovedTimerIsCancelledByItsNewOwner) {
  Timer first = timers.after(milliseconds(1), note("a"));
  {
    Timer second = std::move(first);
    EXPECT_TRUE(second.armed());
  }
  timers.advance_to(start + milliseconds(1));
  EXPECT_TRUE(log.empty());
}

TEST_F(TimersTest, ACallbackMayReArmCancelOthersAndDestroyItsOwnTimer) {
  std::optional<Timer> own;
  Timer other = timers.after(milliseconds(1) + nanoseconds(1), note("other"));
  Timer next;
  own = timers.after(milliseconds(1), [&] {
    log.push_back("own");
    own.reset();
    other.cancel();
    next = timers.after(milliseconds(1), note("next"));
  });
  timers.advance_to(start + milliseconds(5));
  EXPECT_EQ(log, (std::vector<std::string>{"own", "next"}));
}

TEST_F(TimersTest, AdvancingStandsAtEachTimersTimeAndFiresWhatCallbacksArm) {
  std::vector<TimePoint> seen;
  Timer timer;
  std::function<void()> tick = [&] {
    seen.push_back(timers.now());
    if (seen.size() < 4) timer = timers.after(milliseconds(2), [&] { tick(); });
  };
  timer = timers.after(milliseconds(2), [&] { tick(); });
  EXPECT_EQ(timers.advance_to(start + milliseconds(7)), 3u);
  EXPECT_EQ(seen, (std::vector<TimePoint>{start + milliseconds(2), start + milliseconds(4),
                                          start + milliseconds(6)}));
  EXPECT_EQ(timers.now(), start + milliseconds(7));
}

TEST_F(TimersTest, JumpingShowsTheLateTimeAndLeavesWhatCallbacksArmToTheNextTurn) {
  std::vector<TimePoint> seen;
  Timer again;
  Timer timer = timers.after(milliseconds(2), [&] {
    seen.push_back(timers.now());
    again = timers.at(start, [&] { seen.push_back(timers.now()); });
  });
  EXPECT_EQ(timers.jump_to(start + milliseconds(7)), 1u);
  EXPECT_EQ(seen, (std::vector<TimePoint>{start + milliseconds(7)}));
  EXPECT_EQ(timers.next_event(), start + milliseconds(7));
  EXPECT_EQ(timers.jump_to(start + milliseconds(7)), 1u);
  EXPECT_EQ(seen.size(), 2u);
}

TEST_F(TimersTest, ACallbackMayOwnAnotherTimerThatDiesWithIt) {
  auto inner = std::make_shared<Timer>(timers.after(milliseconds(9), note("inner")));
  Timer outer = timers.after(milliseconds(1), [inner] {});
  inner.reset();
  outer.cancel();
  EXPECT_EQ(timers.armed_count(), 0u);
}

// Goal: the heap with its reused slots does what a sorted list would. Method: 100,000 random
// operations on both, with the order of firing compared.
TEST_F(TimersTest, AgreesWithASortedListOnRandomOperations) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  RecordProperty("seed", std::to_string(seed));
  Rng rng(seed);
  std::multimap<TimePoint, int> reference;  // equal keys keep their order of insertion
  std::map<int, std::pair<Timer, std::multimap<TimePoint, int>::iterator>> live;
  std::vector<int> fired;
  int next = 0;
  for (int step = 0; step < 100'000; ++step) {
    const std::uint64_t kind = rng.below(10);
    if (kind < 5) {
      const TimePoint when = timers.now() + Duration(rng.below(50));
      const int id = next++;
      live.emplace(id, std::pair{timers.at(when, [&fired, id] { fired.push_back(id); }),
                                 reference.emplace(when, id)});
    } else if (kind < 8 && !live.empty()) {
      auto victim = live.lower_bound(static_cast<int>(rng.below(static_cast<std::uint64_t>(next))));
      if (victim == live.end()) victim = live.begin();
      reference.erase(victim->second.second);
      live.erase(victim);
    } else {
      const TimePoint to = timers.now() + Duration(rng.below(20));
      std::vector<int> expected;
      while (!reference.empty() && reference.begin()->first <= to) {
        expected.push_back(reference.begin()->second);
        reference.erase(reference.begin());
      }
      fired.clear();
      timers.advance_to(to);
      ASSERT_EQ(fired, expected) << "step " << step;
      for (const int id : expected) {
        ASSERT_FALSE(live.at(id).first.armed());
        live.erase(id);
      }
    }
    ASSERT_EQ(timers.armed_count(), reference.size());
    ASSERT_EQ(timers.next_event(), reference.empty() ? kNever : reference.begin()->first);
  }
}

}  // namespace
}  // namespace tailward::io
