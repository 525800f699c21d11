#include "lab/model.h"

#include <gtest/gtest.h>

#include "lab/server.h"

namespace tailward::lab {
namespace {

using namespace std::chrono_literals;

TEST(ModelTest, GoesToTheServersProcessAndBackUnchanged) {
  for (const ServerModel& model :
       {lock_model(16, 7), fanout_model(8), reference_model(9), production_model(1, 3)}) {
    const std::string text = to_json_text(model);
    const Result<ServerModel> back = parse_model(text);
    ASSERT_TRUE(back.has_value()) << text;
    EXPECT_EQ(to_json_text(*back), text);
    EXPECT_EQ(back->seed, model.seed);
  }
}

TEST(ModelTest, RefusesWhatIsNoModel) {
  for (const char* text : {"", "{", "[]", "{}", "null", R"({"seed":"x"})"}) {
    const Result<ServerModel> model = parse_model(text);
    ASSERT_FALSE(model.has_value()) << text;
    EXPECT_EQ(model.error().kind, ErrorKind::kInvalid);
  }
  ServerModel shards = lock_model(1, 1);
  shards.shards = 17;
  EXPECT_FALSE(parse_model(to_json_text(shards)).has_value());
  ServerModel hold = lock_model(1, 1);
  hold.hold_low = 3ms;
  EXPECT_FALSE(parse_model(to_json_text(hold)).has_value());
}

// The articles' parameters, as laws: these are the facts that the experiments stand on.
TEST(ModelTest, TheLockedServerWorksAsInTheArticle) {
  const sim::Law work = lock_model(1, 1).work_law();
  EXPECT_DOUBLE_EQ(work.above(9999us), 1);
  EXPECT_NEAR(work.above(50ms), 0.1, 1e-9);
  EXPECT_NEAR(work.above(200ms), 0.1, 1e-9);
  EXPECT_DOUBLE_EQ(work.above(500ms), 0);
  const sim::Law hold = lock_model(1, 1).hold_law();
  EXPECT_NEAR(hold.above(1500us), 0.5, 1e-9);
  EXPECT_DOUBLE_EQ(hold.above(2ms), 0);
}

TEST(ModelTest, OneFanoutNodeInAHundredIsSlow) {
  const sim::Law work = fanout_model(1).work_law();
  EXPECT_NEAR(work.above(100ms), 0.01, 1e-9);
  EXPECT_NEAR(work.above(999ms), 0.01, 1e-9);
  EXPECT_DOUBLE_EQ(work.above(2s), 0);
}

TEST(ModelTest, TheReferenceHasTheBenchmarksQuantiles) {
  const sim::Law work = reference_model(1).work_law();
  EXPECT_NEAR(to_ms(work.quantile(0.90)), 8.7, 0.1);
  EXPECT_NEAR(to_ms(work.quantile(0.99)), 63.8, 1.0);
}

TEST(ModelTest, APassThroughTheStatsKeepsEveryFigure) {
  ServerStats stats;
  stats.requests = 1;
  stats.answered = 2;
  stats.cancelled = 3;
  stats.in_flight = 4;
  stats.hedges = 5;
  stats.lock_wait = 6ns;
  stats.lock_contentions = 7;
  stats.connections = 8;
  stats.connections_ever = 9;
  stats.log_lines = 10;
  stats.log_bytes = 11;
  const Result<ServerStats> back = parse_stats(to_json_text(stats));
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(to_json_text(*back), to_json_text(stats));
  EXPECT_EQ(back->lock_wait, 6ns);
  EXPECT_EQ(back->log_bytes, 11u);
  EXPECT_FALSE(parse_stats("{}").has_value());
}

}  // namespace
}  // namespace tailward::lab
