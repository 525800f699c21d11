#include "diagnose/render.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/html.h"
#include "report/terminal.h"

namespace tailward::diagnose {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

// A hundred requests of 2 ms, and as many that lost 40 ms to what `finding` names.
Diagnosis half_stalled() {
  Diagnosis diagnosis;
  diagnosis.window = std::chrono::seconds(10);
  diagnosis.packets.packets = 1600;
  diagnosis.packets.turns_seen = 200;
  diagnosis.packets.connections_seen = 4;
  for (int at = 0; at < 200; ++at) {
    diag::Turn turn;
    turn.total = at % 2 == 0 ? milliseconds(2) : milliseconds(42);
    if (at % 2 == 1) turn.stalled_us[0] = 40'000;
    diagnosis.packets.turns.push_back(turn);
    diagnosis.packets.latency.record(turn.total);
  }
  diagnosis.network.sentence = "The server waits for its peer.";
  diagnosis.network.slow_from = milliseconds(42);
  diagnosis.network.parts = {
      {"held by Nagle", milliseconds(40), milliseconds(0), milliseconds(40), 1.0}};
  diagnosis.sources = {{"packets", "used", "1,600 TCP segments"},
                       {"options", "denied", "run it as root"}};
  return diagnosis;
}

diag::Finding finding_of(diag::Cause cause) {
  diag::Finding finding;
  finding.layer = findings::Layer::kCause;
  finding.cause = cause;
  finding.certainty = findings::Certainty::kConsistent;
  finding.sentence = "a small segment waits 40 ms for an acknowledgement";
  finding.evidence = {{"100 of 200 requests", {7, 9, 11}}};
  finding.missing = {"the options of the server's sockets"};
  finding.remedy = "set TCP_NODELAY";
  finding.verify = "the step at 40 ms is gone";
  finding.predicted_p99 = milliseconds(2);
  finding.cost = std::chrono::seconds(4);
  finding.share_of_slow = 1.0;
  return finding;
}

report::RunInfo run_info() {
  return {.command = "tailward diagnose --pcap x.pcap",
          .version = "1.2.3",
          .seed = 0,
          .started = "2026-11-30T00:00:00Z"};
}

TEST(DiagnoseRenderTest, WritesEveryFieldOfTheContract) {
  Diagnosis diagnosis = half_stalled();
  diagnosis.network.findings = {finding_of(diag::Cause::kNagleDelayedAck)};
  const report::Json json = to_json(diagnosis, run_info());
  for (const char* name :
       {"tailward", "command", "seed", "started", "partial", "requests", "latency", "slow_from_ms",
        "parts", "unexplained_ms", "findings", "hedging", "sources", "lost_events", "overhead"}) {
    EXPECT_TRUE(json.contains(name)) << name;
  }
  EXPECT_EQ(json["requests"], 200);
  EXPECT_NEAR(json["latency"]["p50_ms"].get<double>(), 2, 0.1);
  EXPECT_NEAR(json["latency"]["p99_ms"].get<double>(), 42, 1);
  const report::Json& finding = json["findings"][0];
  EXPECT_EQ(finding["cause"], "nagle-delayed-ack");
  EXPECT_EQ(finding["layer"], "cause");
  EXPECT_EQ(finding["certainty"], "consistent");
  EXPECT_EQ(finding["evidence"][0]["packets"], (report::Json{7, 9, 11}));
  EXPECT_EQ(finding["predicted_p99_ms"], 2.0);
  EXPECT_EQ(json["parts"][0]["name"], "held by Nagle");
  EXPECT_EQ(json["parts"][0]["extra_ms"], 40.0);
  EXPECT_EQ(json["sources"]["options"], "denied");
}

TEST(DiagnoseRenderTest, AdvisesAgainstHedgingWhatWouldStrikeAgain) {
  Diagnosis diagnosis = half_stalled();
  diagnosis.network.findings = {finding_of(diag::Cause::kNagleDelayedAck)};
  const HedgingAdvice advice = hedging_advice(diagnosis);
  EXPECT_EQ(advice.advice, "no");
  // A delay at the P95 of what requests take without the stall hedges all that have it.
  ASSERT_TRUE(advice.trigger_rate);
  EXPECT_NEAR(*advice.trigger_rate, 0.5, 0.01);
}

TEST(DiagnoseRenderTest, LeavesHedgingOpenWhereLossStrikesAtRandom) {
  Diagnosis diagnosis = half_stalled();
  diagnosis.network.findings = {finding_of(diag::Cause::kPacketLoss)};
  EXPECT_EQ(hedging_advice(diagnosis).advice, "maybe");
  diagnosis.network.findings.clear();
  EXPECT_EQ(hedging_advice(diagnosis).advice, "unknown");
}

TEST(DiagnoseRenderTest, HasNoTriggerRateFromAHandfulOfRequests) {
  Diagnosis diagnosis = half_stalled();
  diagnosis.packets.turns.resize(5);
  EXPECT_FALSE(hedging_advice(diagnosis).trigger_rate);
}

TEST(DiagnoseRenderTest, ShowsFindingsWithTheirEvidenceAndWhatIsNotKnown) {
  Diagnosis diagnosis = half_stalled();
  diagnosis.network.findings = {finding_of(diag::Cause::kNagleDelayedAck)};
  diagnosis.capture.lost = 17;
  const std::string text = report::to_terminal(to_report(diagnosis, run_info()));
  EXPECT_THAT(text, HasSubstr("nagle-delayed-ack (consistent)"));
  EXPECT_THAT(text, HasSubstr("[packets 7, 9, 11]"));
  EXPECT_THAT(text, HasSubstr("not known: the options of the server's sockets"));
  EXPECT_THAT(text, HasSubstr("17 packets were dropped"));
  EXPECT_THAT(text, HasSubstr("Would hedging help? no"));
}

TEST(DiagnoseRenderTest, DrawsTheProvingPackets) {
  Diagnosis diagnosis = half_stalled();
  diagnosis.network.findings = {finding_of(diag::Cause::kNagleDelayedAck)};
  diag::ConnectionSummary connection;
  connection.client.port = 40'000;
  connection.server.port = 80;
  diagnosis.packets.connections = {connection};
  diag::ProofPackets proof{.connection = 0,
                           .stall = {.kind = diag::StallKind::kHeldByNagle,
                                     .from = milliseconds(1),
                                     .until = milliseconds(41),
                                     .packets = {1, 2}}};
  for (std::uint64_t number = 1; number <= 2; ++number) {
    tcp::Segment segment;
    segment.number = number;
    segment.at = milliseconds(number == 1 ? 1 : 41);
    segment.from.port = 80;
    segment.to.port = 40'000;
    segment.seq = 1000 + static_cast<std::uint32_t>(number) * 100;
    segment.payload = 100;
    proof.segments.push_back(segment);
  }
  diagnosis.packets.proofs = {proof};
  const std::string page = report::to_html(to_report(diagnosis, run_info()));
  EXPECT_THAT(page, HasSubstr("100 B at 0"));
  EXPECT_THAT(page, HasSubstr("100 B at 100"));
  // What costs most is drawn first.
  diagnosis.packets.proofs.push_back(proof);
  diagnosis.packets.proofs.back().stall.kind = diag::StallKind::kZeroWindow;
  diagnosis.packets.patterns.resize(1);
  diagnosis.packets.patterns[0].kind = diag::StallKind::kZeroWindow;
  diagnosis.packets.patterns[0].total = milliseconds(5000);
  const std::string text = report::to_terminal(to_report(diagnosis, run_info()), {});
  EXPECT_THAT(text, HasSubstr("reader not reading: the packets"));
  diagnosis.packets.proofs.pop_back();
  // Without a finding nothing is shown.
  diag::Finding finding = diagnosis.network.findings.front();
  diagnosis.network.findings.clear();
  EXPECT_THAT(report::to_terminal(to_report(diagnosis, run_info()), {}),
              Not(HasSubstr("that show it")));
  diagnosis.network.findings.push_back(finding);
  // A proof that names a connection that is not there is left out, not followed.
  diagnosis.packets.proofs.front().connection = 9;
  EXPECT_THAT(report::to_html(to_report(diagnosis, run_info())), Not(HasSubstr("100 B at 100")));
}

TEST(DiagnoseRenderTest, SaysWhenNothingWasSeen) {
  Diagnosis diagnosis;
  diagnosis.network.sentence = "There is nothing to judge.";
  const report::Json json = to_json(diagnosis, run_info());
  EXPECT_EQ(json["requests"], 0);
  EXPECT_TRUE(json["latency"]["p99_ms"].is_null());
  EXPECT_THAT(report::to_terminal(to_report(diagnosis, run_info())),
              HasSubstr("No TCP segment was seen."));
}

}  // namespace
}  // namespace tailward::diagnose
