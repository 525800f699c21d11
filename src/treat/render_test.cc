#include "treat/render.h"

#include <gtest/gtest.h>

namespace tailward::treat {
namespace {

Connection changed(State before) {
  Connection connection;
  connection.treatable = connection.treated = connection.applied = true;
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

TEST(RenderTest, HasNoOneCommandForConnectionsThatDiffered) {
  TreatmentOptions options;
  options.pid = 17;
  options.settings = {{Option::kSndbuf, 65536}};
  EXPECT_EQ(undo_command(options, {changed({16384, true}), changed({8192, true})}), "");
  EXPECT_EQ(undo_command(options, {}), "");
}

}  // namespace
}  // namespace tailward::treat
