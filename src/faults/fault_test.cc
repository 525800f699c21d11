#include "faults/fault.h"

#include <gtest/gtest.h>

#include <set>

#include "faults/fault_clients.h"
#include "faults/faulty_server.h"

namespace tailward::faults {
namespace {

using diag::Cause;

TEST(FaultTest, KnowsEveryFaultByItsNameInTheContract) {
  std::set<std::string_view> names;
  for (const ServerFault& fault : server_faults()) names.insert(to_string(fault.cause));
  for (const char* name : {"none", "nagle-delayed-ack", "small-writes", "corked",
                           "small-send-buffer", "small-receive-window", "packet-loss", "syn-loss",
                           "listen-overflow", "slow-accept", "slow-reader"}) {
    EXPECT_TRUE(names.contains(name)) << name;
    EXPECT_TRUE(find_fault(name)) << name;
  }
  const Result<ServerFault> unknown = find_fault("measles");
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().hint.find("slow-reader"), std::string::npos);
}

TEST(FaultTest, DrawsTheSameModelFromTheSameSeed) {
  for (const ServerFault& fault : server_faults()) {
    const FaultModel first = draw_fault_model(fault, 7, 1);
    const FaultModel again = draw_fault_model(fault, 7, 1);
    const FaultModel other = draw_fault_model(fault, 8, 1);
    EXPECT_EQ(first.processing, again.processing);
    EXPECT_EQ(first.response_bytes, again.response_bytes);
    EXPECT_EQ(first.link.delay, again.link.delay);
    EXPECT_NE(first.processing, other.processing);
    EXPECT_TRUE(first.over_link || !fault.needs_link);
  }
}

TEST(FaultTest, LosesMorePacketsTheMoreSevereItIs) {
  const ServerFault loss = *find_fault("packet-loss");
  EXPECT_GT(draw_fault_model(loss, 3, 2).link.loss, draw_fault_model(loss, 3, 1).link.loss);
  EXPECT_LT(draw_fault_model(loss, 3, 100).link.loss, 0.5);
}

// Every server responds, whatever its fault. Loopback: what the network does is the link's
// business.
class FaultyServerTest : public testing::TestWithParam<Cause> {};

TEST_P(FaultyServerTest, RespondsToItsClients) {
  const ServerFault fault = *find_fault(to_string(GetParam()));
  FaultModel model = draw_fault_model(fault, 1, 1);
  model.processing = std::chrono::microseconds(100);
  model.response_bytes = std::min<std::size_t>(model.response_bytes, 20'000);
  model.upload_bytes = std::min<std::size_t>(model.upload_bytes, 60'000);
  const Result<std::unique_ptr<FaultyServer>> server = FaultyServer::start(model, {"127.0.0.1", 0});
  ASSERT_TRUE(server) << server.error().message;
  FaultClients clients(model, {"127.0.0.1", (*server)->port()});
  // Ten responses, whenever they come; the test's own timeout ends a wait for nothing.
  Pause breath;
  while (clients.counts().requests < 10 && clients.counts().failed == 0) {
    ASSERT_TRUE(breath.wait(std::chrono::milliseconds(2)));
  }
  EXPECT_GE(clients.counts().requests, 10U);
  EXPECT_EQ(clients.counts().failed, 0U) << clients.counts().first_error;
}

std::vector<Cause> all_causes() {
  std::vector<Cause> causes;
  for (const ServerFault& fault : server_faults()) causes.push_back(fault.cause);
  return causes;
}

INSTANTIATE_TEST_SUITE_P(Every, FaultyServerTest, testing::ValuesIn(all_causes()),
                         [](const testing::TestParamInfo<Cause>& one) {
                           std::string name(to_string(one.param));
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace tailward::faults
