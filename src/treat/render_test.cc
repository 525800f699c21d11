#include "treat/render.h"

#include <gtest/gtest.h>

namespace tailward::treat {
namespace {

MatchedConnection changed(State before) {
  MatchedConnection connection;
  connection.noted = connection.treatable = connection.treated = connection.applied = true;
  connection.before[0] = before;
  return connection;
}

TEST(RenderTest, UndoesAKeptChangeByTheOldValue) {
  TreatmentOptions options;
  options.pid = 17;
  options.remote_text = "10.0.0.0/8";
  options.settings = {{Option::kNodelay, 1}};
  EXPECT_EQ(
      undo_command(options, {changed({0}), changed({0})}),
      "tailward treat --pid 17 --remote 10.0.0.0/8 --set nodelay=0 --all --keep --yes --for 1s");
}

TEST(RenderTest, UndoesAPinnedBufferByHandingItBack) {
  TreatmentOptions options;
  options.port = 80;
  options.settings = {{Option::kSndbuf, 65536}};
  EXPECT_EQ(undo_command(options, {changed({16384, false})}),
            "tailward treat --port 80 --set sndbuf=auto --all --keep --yes --for 1s");
}

TEST(RenderTest, HasNoCommandThatWouldChangeConnectionsThatWereNotTreated) {
  TreatmentOptions options;
  options.pid = 17;
  options.settings = {{Option::kNodelay, 1}};
  MatchedConnection untreated = changed({0});
  untreated.treated = untreated.applied = false;
  EXPECT_NE(undo_command(options, {changed({0}), untreated}), "");
  MatchedConnection by_itself = changed({1});
  by_itself.treatable = by_itself.treated = by_itself.applied = false;
  EXPECT_EQ(undo_command(options, {changed({0}), by_itself}), "");
  MatchedConnection not_looked_into = untreated;
  not_looked_into.noted = false;
  not_looked_into.outcome = StepOutcome::kFailed;
  EXPECT_EQ(undo_command(options, {changed({0}), not_looked_into}), "");
}

TEST(TreatmentTest, DoesNotPromiseToKeepWhatDoesNotLast) {
  TreatmentOptions options;
  options.pid = 1;
  options.settings = {{Option::kNodelay, 1}, {Option::kQuickack, 1}};
  options.keep = true;
  const auto prepared = Treatment::prepare(options);
  ASSERT_FALSE(prepared);
  EXPECT_EQ(prepared.error().message, "quickack cannot be kept");
}

TEST(RenderTest, HasNoOneCommandForConnectionsThatDiffered) {
  TreatmentOptions options;
  options.pid = 17;
  options.settings = {{Option::kSndbuf, 65536}};
  EXPECT_EQ(undo_command(options, {changed({16384, true}), changed({8192, true})}), "");
  EXPECT_EQ(undo_command(options, {}), "");
}

}  // namespace
}  // namespace tailward::treat
