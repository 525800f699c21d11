#include "treat/measure.h"

#include <gtest/gtest.h>

namespace tailward::treat {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

tcp::SocketAddress at_port(std::uint16_t port) {
  tcp::SocketAddress address;
  address.port = port;
  return address;
}

// A server on port 80 with a connection from each client port; turns are added by hand.
class MeasureTest : public ::testing::Test {
 protected:
  MeasureTest() {
    windows_.baseline = {seconds(0), seconds(10)};
    windows_.treatment = {seconds(10), seconds(20)};
  }
  Subject& connect(std::uint16_t client_port, bool treated) {
    diag::ConnectionSummary summary;
    summary.client = at_port(client_port);
    summary.server = at_port(80);
    packets_.connections.push_back(summary);
    subjects_.push_back({at_port(80), at_port(client_port), client_port, treated});
    return subjects_.back();
  }
  void turn(std::uint32_t connection, Duration began, Duration total, Duration tail = {}) {
    diag::Turn made;
    made.connection = connection;
    made.began = began;
    made.total = total;
    made.final_ack_wait = tail;
    packets_.turns.push_back(made);
    ++packets_.turns_seen;
  }
  Measurement measure() {
    Rng rng(1);
    return measure_turns(packets_, subjects_, windows_, rng);
  }

