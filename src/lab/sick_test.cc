#include "lab/sick.h"

#include <gtest/gtest.h>

#include <set>

#include "lab/truth.h"

namespace tailward::lab {
namespace {

using diag::Cause;

TEST(SickTest, KnowsEverySicknessByItsNameInTheContract) {
  std::set<std::string_view> names;
  for (const Sickness& sickness : sicknesses()) names.insert(to_string(sickness.cause));
  for (const char* name : {"none", "nagle-delayed-ack", "small-writes", "corked",
                           "small-send-buffer", "small-receive-window", "packet-loss", "syn-loss",
                           "listen-overflow", "slow-accept", "slow-reader"}) {
    EXPECT_TRUE(names.contains(name)) << name;
    EXPECT_TRUE(find_sickness(name)) << name;
  }
  const Result<Sickness> unknown = find_sickness("measles");
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().hint.find("slow-reader"), std::string::npos);
}

TEST(SickTest, DrawsTheSameModelFromTheSameSeed) {
  for (const Sickness& sickness : sicknesses()) {
    const SickModel first = draw_sick_model(sickness, 7, 1);
    const SickModel again = draw_sick_model(sickness, 7, 1);
    const SickModel other = draw_sick_model(sickness, 8, 1);
    EXPECT_EQ(first.think, again.think);
    EXPECT_EQ(first.answer_bytes, again.answer_bytes);
    EXPECT_EQ(first.link.delay, again.link.delay);
    EXPECT_NE(first.think, other.think);
    EXPECT_TRUE(first.over_link || !sickness.needs_link);
  }
}

TEST(SickTest, LosesMorePacketsTheSickerItIs) {
  const Sickness loss = *find_sickness("packet-loss");
  EXPECT_GT(draw_sick_model(loss, 3, 2).link.loss, draw_sick_model(loss, 3, 1).link.loss);
  EXPECT_LT(draw_sick_model(loss, 3, 100).link.loss, 0.5);
}

// Every server answers, however sick. Loopback: what the network does is the link's business.
class SickServerTest : public testing::TestWithParam<Cause> {};

TEST_P(SickServerTest, AnswersWhatItsClientsAsk) {
  const Sickness sickness = *find_sickness(to_string(GetParam()));
  SickModel model = draw_sick_model(sickness, 1, 1);
  model.think = std::chrono::microseconds(100);
  model.answer_bytes = std::min<std::size_t>(model.answer_bytes, 20'000);
  model.upload_bytes = std::min<std::size_t>(model.upload_bytes, 60'000);
  const Result<std::unique_ptr<SickServer>> server = SickServer::start(model, {"127.0.0.1", 0});
  ASSERT_TRUE(server) << server.error().message;
  SickClients clients(model, {"127.0.0.1", (*server)->port()});
  // Ten answers, whenever they come; the test's own timeout ends a wait for nothing.
  Pause breath;
  while (clients.counts().requests < 10 && clients.counts().failed == 0) {
    ASSERT_TRUE(breath.wait(std::chrono::milliseconds(2)));
  }
  EXPECT_GE(clients.counts().requests, 10U);
  EXPECT_EQ(clients.counts().failed, 0U) << clients.counts().first_error;
}

std::vector<Cause> all_causes() {
  std::vector<Cause> causes;
  for (const Sickness& sickness : sicknesses()) causes.push_back(sickness.cause);
  return causes;
}

INSTANTIATE_TEST_SUITE_P(Every, SickServerTest, testing::ValuesIn(all_causes()),
                         [](const testing::TestParamInfo<Cause>& one) {
                           std::string name(to_string(one.param));
                           std::erase(name, '-');
                           return name;
                         });

TruthCase scored(Cause sick, Cause found, const char* from = "live") {
  TruthCase one;
  one.sick = sick;
  one.found = found;
  one.from = from;
  return one;
}

TEST(TruthTest, AsksForNineteenOfTwentyRight) {
  Truth truth;
  for (int at = 0; at < 19; ++at) {
    truth.cases.push_back(scored(Cause::kCorked, Cause::kCorked));
    truth.cases.push_back(scored(Cause::kCorked, Cause::kCorked, "capture"));
  }
  truth.cases.push_back(scored(Cause::kCorked, Cause::kNone));
  EXPECT_TRUE(truth.ok());
  truth.cases.push_back(scored(Cause::kCorked, Cause::kSlowReader));
  EXPECT_FALSE(truth.ok());
}

TEST(TruthTest, ForgivesNoFindingOnAHealthyServer) {
  Truth truth;
  for (int at = 0; at < 99; ++at) truth.cases.push_back(scored(Cause::kNone, Cause::kNone));
  EXPECT_TRUE(truth.ok());
  truth.cases.push_back(scored(Cause::kNone, Cause::kPacketLoss));
  EXPECT_FALSE(truth.ok());
}

TEST(TruthTest, DoesNotHoldWhereARunCouldNotBeMade) {
  Truth truth;
  truth.cases.push_back(scored(Cause::kNone, Cause::kNone));
  truth.failed.push_back("corked, seed 3: no room");
  EXPECT_FALSE(truth.ok());
}

}  // namespace
}  // namespace tailward::lab
