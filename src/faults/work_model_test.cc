#include "faults/work_model.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "base/rng.h"

namespace tailward::faults {
namespace {

using namespace std::chrono_literals;

TEST(WorkModelTest, GoesToTheServersProcessAndBackUnchanged) {
  WorkModel logging = lock_model(1, 4);
  logging.access_log = true;
  for (const WorkModel& model :
       {lock_model(16, 7), fanout_model(8), reference_model(9), production_model(1, 3), logging}) {
    const std::string text = to_json_text(model);
    const Result<WorkModel> back = parse_work_model(text);
    ASSERT_TRUE(back.has_value()) << text;
    EXPECT_EQ(to_json_text(*back), text);
    EXPECT_EQ(back->seed, model.seed);
    EXPECT_EQ(back->access_log, model.access_log);
    EXPECT_EQ(back->lock_share, model.lock_share);
    // The laws too: the same draws come from the same stream.
    Rng here(model.seed);
    Rng there(model.seed);
    for (int i = 0; i < 100; ++i) {
      EXPECT_EQ(back->work.draw(there), model.work.draw(here)) << text;
      EXPECT_EQ(back->hold.draw(there), model.hold.draw(here)) << text;
    }
  }
}

TEST(WorkModelTest, RefusesWhatIsNoModel) {
  for (const char* text : {"", "{", "[]", "{}", "null", R"({"seed":"x"})",
                           R"({"name":"locks","seed":1,"shards":1,"access_log":false})",
                           R"({"name":"lock","seed":1,"shards":"one","access_log":false})",
                           R"({"name":"lock","seed":1,"shards":-1,"access_log":false})",
                           R"({"name":"fanout","seed":1,"shards":1,"access_log":false})"}) {
    const Result<WorkModel> model = parse_work_model(text);
    ASSERT_FALSE(model.has_value()) << text;
    EXPECT_EQ(model.error().kind, ErrorKind::kInvalid);
  }
  WorkModel shards = lock_model(1, 1);
  shards.shards = 17;
  EXPECT_FALSE(parse_work_model(to_json_text(shards)).has_value());
}

// The articles' parameters, as laws: the experiments stand on these facts.
TEST(WorkModelTest, TheLockedServerWorksAsInTheArticle) {
  const sim::Law work = lock_model(1, 1).work;
  EXPECT_DOUBLE_EQ(work.above(9999us), 1);
  EXPECT_NEAR(work.above(50ms), 0.1, 1e-9);
  EXPECT_NEAR(work.above(200ms), 0.1, 1e-9);
  EXPECT_DOUBLE_EQ(work.above(500ms), 0);
  const sim::Law hold = lock_model(1, 1).hold;
  EXPECT_NEAR(hold.above(1500us), 0.5, 1e-9);
  EXPECT_DOUBLE_EQ(hold.above(2ms), 0);
}

TEST(WorkModelTest, OneFanoutNodeInAHundredIsSlow) {
  const sim::Law work = fanout_model(1).work;
  EXPECT_NEAR(work.above(100ms), 0.01, 1e-9);
  EXPECT_NEAR(work.above(999ms), 0.01, 1e-9);
  EXPECT_DOUBLE_EQ(work.above(2s), 0);
}

TEST(WorkModelTest, TheReferenceHasTheBenchmarksQuantiles) {
  const sim::Law work = reference_model(1).work;
  EXPECT_NEAR(to_ms(work.quantile(0.90)), 8.7, 0.1);
  EXPECT_NEAR(to_ms(work.quantile(0.99)), 63.8, 1.0);
}

TEST(WorkModelTest, AProductionNodeIsSlowSevenTimesInTenThousand) {
  const WorkModel model = production_model(1, 1);
  EXPECT_NEAR(model.work.above(799ms), 0.0007, 1e-6);
  EXPECT_NEAR(model.work.above(1200ms), 0, 1e-12);  // the lognormal part has no end
  EXPECT_NEAR(model.hold.above(500us), 0.5, 1e-9);
  EXPECT_EQ(model.lock_share, 0.8);
}

}  // namespace
}  // namespace tailward::faults
