// What reading a capture file and capturing live have in common, and the file reader below its
// path. For src/probe and its tests.
//
// Thread safety: none; each object belongs to one thread.
#pragma once

#include <pcap/pcap.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "probe/capture.h"

namespace tailward::probe {

struct PcapCloser {
  void operator()(pcap_t* handle) const { pcap_close(handle); }
};
using PcapHandle = std::unique_ptr<pcap_t, PcapCloser>;

// One packet of a handle with nanosecond stamps. Stamps beyond what a Duration holds (of damaged
// files) come out as the nearest that it does.
std::optional<tcp::Segment> decode_packet(int link_type, const pcap_pkthdr& header,
                                          const std::uint8_t* bytes, CaptureCounters& counters);

// read_capture_file() for a stream, which it closes unless it is standard input. `name` is for
// messages.
Result<FileReading> read_capture(std::FILE* stream, const std::string& name, SegmentSink& sink,
                                 UniqueFunction<bool(std::uint64_t bytes)>& keep_going);

}  // namespace tailward::probe
