// Packets and capture files: any bytes are safe; each packet is counted once; a segment that is
// read from a part of a frame is the one of the whole frame. The first byte chooses: 'a' … a link
// type, 'z' a file.

#include <array>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "base/check.h"
#include "probe/pcap_reading.h"

namespace {

using namespace tailward::probe;
using tailward::tcp::Segment;

constexpr std::array<int, 12> kLinkTypes{0, 1, 9, 12, 14, 101, 108, 113, 228, 229, 276, 147};

void check_counted(const CaptureCounters& c) {
  TAILWARD_CHECK(c.packets ==
                 c.tcp + c.not_tcp + c.fragments + c.malformed + c.cut + c.unknown_link);
}

// In a buffer of its own, so that a read beyond its end is seen.
std::optional<Segment> decode(int link_type, std::span<const std::uint8_t> bytes,
                              std::uint32_t on_wire) {
  const std::vector<std::uint8_t> exact(bytes.begin(), bytes.end());
  CaptureCounters counters;
  auto segment = decode_frame(link_type, exact, on_wire, counters);
  TAILWARD_CHECK(counters.packets == 1 && counters.tcp == (segment ? 1u : 0u));
  check_counted(counters);
  return segment;
}

void check_frame(int link_type, std::span<const std::uint8_t> frame) {
  const auto on_wire = static_cast<std::uint32_t>(frame.size());
  const auto whole = decode(link_type, frame, on_wire);
  if (whole) TAILWARD_CHECK(whole->payload <= 65'535 && whole->sack_count <= whole->sack.size());
  for (std::size_t size = 0; size < frame.size() && size < 200; ++size) {
    const auto part = decode(link_type, frame.first(size), on_wire);
    if (!part) continue;
    TAILWARD_CHECK(whole && part->from == whole->from && part->to == whole->to);
    TAILWARD_CHECK(part->seq == whole->seq && part->payload == whole->payload);
    TAILWARD_CHECK(!part->mss || part->mss == whole->mss || part->options_cut);
  }
}

void check_file(std::span<const std::uint8_t> bytes) {
  if (bytes.empty()) return;
  std::vector<std::uint8_t> copy(bytes.begin(), bytes.end());
  std::FILE* stream = fmemopen(copy.data(), copy.size(), "rb");
  std::uint64_t segments = 0;
  SegmentSink sink = [&](const Segment&) { ++segments; };
  tailward::UniqueFunction<bool(std::uint64_t)> keep_going;
  const auto reading = read_capture(stream, "fuzz", sink, keep_going);
  if (!reading) {
    TAILWARD_CHECK(!reading.error().message.empty());
    return;
  }
  check_counted(reading->counters);
  TAILWARD_CHECK(reading->counters.tcp == segments);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::span<const std::uint8_t> rest(data + 1, size - 1);
  if (data[0] == 'z') {
    check_file(rest);
  } else {
    check_frame(kLinkTypes[(data[0] + kLinkTypes.size() * 100 - 'a') % kLinkTypes.size()], rest);
  }
  return 0;
}
