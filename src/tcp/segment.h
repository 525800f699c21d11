// One TCP segment as a capture shows it: headers only, whatever the link below was.
//
// Plain values, in host byte order. Nothing here has been checked against other segments.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/time.h"
#include "tcp/address.h"

namespace tailward::tcp {

struct SackBlock {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

struct Segment {
  // Since 1970 (UTC) by the clock of the machine that captured. May step back.
  Duration at{};
  std::uint64_t number = 0;     // of the packet in its capture, from 1, as Wireshark counts
  std::uint32_t interface = 0;  // where the capture tells several apart
  SocketAddress from;
  SocketAddress to;
  std::uint32_t seq = 0;
  std::uint32_t ack = 0;
  std::uint32_t payload = 0;  // bytes on the wire by the IP header, captured or not
  std::uint16_t window = 0;   // not scaled
  std::uint16_t ip_id = 0;    // IPv4 only, 0 otherwise
  bool syn = false;
  bool ack_flag = false;
  bool fin = false;
  bool rst = false;
  bool psh = false;
  bool options_cut = false;  // the capture ended within the options, or they were malformed
  // Options, where present and whole.
  std::optional<std::uint16_t> mss = {};
  std::optional<std::uint8_t> window_scale = {};
  bool sack_permitted = false;
  std::optional<std::uint32_t> ts_value = {};
  std::optional<std::uint32_t> ts_echo = {};
  std::array<SackBlock, 4> sack{};
  std::uint8_t sack_count = 0;
};

}  // namespace tailward::tcp