  diag::PacketAnalysis packets_;
  std::vector<Subject> subjects_;
  Windows windows_;
};

TEST_F(MeasureTest, SortsRequestsByConnectionAndTime) {
  connect(1, true);
  connect(2, false);
  turn(0, seconds(1), milliseconds(44));
  turn(1, seconds(2), milliseconds(45));
  turn(0, seconds(11), milliseconds(1));
  turn(0, seconds(12), milliseconds(3));
  turn(1, seconds(12), milliseconds(46));
  const Measurement measured = measure();
  EXPECT_EQ(measured.treated_before.quantile(0.5), milliseconds(44));
  EXPECT_EQ(measured.untreated_before.quantile(0.5), milliseconds(45));
  EXPECT_EQ(measured.treated.count, 2u);
  EXPECT_EQ(measured.treated.quantile(0.5), milliseconds(1));
  EXPECT_EQ(measured.treated.quantile(1), milliseconds(3));
  EXPECT_EQ(measured.untreated.quantile(0.5), milliseconds(46));
  ASSERT_TRUE(measured.effect);
  EXPECT_EQ(measured.effect->difference, milliseconds(-45));
}

TEST_F(MeasureTest, FindsTheConnectionsOfAClientToo) {
  connect(1, true);
  std::swap(subjects_[0].local, subjects_[0].remote);
  turn(0, seconds(11), milliseconds(1));
  EXPECT_EQ(measure().treated.count, 1u);
}

TEST_F(MeasureTest, LeavesOutRequestsThatAreNotWhollyWithinTheirTime) {
  connect(1, true).since = seconds(12);
  connect(2, false);
  turn(0, seconds(9) + milliseconds(990), milliseconds(20));  // over the change
  turn(0, seconds(11), milliseconds(1));                      // before this connection's change
  turn(0, seconds(12), milliseconds(2));
  turn(0, seconds(19) + milliseconds(990), milliseconds(20));  // over the end
  turn(1, seconds(25), milliseconds(1));
  turn(UINT32_MAX, seconds(12), milliseconds(9));  // of a connection that was not kept
  const Measurement measured = measure();
  EXPECT_EQ(measured.treated_before.count, 0u);
  ASSERT_EQ(measured.treated.count, 1u);
  EXPECT_EQ(measured.treated.quantile(1), milliseconds(2));
  EXPECT_EQ(measured.untreated.count, 0u);
  EXPECT_FALSE(measured.effect);
}

TEST_F(MeasureTest, LeavesOutConnectionsThatCouldNotBeTreatedAndStrangers) {
  connect(1, true).counts = false;
  connect(2, false);
  packets_.connections[1].client.port = 3;
  turn(0, seconds(11), milliseconds(1));
  turn(1, seconds(11), milliseconds(1));
  EXPECT_EQ(measure().turns, 0u);
}

TEST_F(MeasureTest, ComparesSlicesOfTime) {
  connect(1, true);
  windows_.slices = {{{seconds(10), seconds(12)}, true},
                     {{seconds(12), seconds(14)}, false},
                     {{seconds(14), seconds(16)}, false},
                     {{seconds(16), seconds(18)}, true}};
  for (const int second : {10, 11, 16, 17}) turn(0, seconds(second), milliseconds(second));
  for (const int second : {12, 13, 14, 15}) turn(0, seconds(second), milliseconds(100 + second));
  turn(0, seconds(11) + milliseconds(999), milliseconds(2));  // over a boundary
  const Measurement measured = measure();
  EXPECT_EQ(measured.treated.count, 4u);
  EXPECT_EQ(measured.treated.clusters.size(), 2u);
  EXPECT_EQ(measured.untreated.clusters.size(), 2u);
  ASSERT_TRUE(measured.effect);
  EXPECT_EQ(measured.effect->treated, milliseconds(11));
  EXPECT_EQ(measured.effect->untreated, milliseconds(113));
  EXPECT_TRUE(measured.effect->bounded);
}

TEST_F(MeasureTest, ComparesWithBeforeWhenAllAreTreated) {
  connect(1, true);
  windows_.before_is_control = true;
  turn(0, seconds(1), milliseconds(44));
  turn(0, seconds(11), milliseconds(1));
  const Measurement measured = measure();
  EXPECT_EQ(measured.untreated.quantile(0.5), milliseconds(44));
  EXPECT_EQ(measured.treated_before.count, 0u);
  EXPECT_EQ(measured.effect->difference, milliseconds(-43));
}

TEST_F(MeasureTest, DoesNotCountTheLastAcknowledgementUnlessDataWaited) {
  diag::Turn turn;
  turn.total = milliseconds(41);
  turn.final_ack_wait = milliseconds(40);
  EXPECT_EQ(latency_of(turn), milliseconds(1));
  turn.stalled_us[static_cast<std::size_t>(diag::StallKind::kHeldByNagle)] = 1;
  EXPECT_EQ(latency_of(turn), milliseconds(1));
  turn.stalled_us[static_cast<std::size_t>(diag::StallKind::kRetransmission)] = 1;
  EXPECT_EQ(latency_of(turn), milliseconds(41));
}

TEST_F(MeasureTest, SaysHowManyRequestsWereOverTheLimit) {
  connect(1, true);
  turn(0, seconds(11), milliseconds(1));
  packets_.turns_seen = 7;
  EXPECT_EQ(measure().turns_dropped, 6u);
}

TEST_F(MeasureTest, TakesTheKernelsAccountWithoutPackets) {
  connect(1, true);
  connect(2, false);
  const std::vector<std::vector<BusyTime>> looks = {
      {{1, 0, 0}, {2, 1000, 10}},
      {{1, 44'000, 1}, {2, 45'000, 11}},
      {{1, 45'000, 2}, {2, 89'000, 12}, {7, 1, 1}},
  };
  Rng rng(1);
  const Measurement measured = measure_tcp_info(looks, subjects_, windows_, rng);
  EXPECT_EQ(measured.source, MeasuredFrom::kTcpInfo);
  EXPECT_EQ(measured.treated_before.quantile(0.5), milliseconds(44));
  EXPECT_EQ(measured.treated.quantile(0.5), milliseconds(1));
  EXPECT_EQ(measured.untreated.quantile(0.5), milliseconds(44));
}

TEST_F(MeasureTest, TakesNothingFromAConnectionThatSentNothing) {
  connect(1, true);
  const std::vector<std::vector<BusyTime>> looks = {{{1, 0, 5}}, {{1, 0, 5}}, {}};
  Rng rng(1);
  const Measurement measured = measure_tcp_info(looks, subjects_, windows_, rng);
  EXPECT_EQ(measured.treated_before.count + measured.treated.count, 0u);
}

TEST_F(MeasureTest, DoesNotCountInATreatedSliceWhatBeganBeforeItsConnectionWasChanged) {
  connect(1, true).since = seconds(13);
  windows_.slices = {{{seconds(10), seconds(12)}, false}, {{seconds(12), seconds(14)}, true}};
  turn(0, seconds(11), milliseconds(44));
  turn(0, seconds(12), milliseconds(45));  // in the slice, and untreated yet
  turn(0, seconds(13), milliseconds(1));
  const Measurement measured = measure();
  EXPECT_EQ(measured.untreated.count, 1u);
  ASSERT_EQ(measured.treated.count, 1u);
  EXPECT_EQ(measured.treated.quantile(1), milliseconds(1));
}

TEST_F(MeasureTest, CountsTheRequestsWhoseConnectionIsNotKnown) {
  connect(1, true);
  turn(0, seconds(11), milliseconds(1));
  turn(UINT32_MAX, seconds(12), milliseconds(9));
  EXPECT_EQ(measure().turns_unplaced, 1u);
}

TEST_F(MeasureTest, TakesTheKernelsAccountOfSlices) {
  connect(1, true);
  windows_.slices = {{{seconds(10), seconds(12)}, false}, {{seconds(12), seconds(14)}, true}};
  const std::vector<std::vector<BusyTime>> looks = {
      {{1, 0, 0}}, {{1, 44'000, 1}}, {{1, 45'000, 2}}};
  Rng rng(1);
  const Measurement measured = measure_tcp_info(looks, subjects_, windows_, rng);
  EXPECT_EQ(measured.treated.quantile(0.5), milliseconds(1));
  EXPECT_EQ(measured.untreated.quantile(0.5), milliseconds(44));
}

}  // namespace
}  // namespace tailward::treat
