// A second opinion on captures that were made elsewhere, many of them malformed on purpose: the
// same TCP segments as tshark. The captures lie beside the repository or where TAILWARD_CAPTURES
// says, and are not a part of it.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "probe/captures_testing.h"
#include "probe/pcap_reading.h"
#include "probe/testing.h"

namespace tailward::probe {
namespace {

namespace fs = std::filesystem;
using testing::capture_files;
using testing::captures_folder;

// All packets of all files in one capture: starting tshark costs more than all it has to do.
struct Pile {
  testing::PcapngText text;
  std::map<int, std::uint32_t> interfaces;        // by link type
  std::vector<std::string> origin;                // of each packet: its file
  std::vector<std::optional<tcp::Segment>> ours;  // of each packet
  std::map<int, std::set<std::string>> unread;    // files, by their link type that is not read
  std::set<std::string> files;                    // that have packets in the pile
};

void add_file(const fs::path& path, Pile& pile) {
  std::array<char, PCAP_ERRBUF_SIZE> why{};
  const PcapHandle handle(pcap_open_offline(path.c_str(), why.data()));
  if (!handle) return;
  const int type = pcap_datalink(handle.get());
  pcap_pkthdr* header = nullptr;
  const u_char* bytes = nullptr;
  CaptureCounters counters;
  while (pcap_next_ex(handle.get(), &header, &bytes) == 1) {
    auto segment = decode_packet(type, *header, bytes, counters);
    if (counters.unknown_link != 0) {
      pile.unread[type].insert(path.filename());
      return;
    }
    if (!pile.interfaces.contains(type)) {
      pile.interfaces.emplace(type, static_cast<std::uint32_t>(pile.interfaces.size()));
      constexpr int kRawHere = 12;  // has another number in files
      pile.text.interface(static_cast<std::uint16_t>(type == kRawHere ? 101 : type));
    }
    pile.text.packet(pile.interfaces[type], pile.origin.size() * 1'000'000, {bytes, header->caplen},
                     header->len);
    pile.origin.push_back(path.filename());
    pile.ours.push_back(segment);
    pile.files.insert(path.filename());
  }
}

using Fields = std::vector<std::string>;  // see kFields

const Fields kFields{"frame.protocols", "ip.id",       "tcp.srcport", "tcp.dstport",
                     "tcp.seq_raw",     "tcp.ack_raw", "tcp.len",     "tcp.window_size_value"};

// By number of the packet, from 1.
std::map<std::uint64_t, Fields> tshark_fields(const std::string& file) {
  std::string command =
      "tshark -n -o ip.defragment:FALSE -o ipv6.defragment:FALSE -o tcp.desegment_tcp_streams:FALSE"
      " -Y 'tcp && !icmp && !icmpv6' -T fields -E separator=/t -E occurrence=f -e frame.number";
  for (const std::string& field : kFields) command += " -e " + field;
  std::FILE* pipe = ::popen((command + " -r " + file + " 2>/dev/null").c_str(), "r");
  std::string text;
  std::array<char, 65'536> room{};
  while (const std::size_t got = std::fread(room.data(), 1, room.size(), pipe)) {
    text.append(room.data(), got);
  }
  ::pclose(pipe);
  std::map<std::uint64_t, Fields> all;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    Fields fields;
    std::istringstream cells(line);
    for (std::string cell; std::getline(cells, cell, '\t');) fields.push_back(cell);
    fields.resize(1 + kFields.size());
    const auto number = std::stoull(fields[0]);
    fields.erase(fields.begin());
    all.emplace(number, std::move(fields));
  }
  return all;
}

// "" where it does not.
std::string difference(const tcp::Segment& ours, const Fields& theirs) {
  const auto number = [&](std::size_t at) { return std::strtoull(theirs[at].c_str(), nullptr, 0); };
  if (ours.ip_id != number(1)) return "ip.id";
  if (ours.from.port != number(2) || ours.to.port != number(3)) return "ports";
  if (ours.seq != number(4) || ours.ack != number(5)) return "seq, ack";
  if (ours.window != number(7)) return "window";
  // tshark says no length where the header was cut.
  if (!theirs[6].empty() && ours.payload != number(6)) return "length";
  return "";
}

// Where we mean to differ. A newer tshark may agree.
const std::map<std::string, std::string> kExceptions{
    {"bigtcp-ipv6.pcap: only we", "tshark 4.0 does not read BIG TCP over IPv6"},
    {"kday7.pcap: length",
     "the IP header says more than was on the wire: tshark believes the wire"},
    {"tcp_header_heapoverflow.pcap: only tshark", "12 bytes of TCP were captured: ports, no flags"},
};

// "eth:ethertype:ip:tcp:http": TCP straight over IP over a link layer, and no tunnel, into which
// tshark descends.
bool is_direct(const std::string& protocols) {
  std::istringstream words(protocols);
  std::string word;
  std::getline(words, word, ':');
  const auto next = [&] { return static_cast<bool>(std::getline(words, word, ':')); };
  const std::set<std::string> tags{"ethertype", "vlan", "ieee8021ad", "pppoes", "ppp"};
  while (next() && tags.contains(word)) {
  }
  if (word != "ip" && word != "ipv6") return false;
  while (next() && (word.starts_with("ipv6.") || word == "ah")) {
  }
  return word == "tcp";
}

struct Comparison {
  std::uint64_t same = 0, tunnelled = 0;
  std::set<std::string> differing;
};

Comparison compare(const Pile& pile, const std::map<std::uint64_t, Fields>& theirs) {
  Comparison result;
  for (std::size_t i = 0; i < pile.ours.size(); ++i) {
    const auto found = theirs.find(i + 1);
    const bool tunnel = found != theirs.end() && !is_direct(found->second[0]);
    const bool expected = found != theirs.end() && !tunnel;
    std::string what;
    if (expected != pile.ours[i].has_value()) {
      what = expected ? "only tshark" : "only we";
    } else if (expected) {
      what = difference(*pile.ours[i], found->second);
    }
    if (tunnel) ++result.tunnelled;
    if (expected && what.empty()) ++result.same;
    if (!what.empty()) result.differing.insert(pile.origin[i] + ": " + what);
  }
  return result;
}

std::vector<fs::path> files_or_skip_reason(std::string& reason) {
  auto files = capture_files();
  if (files.empty()) reason = "no captures in " + captures_folder().string();
  return files;
}

TEST(CaptureAgreementTest, FindsTheSameTcpSegmentsAsTshark) {
  std::string reason;
  const auto files = files_or_skip_reason(reason);
  if (reason.empty() && std::system("tshark --version >/dev/null 2>&1") != 0) {
    reason = "tshark is missing";
  }
  if (!reason.empty()) GTEST_SKIP() << reason;

  Pile pile;
  for (const fs::path& file : files) add_file(file, pile);
  const std::string path =
      (fs::temp_directory_path() / fmt::format("tailward-pile-{}.pcapng", ::getpid())).string();
  std::ofstream(path, std::ios::binary) << pile.text.text();
  const auto theirs = tshark_fields(path);
  fs::remove(path);
  ASSERT_FALSE(theirs.empty()) << "tshark could not read what was put together for it";
  const Comparison found = compare(pile, theirs);

  fmt::print(
      "{} files, {} compared: {} packets, {} TCP segments the same, {} in tunnels left out\n",
      files.size(), pile.files.size(), pile.ours.size(), found.same, found.tunnelled);
  for (const auto& [type, names] : pile.unread) {
    const char* name = pcap_datalink_val_to_name(type);
    fmt::print("  not compared: {} of link type {} ({})\n", names.size(), type,
               name != nullptr ? name : "?");
  }
  for (const std::string& line : found.differing) {
    const auto exception = kExceptions.find(line);
    if (exception == kExceptions.end()) {
      ADD_FAILURE() << line;
    } else {
      fmt::print("  meant to differ: {} ({})\n", line, exception->second);
    }
  }
}

TEST(CaptureAgreementTest, ReadsEveryFileOrSaysWhyNotAndCountsEachPacketOnce) {
  std::string reason;
  const auto files = files_or_skip_reason(reason);
  if (!reason.empty()) GTEST_SKIP() << reason;
  for (const fs::path& file : files) {
    SCOPED_TRACE(file.string());
    std::uint64_t segments = 0;
    const auto reading = read_capture_file(file, [&](const tcp::Segment&) { ++segments; });
    if (!reading) {
      EXPECT_FALSE(reading.error().message.empty());
      continue;
    }
    const CaptureCounters& c = reading->counters;
    EXPECT_EQ(c.tcp, segments);
    EXPECT_EQ(c.packets, c.tcp + c.not_tcp + c.fragments + c.malformed + c.cut + c.unknown_link);
  }
}

}  // namespace
}  // namespace tailward::probe
