#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "probe/pcap_reading.h"
#include "probe/testing.h"

namespace tailward::probe {
namespace {

using namespace testing;
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Outcome {
  Result<FileReading> reading;
  std::vector<tcp::Segment> segments;
};

Outcome read_text(std::string text, UniqueFunction<bool(std::uint64_t)> keep_going = {}) {
  // fmemopen() refuses nothing at all.
  std::FILE* stream =
      text.empty() ? std::fopen("/dev/null", "rb") : fmemopen(text.data(), text.size(), "rb");
  std::vector<tcp::Segment> segments;
  SegmentSink sink = [&](const tcp::Segment& segment) { segments.push_back(segment); };
  auto reading = read_capture(stream, "test", sink, keep_going);
  return {std::move(reading), std::move(segments)};
}

const Octets kFrame = ethernet(ipv4(tcp()));
constexpr std::uint32_t kEthernet = 1;

TEST(CaptureFileTest, ReadsMicrosecondsAndNanoseconds) {
  for (const bool nanoseconds : {false, true}) {
    PcapText file(kEthernet, nanoseconds);
    file.packet(1'700'000'000, 123'456, kFrame);
    file.packet(1'700'000'001, 999'999, kFrame);
    const Outcome outcome = read_text(file.text());
    ASSERT_TRUE(outcome.reading);
    EXPECT_FALSE(outcome.reading->broken);
    ASSERT_EQ(outcome.segments.size(), 2u);
    EXPECT_EQ(outcome.segments[0].at, 1'700'000'000s + 123'456ns * (nanoseconds ? 1 : 1000));
    EXPECT_EQ(outcome.segments[1].at, 1'700'000'001s + 999'999ns * (nanoseconds ? 1 : 1000));
    EXPECT_EQ(outcome.segments[1].number, 2u);
    EXPECT_EQ(outcome.reading->counters.packets, 2u);
  }
}

TEST(CaptureFileTest, ReadsPcapngOfSeveralInterfacesOfOneKind) {
  PcapngText file;
  file.interface(kEthernet);
  file.interface(kEthernet, 0, 6);
  file.packet(0, 1'700'000'000'123'456'789, kFrame);
  file.packet(1, 1'700'000'000'123'456, kFrame);
  const Outcome outcome = read_text(file.text());
  ASSERT_TRUE(outcome.reading) << outcome.reading.error().message;
  EXPECT_FALSE(outcome.reading->broken);
  ASSERT_EQ(outcome.segments.size(), 2u);
  EXPECT_EQ(outcome.segments[0].at, 1'700'000'000'123'456'789ns);
  EXPECT_EQ(outcome.segments[1].at, 1'700'000'000'123'456'000ns);
}

TEST(CaptureFileTest, InterfacesOfDifferentKindsBreakTheReadingWithAHint) {
  PcapngText file;
  file.interface(kEthernet);
  file.packet(0, 1, kFrame);
  file.interface(101);
  file.packet(1, 2, ipv4(tcp()));
  const Outcome outcome = read_text(file.text());
  ASSERT_TRUE(outcome.reading);
  EXPECT_EQ(outcome.segments.size(), 1u);
  ASSERT_TRUE(outcome.reading->broken);
  EXPECT_THAT(outcome.reading->broken->hint, HasSubstr("several kinds of interfaces"));
}

TEST(CaptureFileTest, UsesTheLengthOnTheWire) {
  PcapText file(kEthernet);
  const Octets big = ethernet(ipv4(tcp({.payload = 1400})));
  file.packet(1, 0, std::span(big).first(60), big.size());
  const Outcome outcome = read_text(file.text());
  ASSERT_EQ(outcome.segments.size(), 1u);
  EXPECT_EQ(outcome.segments[0].payload, 1400u);
}

TEST(CaptureFileTest, AFileCutAnywhereGivesThePacketsBeforeAndSaysThatItBroke) {
  PcapText file(kEthernet);
  file.packet(1, 0, kFrame);
  const std::size_t one = file.text().size();
  file.packet(2, 0, kFrame);
  const std::string whole = file.text();
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    SCOPED_TRACE(size);
    const Outcome outcome = read_text(whole.substr(0, size));
    if (size < 24) {
      ASSERT_FALSE(outcome.reading);
      EXPECT_EQ(outcome.reading.error().kind, ErrorKind::kInvalid);
      EXPECT_THAT(outcome.reading.error().message, HasSubstr("test: "));
      continue;
    }
    ASSERT_TRUE(outcome.reading);
    const std::size_t complete = size < one ? 0 : size < whole.size() ? 1 : 2;
    EXPECT_EQ(outcome.segments.size(), complete);
    EXPECT_EQ(outcome.reading->counters.packets, complete);
    const bool at_an_edge = size == 24 || size == one || size == whole.size();
    EXPECT_EQ(outcome.reading->broken.has_value(), !at_an_edge);
  }
}

TEST(CaptureFileTest, NonsenseInTheMiddleEndsTheReading) {
  PcapText file(kEthernet);
  file.packet(1, 0, kFrame);
  const Outcome outcome = read_text(file.text() + std::string(64, '\xff'));
  ASSERT_TRUE(outcome.reading);
  EXPECT_EQ(outcome.segments.size(), 1u);
  ASSERT_TRUE(outcome.reading->broken);
  EXPECT_FALSE(outcome.reading->broken->message.empty());
}

TEST(CaptureFileTest, WhatIsNoCaptureIsRefused) {
  for (const std::string& text :
       {std::string(100, 'x'), std::string("\x1f\x8b gzip......, .....")}) {
    const Outcome outcome = read_text(text);
    ASSERT_FALSE(outcome.reading);
    EXPECT_EQ(outcome.reading.error().kind, ErrorKind::kInvalid);
    EXPECT_THAT(outcome.reading.error().hint, HasSubstr("zcat"));
  }
}

TEST(CaptureFileTest, StampsThatNoClockGivesAreKeptInRange) {
  PcapngText file;
  file.interface(kEthernet, 0, 0);  // whole seconds
  file.packet(0, UINT64_MAX, kFrame);
  file.packet(0, 9'000'000'000'000, kFrame);
  const Outcome outcome = read_text(file.text());
  ASSERT_EQ(outcome.segments.size(), 2u);
  EXPECT_EQ(outcome.segments[1].at, Duration::max());
}

TEST(CaptureFileTest, AsksWhetherToGoOnAndStops) {
  PcapText file(kEthernet);
  for (int i = 0; i < 10'000; ++i) file.packet(1, 0, kFrame);
  std::vector<std::uint64_t> asked;
  const Outcome outcome = read_text(file.text(), [&](std::uint64_t bytes) {
    asked.push_back(bytes);
    return asked.size() < 2;
  });
  ASSERT_TRUE(outcome.reading);
  EXPECT_TRUE(outcome.reading->stopped);
  EXPECT_FALSE(outcome.reading->broken);
  const std::uint64_t record = 16 + kFrame.size();
  EXPECT_THAT(asked, ElementsAre(4096 * record, 8192 * record));
  EXPECT_EQ(outcome.segments.size(), 8192u);
}

TEST(CaptureFileTest, OpensByPathAndNamesThePathInErrors) {
  const auto path = std::filesystem::temp_directory_path() /
                    ("tailward-capture-" + std::to_string(::getpid()) + ".pcap");
  PcapText file(kEthernet);
  file.packet(1, 0, kFrame);
  std::ofstream(path, std::ios::binary) << file.text();
  std::size_t segments = 0;
  const auto reading = read_capture_file(path, [&](const tcp::Segment&) { ++segments; });
  std::filesystem::remove(path);
  ASSERT_TRUE(reading);
  EXPECT_EQ(segments, 1u);

  const auto gone = read_capture_file(path, [](const tcp::Segment&) {});
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().kind, ErrorKind::kInvalid);
  EXPECT_THAT(gone.error().message, HasSubstr(path.string()));

  const auto folder = read_capture_file("/", [](const tcp::Segment&) {});
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().kind, ErrorKind::kInvalid);
}

}  // namespace
}  // namespace tailward::probe
