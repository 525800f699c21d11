#include <algorithm>

#include "probe/capture.h"

namespace tailward::probe {

namespace {

using tcp::Segment;

// Why a frame gives no segment: the counter that says so. nullptr: it does.
using Unread = std::uint64_t CaptureCounters::*;
constexpr Unread kRead = nullptr;

// https://www.tcpdump.org/linktypes.html. What libpcap calls DLT_RAW has three numbers.
enum LinkType : int {
  kNull = 0,
  kEthernet = 1,
  kPpp = 9,
  kRaw = 12,
  kRawOpenBsd = 14,
  kRawFile = 101,
  kLoop = 108,
  kLinuxCooked = 113,
  kIpv4 = 228,
  kIpv6 = 229,
  kLinuxCooked2 = 276,
};

enum EtherType : std::uint16_t {
  kEtherIpv4 = 0x0800,
  kEtherVlan = 0x8100,
  kEtherIpv6 = 0x86dd,
  kEtherPppoe = 0x8864,
  kEtherQinq = 0x88a8,     // IEEE 802.1ad
  kEtherQinqOld = 0x9100,  // before there was a standard
};

enum IpProtocol : std::uint8_t {
  kHopByHop = 0,
  kTcp = 6,
  kRouting = 43,
  kFragment = 44,
  kAuthentication = 51,
  kDestination = 60,
  kMobility = 135,
};

// What is left of a frame. Reads are checked by the caller, once for each header.
class Bytes {
 public:
  Bytes(std::span<const std::uint8_t> captured, std::uint32_t on_wire)
      : data_(captured.data()),
        size_(captured.size()),
        on_wire_(std::max<std::size_t>(on_wire, captured.size())) {}

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::size_t on_wire() const { return on_wire_; }

  // A header of `count` bytes: captured, cut off, or impossible?
  [[nodiscard]] Unread lacks(std::size_t count) const {
    if (size_ >= count) return kRead;
    return on_wire_ < count ? &CaptureCounters::malformed : &CaptureCounters::cut;
  }
  [[nodiscard]] const std::uint8_t* data() const { return data_; }
  [[nodiscard]] std::uint8_t u8(std::size_t at) const { return data_[at]; }
  [[nodiscard]] std::uint16_t u16(std::size_t at) const {
    return static_cast<std::uint16_t>(data_[at] << 8 | data_[at + 1]);
  }
  [[nodiscard]] std::uint32_t u32(std::size_t at) const {
    return static_cast<std::uint32_t>(u16(at)) << 16 | u16(at + 2);
  }

