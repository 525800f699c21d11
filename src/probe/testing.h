// Frames and capture files made by hand, for tests.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tailward::probe::testing {

using Octets = std::vector<std::uint8_t>;

inline void append(Octets& to, std::span<const std::uint8_t> more) {
  to.insert(to.end(), more.begin(), more.end());
}
inline void append16(Octets& to, unsigned value) {  // network order
  to.push_back(static_cast<std::uint8_t>(value >> 8));
  to.push_back(static_cast<std::uint8_t>(value));
}
inline void append32(Octets& to, std::uint32_t value) {
  append16(to, value >> 16);
  append16(to, value & 0xffff);
}
inline Octets joined(Octets head, std::span<const std::uint8_t> tail) {
  append(head, tail);
  return head;
}

struct TcpFields {
  std::uint16_t from = 40000;
  std::uint16_t to = 443;
  std::uint32_t seq = 0x01020304;
  std::uint32_t ack = 0xa1b2c3d4;
  std::uint8_t flags = 0x18;  // PSH, ACK
  std::uint16_t window = 501;
  Octets options = {};  // a multiple of 4
  std::size_t payload = 100;
};

inline Octets tcp(const TcpFields& fields = {}) {
  Octets bytes;
  append16(bytes, fields.from);
  append16(bytes, fields.to);
  append32(bytes, fields.seq);
  append32(bytes, fields.ack);
  bytes.push_back(static_cast<std::uint8_t>((20 + fields.options.size()) / 4 << 4));
  bytes.push_back(fields.flags);
  append16(bytes, fields.window);
  append32(bytes, 0);  // checksum, urgent pointer
  append(bytes, fields.options);
  bytes.resize(bytes.size() + fields.payload, 'x');
  return bytes;
}

struct Ipv4Fields {
  std::uint8_t protocol = 6;
  std::uint16_t fragment = 0x4000;  // the flag "do not fragment", offset 0
  Octets options = {};              // a multiple of 4
  int total = -1;                   // -1: what is true
};

// From 10.0.0.1 to 10.0.0.2.
inline Octets ipv4(std::span<const std::uint8_t> payload, const Ipv4Fields& fields = {}) {
  const std::size_t header = 20 + fields.options.size();
  Octets bytes{static_cast<std::uint8_t>(0x40 | header / 4), 0};
  append16(bytes, fields.total >= 0 ? static_cast<unsigned>(fields.total)
                                    : static_cast<unsigned>(header + payload.size()));
  append16(bytes, 0x1234);
  append16(bytes, fields.fragment);
  append(bytes, Octets{64, fields.protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2});
  append(bytes, fields.options);
  return joined(std::move(bytes), payload);
}

// From 2001:db8::1 to 2001:db8::2. `payload` with its extension headers.
inline Octets ipv6(std::span<const std::uint8_t> payload, std::uint8_t next = 6, int length = -1) {
  Octets bytes{0x60, 0, 0, 0};
  append16(bytes,
           length >= 0 ? static_cast<unsigned>(length) : static_cast<unsigned>(payload.size()));
  append(bytes, Octets{next, 64});
  for (const int last : {1, 2}) {
    append(bytes, Octets{0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
    bytes.push_back(static_cast<std::uint8_t>(last));
  }
  return joined(std::move(bytes), payload);
}

// `tags`: EtherType and tag, one VLAN after the other, outermost first.
inline Octets ethernet(std::span<const std::uint8_t> payload, std::uint16_t type = 0x0800,
                       std::span<const std::uint32_t> tags = {}) {
  Octets bytes(12, 0x02);
  for (const std::uint32_t tag : tags) append32(bytes, tag);
  append16(bytes, type);
  return joined(std::move(bytes), payload);
}

// A pcap file in the byte order of this machine.
class PcapText {
 public:
  explicit PcapText(std::uint32_t link_type, bool nanoseconds = false,
                    std::uint32_t snap_length = 65'535) {
    add32(nanoseconds ? 0xa1b23c4d : 0xa1b2c3d4);
    add32(4u << 16 | 2u);  // version 2.4, as two 16-bit numbers of a little-endian machine
    add32(0);
    add32(0);
    add32(snap_length);
    add32(link_type);
  }
  void packet(std::uint32_t seconds, std::uint32_t fraction, std::span<const std::uint8_t> frame,
              std::size_t on_wire = 0) {
    add32(seconds);
    add32(fraction);
    add32(static_cast<std::uint32_t>(frame.size()));
    add32(static_cast<std::uint32_t>(on_wire != 0 ? on_wire : frame.size()));
    text_.append(frame.begin(), frame.end());
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  void add32(std::uint32_t value) {
    text_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  std::string text_;
};

// A pcapng file (draft-ietf-opsawg-pcapng), with as many interfaces as are added.
class PcapngText {
 public:
  PcapngText() { block(0x0a0d0d0a, {0x1a2b3c4d, 1, 0xffffffff, 0xffffffff}); }
  // `resolution`: the power of ten of a second that one unit is, negated.
  void interface(std::uint16_t link_type, std::uint32_t snap_length = 0,
                 std::uint8_t resolution = 9) {
    block(1, {link_type, snap_length, 1u << 16 | 9u, resolution, 0});
  }
  void packet(std::uint32_t interface_id, std::uint64_t at, std::span<const std::uint8_t> frame,
              std::size_t on_wire = 0) {
    block(6,
          {interface_id, static_cast<std::uint32_t>(at >> 32), static_cast<std::uint32_t>(at),
           static_cast<std::uint32_t>(frame.size()),
           static_cast<std::uint32_t>(on_wire != 0 ? on_wire : frame.size())},
          frame);
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  void block(std::uint32_t type, std::initializer_list<std::uint32_t> words,
             std::span<const std::uint8_t> data = {}) {
    const auto padded = (data.size() + 3) / 4 * 4;
    const auto length = static_cast<std::uint32_t>(12 + 4 * words.size() + padded);
    add32(type);
    add32(length);
    for (const std::uint32_t word : words) add32(word);
    text_.append(data.begin(), data.end());
    text_.append(padded - data.size(), '\0');
    add32(length);
  }
  void add32(std::uint32_t value) {
    text_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  std::string text_;
};

}  // namespace tailward::probe::testing
