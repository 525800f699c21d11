// A second opinion on captures that were made elsewhere: as many retransmissions as tshark's. Every
// one of them is diagnosed, the malformed ones too: with sanitizers that is a test of its own. The
// captures lie beside the repository or where TAILWARD_CAPTURES says, and are not a part of it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "diag/analysis.h"
#include "diag/network_diagnosis.h"
#include "diag/packet_analyser.h"
#include "probe/capture.h"
#include "probe/captures_testing.h"
#include "tcp/sequence.h"

namespace tailward::diagnose {
namespace {

namespace fs = std::filesystem;
using probe::testing::capture_files;
using probe::testing::captures_folder;

// Whether any bytes may have come again: they begin before what their direction has had. Without
// that there is nothing to ask tshark about, which takes most of a second for each file.
class AnyOldBytes {
 public:
  void add(const tcp::Segment& s) {
    const std::uint32_t length = s.payload + (s.syn ? 1 : 0) + (s.fin ? 1 : 0);
    if (length == 0) return;
    const auto [place, added] = next_.try_emplace({s.from, s.to}, s.seq + length);
    if (added) return;
    if (tcp::distance(s.seq, place->second) < 0) any_ = true;
    place->second = s.seq + length;
  }
  [[nodiscard]] bool any() const { return any_; }

 private:
  std::map<std::pair<tcp::SocketAddress, tcp::SocketAddress>, std::uint32_t> next_;
  bool any_ = false;
};

struct Ours {
  std::uint64_t tcp = 0, retransmissions = 0;
  bool old_bytes = false;
};

Ours diagnose_file(const fs::path& file) {
  Ours ours;
  AnyOldBytes old_bytes;
  diag::PacketAnalyser analyser;
  const auto reading = probe::read_capture_file(file, [&](const tcp::Segment& segment) {
    ++ours.tcp;
    old_bytes.add(segment);
    analyser.add(segment);
  });
  if (!reading) return ours;  // the reader's own test sees to what it says
  const diag::PacketAnalysis analysis = analyser.finish();
  EXPECT_EQ(analysis.packets, ours.tcp);
  EXPECT_LE(analysis.retransmissions + analysis.duplicates + analysis.reordered, ours.tcp);
  EXPECT_FALSE(diag::diagnose_network({.packets = &analysis}).sentence.empty());
  ours.retransmissions = analysis.retransmissions;
  ours.old_bytes = old_bytes.any();
  return ours;
}

std::string quoted(const std::string& text) { return "'" + text + "'"; }

// The numbers of the packets.
std::vector<std::string> tshark_retransmissions(const fs::path& file) {
  const std::string command =
      "tshark -n -o ip.defragment:FALSE -o tcp.desegment_tcp_streams:FALSE -Y "
      "'tcp.analysis.retransmission || tcp.analysis.fast_retransmission || "
      "tcp.analysis.spurious_retransmission' -T fields -e frame.number -r " +
      quoted(file.string()) + " 2>/dev/null";
  std::FILE* pipe = ::popen(command.c_str(), "r");
  std::vector<std::string> numbers;
  std::array<char, 64> line{};
  while (std::fgets(line.data(), line.size(), pipe) != nullptr) {
    numbers.emplace_back(line.data());
    numbers.back().pop_back();
  }
  ::pclose(pipe);
  return numbers;
}

// Where we mean to differ: tshark takes a packet that was captured twice for one sent twice.
const std::map<std::string, std::string> kExceptions{
    {"bgp-shutdown-communication.pcapng: 0 of tshark's 1 (packets 2)",
     "the same packet twice at the same time, with the same IP identification and time stamp"},
    {"pptp.pcap: 0 of tshark's 4 (packets 3 9 14 20)",
     "every packet of one host, its pure ACKs too, comes again within 0.3 ms, with the same IP "
     "identification: captured at two places"},
};

TEST(CaptureAgreementTest, DiagnosesEveryFileAndCountsTheSameRetransmissionsAsTshark) {
  const auto files = capture_files();
  if (files.empty()) GTEST_SKIP() << "no captures in " << captures_folder();
  const bool tshark = std::system("tshark --version >/dev/null 2>&1") == 0;
  std::uint64_t with_tcp = 0, asked = 0, agreed = 0;
  for (const fs::path& file : files) {
    SCOPED_TRACE(file.string());
    const Ours ours = diagnose_file(file);
    if (ours.tcp > 0) ++with_tcp;
    if (!ours.old_bytes) {
      EXPECT_EQ(ours.retransmissions, 0u) << "nothing came again";
      continue;
    }
    if (!tshark) continue;
    ++asked;
    const auto theirs = tshark_retransmissions(file);
    if (theirs.size() == ours.retransmissions) {
      agreed += ours.retransmissions;
      continue;
    }
    std::string line = fmt::format("{}: {} of tshark's {} (packets", file.filename().string(),
                                   ours.retransmissions, theirs.size());
    for (const std::string& number : theirs) line += " " + number;
    line += ")";
    const auto exception = kExceptions.find(line);
    if (exception == kExceptions.end()) {
      ADD_FAILURE() << line;
    } else {
      fmt::print("  meant to differ: {} ({})\n", line, exception->second);
    }
  }
  fmt::print("{} files, {} with TCP, {} with bytes that came again; {} retransmissions agreed\n",
             files.size(), with_tcp, asked, agreed);
  if (!tshark) GTEST_SKIP() << "tshark is missing: diagnosed, and nothing compared";
  EXPECT_GT(agreed, 0u);
}

}  // namespace
}  // namespace tailward::diagnose
