// Packets from a capture file or from a live interface, as TCP segments. Headers only: no payload
// is kept, shown or logged.
//
// Files: pcap and pcapng as libpcap reads them, of any link type that servers produce: Ethernet
// with VLAN tags or PPPoE, PPP, loopback (DLT_NULL, DLT_LOOP), Linux cooked v1 and v2, raw IP. IP
// fragments other than the first, tunnels and encryption are counted as unread. A pcapng file whose
// interfaces are of several link types is read up to the second one: libpcap goes no further.
//
// Thread safety: one thread for each object.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_function.h"
#include "tcp/segment.h"

namespace tailward::probe {

struct CaptureCounters {
  std::uint64_t packets = 0;       // of any kind
  std::uint64_t tcp = 0;           // segments handed on
  std::uint64_t not_tcp = 0;       // IP, but another protocol, and what is not IP
  std::uint64_t fragments = 0;     // later fragments, which have no ports
  std::uint64_t malformed = 0;     // lengths that contradict each other
  std::uint64_t cut = 0;           // too little captured to read the ports
  std::uint64_t unknown_link = 0;  // of a link type that is not read
  std::uint64_t lost = 0;          // dropped by the kernel or interface before we saw them
};

// Reads one link-layer frame. Empty where it holds no TCP segment that can be read; the reason is
// counted. `captured` may be shorter than `on_wire` bytes. Any bytes are safe.
std::optional<tcp::Segment> decode_frame(int link_type, std::span<const std::uint8_t> captured,
                                         std::uint32_t on_wire, CaptureCounters& counters);

using SegmentSink = UniqueFunction<void(const tcp::Segment&)>;

struct FileReading {
  CaptureCounters counters;
  // Set when the file broke off or turned to nonsense: what was read until then counts.
  std::optional<Error> broken;
  bool stopped = false;  // by keep_going
};

// Reads a whole capture file ("-": standard input). `keep_going` is asked every few thousand
// packets with the bytes read so far. Errors: kInvalid (no such file, no capture), kDenied.
Result<FileReading> read_capture_file(const std::string& path, SegmentSink sink,
                                      UniqueFunction<bool(std::uint64_t bytes)> keep_going = {});

struct LiveOptions {
  std::string interface = "any";
  // Either end; the kernel filters. Empty: all TCP. Below up to two VLAN tags; on "any", below the
  // one that the kernel takes off.
  std::vector<std::uint16_t> ports = {};
  int snap_length = 160;  // bytes of each packet
  int buffer_bytes = 8 << 20;
  // Capture in the network namespace of this process; 0: in our own.
  int pid = 0;
  std::string write_to = {};  // also written as pcap to this file, if not empty
};

class LiveCapture {
 public:
  // Opens the interface. Errors: kDenied (with the capability that is missing), kInvalid (no such
  // interface), kUnsupported.
  static Result<std::unique_ptr<LiveCapture>> open(const LiveOptions& options);
  ~LiveCapture();

  // Handles what is there, waiting for at most `wait`. Returns the number of segments. The kernel
  // hands packets on up to 20 ms late. Errors: kDisconnected (the interface is gone), kInvalid (the
  // file cannot be written).
  Result<std::size_t> poll(Duration wait, SegmentSink& sink);
  // The kernel's losses included.
  [[nodiscard]] CaptureCounters counters();

 private:
  class Impl;
  explicit LiveCapture(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tailward::probe
