// Captures that others made, with what happened in them: Chris Sanders's public collection
// "packets". They are not part of the repository: the test is skipped where they are not beside it.

#include <gtest/gtest.h>

#include <filesystem>

#include "diag/network_diagnosis.h"
#include "diag/packet_analyser.h"
#include "probe/capture.h"
#include "probe/captures_testing.h"

namespace tailward::diagnose {
namespace {

struct Known {
  const char* file;
  const char* finding;  // the first; "none"
};

constexpr Known kKnown[] = {
    {"tcp_retransmissions", "packet-loss"},
    {"tcp_dupack", "packet-loss"},
    {"tcp_zerowindowdead", "slow-reader"},
    {"latency2", "wire-latency"},
    {"tcp_refuseconnection", "connection-refused"},
    {"latency1", "none"},
    {"http_google", "none"},
    {"http_post", "none"},
    {"dns_tcp", "none"},
};

class KnownCapturesTest : public ::testing::TestWithParam<Known> {};

TEST_P(KnownCapturesTest, IsFoundToBeWhatItIs) {
  const auto file =
      probe::testing::captures_folder() / "known" / (std::string(GetParam().file) + ".pcapng");
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "not there: " << file;
  diag::PacketAnalyser analyser;
  const auto reading = probe::read_capture_file(
      file.string(), [&](const tcp::Segment& segment) { analyser.add(segment); });
  ASSERT_TRUE(reading) << reading.error().message;
  EXPECT_FALSE(reading->broken);
  const auto analysis = analyser.finish();
  const auto diagnosis = diag::diagnose_network({.packets = &analysis});
  const diag::Cause first =
      diagnosis.findings.empty() ? diag::Cause::kNone : diagnosis.findings.front().cause;
  EXPECT_EQ(to_string(first), GetParam().finding) << diagnosis.sentence;
  EXPECT_LE(diagnosis.findings.size(), 1u);
}

INSTANTIATE_TEST_SUITE_P(All, KnownCapturesTest, ::testing::ValuesIn(kKnown),
                         [](const auto& known) { return std::string(known.param.file); });

}  // namespace
}  // namespace tailward::diagnose