  void drop(std::size_t count) {
    data_ += count;
    size_ -= count;
    on_wire_ -= count;
  }
  // The header below says how long it is: what follows is padding. It may also say more than was on
  // the wire, where a tool shortened the packet and lost its length.
  void set_length(std::size_t length) {
    on_wire_ = length;
    size_ = std::min(size_, length);
  }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
  std::size_t on_wire_;
};

// ---- link layer: leaves the IP header in front
// ---------------------------------------------------

Unread read_ppp(Bytes& bytes) {
  if (Unread unread = bytes.lacks(2)) return unread;
  if (bytes.u16(0) == 0xff03) {  // address and control, RFC 1662
    bytes.drop(2);
    if (Unread unread = bytes.lacks(2)) return unread;
  }
  const std::uint16_t protocol = bytes.u16(0);
  bytes.drop(2);
  return protocol == 0x0021 || protocol == 0x0057 ? kRead : &CaptureCounters::not_tcp;
}

Unread read_ethertype(std::uint16_t type, Bytes& bytes) {
  while (type == kEtherVlan || type == kEtherQinq || type == kEtherQinqOld) {
    if (Unread unread = bytes.lacks(4)) return unread;
    type = bytes.u16(2);
    bytes.drop(4);
  }
  if (type == kEtherIpv4 || type == kEtherIpv6) return kRead;
  if (type != kEtherPppoe) return &CaptureCounters::not_tcp;
  constexpr std::size_t kPppoeHeader = 6;
  if (Unread unread = bytes.lacks(kPppoeHeader)) return unread;
  bytes.drop(kPppoeHeader);
  return read_ppp(bytes);
}

// A header of `size` bytes with an EtherType at `at`.
Unread read_typed(std::size_t size, std::size_t at, Bytes& bytes) {
  if (Unread unread = bytes.lacks(size)) return unread;
  const std::uint16_t type = bytes.u16(at);
  bytes.drop(size);
  return read_ethertype(type, bytes);
}

// The address family in the byte order of the machine that captured, and each system numbers IPv6
// in its own way.
Unread read_loopback(Bytes& bytes) {
  if (Unread unread = bytes.lacks(4)) return unread;
  const unsigned family = bytes.u8(0) != 0 ? bytes.u8(0) : bytes.u8(3);
  bytes.drop(4);
  const bool is_ip = family == 2 || family == 10 || family == 24 || family == 28 || family == 30;
  return is_ip ? kRead : &CaptureCounters::not_tcp;
}

Unread read_link(int link_type, Bytes& bytes, Segment& segment) {
  switch (link_type) {
    case kEthernet:
      return read_typed(14, 12, bytes);
    case kLinuxCooked:
      return read_typed(16, 14, bytes);
    case kLinuxCooked2:
      if (bytes.size() >= 8) segment.interface = bytes.u32(4);
      return read_typed(20, 0, bytes);
    case kNull:
    case kLoop:
      return read_loopback(bytes);
    case kPpp:
      return read_ppp(bytes);
    case kRaw:
    case kRawOpenBsd:
    case kRawFile:
    case kIpv4:
    case kIpv6:
      return kRead;
    default:
      return &CaptureCounters::unknown_link;
  }
}

// ---- IP: leaves the TCP header in front
// ----------------------------------------------------------

tcp::Address mapped(const std::uint8_t* v4) {
  tcp::Address address;
  address.bytes[10] = address.bytes[11] = 0xff;
  std::copy_n(v4, 4, address.bytes.begin() + 12);
  return address;
}

Unread read_ipv4(Bytes& bytes, Segment& segment) {
  if (Unread unread = bytes.lacks(20)) return unread;
  const std::size_t header = (bytes.u8(0) & 0x0f) * 4u;
  // 0: the network card was to cut it into packets (TSO, BIG TCP), or it was captured before that.
  const std::size_t total = bytes.u16(2) != 0 ? bytes.u16(2) : bytes.on_wire();
  if (header < 20 || total < header) return &CaptureCounters::malformed;
  if (bytes.u8(9) != kTcp) return &CaptureCounters::not_tcp;
  if ((bytes.u16(6) & 0x1fff) != 0) return &CaptureCounters::fragments;
  segment.ip_id = bytes.u16(4);
  segment.from.address = mapped(bytes.data() + 12);
  segment.to.address = mapped(bytes.data() + 16);
  bytes.set_length(total);
  if (Unread unread = bytes.lacks(header)) return unread;
  bytes.drop(header);
  return kRead;
}

// Each extension header is at least 8 bytes long, so this ends.
Unread skip_extensions(std::uint8_t next, Bytes& bytes) {
  while (next != kTcp) {
    if (next != kHopByHop && next != kRouting && next != kFragment && next != kAuthentication &&
        next != kDestination && next != kMobility) {
      return &CaptureCounters::not_tcp;
    }
    if (Unread unread = bytes.lacks(8)) return unread;
    std::size_t size = (bytes.u8(1) + 1u) * 8;
    if (next == kAuthentication) size = std::max<std::size_t>(8, (bytes.u8(1) + 2u) * 4);
    if (next == kFragment) {
      size = 8;
      if ((bytes.u16(2) & 0xfff8) != 0) {
        return bytes.u8(0) == kTcp ? &CaptureCounters::fragments : &CaptureCounters::not_tcp;
      }
    }
    if (Unread unread = bytes.lacks(size)) return unread;
    next = bytes.u8(0);
    bytes.drop(size);
  }
  return kRead;
}

Unread read_ipv6(Bytes& bytes, Segment& segment) {
  constexpr std::size_t kHeader = 40;
  if (Unread unread = bytes.lacks(kHeader)) return unread;
  const std::size_t payload = bytes.u16(4);
  const std::uint8_t next = bytes.u8(6);
  std::copy_n(bytes.data() + 8, 16, segment.from.address.bytes.begin());
  std::copy_n(bytes.data() + 24, 16, segment.to.address.bytes.begin());
  // 0: a jumbogram (RFC 2675) or BIG TCP; both are longer than any padding.
  if (payload != 0) bytes.set_length(kHeader + payload);
  bytes.drop(kHeader);
  return skip_extensions(next, bytes);
}

Unread read_ip(Bytes& bytes, Segment& segment) {
  if (Unread unread = bytes.lacks(1)) return unread;
  switch (bytes.u8(0) >> 4) {
    case 4:
      return read_ipv4(bytes, segment);
    case 6:
      return read_ipv6(bytes, segment);
    default:
      return &CaptureCounters::malformed;
  }
}

// ---- TCP
// -----------------------------------------------------------------------------------------

enum TcpOption : std::uint8_t {
  kEnd = 0,
  kNoOperation = 1,
  kMss = 2,
  kWindowScale = 3,
  kSackPermitted = 4,
  kSack = 5,
  kTimestamps = 8,
};

// One option whose `size` bytes are all there. False: it has not the size that it must have.
bool read_option(const Bytes& bytes, std::size_t size, Segment& segment) {
  switch (bytes.u8(0)) {
    case kMss:
      if (size != 4) return false;
      segment.mss = bytes.u16(2);
      return true;
    case kWindowScale:
      if (size != 3) return false;
      segment.window_scale = bytes.u8(2);
      return true;
    case kSackPermitted:
      segment.sack_permitted = size == 2;
      return size == 2;
    case kSack:
      if (size % 8 != 2 || size > 2 + 8 * segment.sack.size()) return false;
      segment.sack_count = 0;
      for (std::size_t at = 2; at < size; at += 8) {
        segment.sack[segment.sack_count++] = {bytes.u32(at), bytes.u32(at + 4)};
      }
      return true;
    case kTimestamps:
      if (size != 10) return false;
      segment.ts_value = bytes.u32(2);
      segment.ts_echo = bytes.u32(6);
      return true;
    default:
      return true;
  }
}

void read_options(Bytes bytes, Segment& segment) {
  while (bytes.size() > 0 && bytes.u8(0) != kEnd) {
    if (bytes.u8(0) == kNoOperation) {
      bytes.drop(1);
      continue;
    }
    const std::size_t size = bytes.size() >= 2 ? bytes.u8(1) : 0;
    if (size < 2 || size > bytes.size()) {
      segment.options_cut = true;
      return;
    }
    if (!read_option(bytes, size, segment)) segment.options_cut = true;
    bytes.drop(size);
  }
}

Unread read_tcp(Bytes& bytes, Segment& segment) {
  constexpr std::size_t kHeader = 20;
  constexpr std::size_t kEnough = 16;  // up to the window; the checksum is not looked at
  if (bytes.on_wire() < kHeader) return &CaptureCounters::malformed;
  if (Unread unread = bytes.lacks(kEnough)) return unread;
  const std::size_t header = (bytes.u8(12) >> 4) * 4u;
  if (header < kHeader || header > bytes.on_wire()) return &CaptureCounters::malformed;
  segment.from.port = bytes.u16(0);
  segment.to.port = bytes.u16(2);
  segment.seq = bytes.u32(4);
  segment.ack = bytes.u32(8);
  const std::uint8_t flags = bytes.u8(13);
  segment.fin = (flags & 0x01) != 0;
  segment.syn = (flags & 0x02) != 0;
  segment.rst = (flags & 0x04) != 0;
  segment.psh = (flags & 0x08) != 0;
  segment.ack_flag = (flags & 0x10) != 0;
  segment.window = bytes.u16(14);
  segment.payload = static_cast<std::uint32_t>(bytes.on_wire() - header);
  if (header == kHeader) return kRead;
  segment.options_cut = bytes.size() < header;
  bytes.set_length(header);
  if (bytes.size() > kHeader) {
    bytes.drop(kHeader);
    read_options(bytes, segment);
  }
  return kRead;
}

}  // namespace

std::optional<Segment> decode_frame(int link_type, std::span<const std::uint8_t> captured,
                                    std::uint32_t on_wire, CaptureCounters& counters) {
  std::optional<Segment> segment(std::in_place);
  segment->number = ++counters.packets;
  Bytes bytes(captured, on_wire);
  Unread unread = read_link(link_type, bytes, *segment);
  if (unread == kRead) unread = read_ip(bytes, *segment);
  if (unread == kRead) unread = read_tcp(bytes, *segment);
  if (unread == kRead) {
    ++counters.tcp;
    return segment;
  }
  ++(counters.*unread);
  segment.reset();
  return segment;
}

}  // namespace tailward::probe
