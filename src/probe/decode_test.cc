#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "probe/capture.h"
#include "probe/testing.h"

namespace tailward::probe {
namespace {

using namespace testing;
using tcp::Segment;
using ::testing::ElementsAre;

// In a buffer of exactly that size, so that a sanitizer sees a read beyond it.
std::optional<Segment> decode(int link_type, const Octets& frame, std::size_t captured,
                              std::size_t on_wire, CaptureCounters& counters) {
  const auto exact = std::make_unique<std::uint8_t[]>(captured);
  std::copy_n(frame.begin(), captured, exact.get());
  return decode_frame(link_type, {exact.get(), captured}, static_cast<std::uint32_t>(on_wire),
                      counters);
}

std::optional<Segment> decode(int link_type, const Octets& frame) {
  CaptureCounters counters;
  return decode(link_type, frame, frame.size(), frame.size(), counters);
}

// The name of the one counter that a frame went to.
std::string fate(int link_type, const Octets& frame, std::size_t captured) {
  CaptureCounters c;
  const auto segment = decode(link_type, frame, captured, frame.size(), c);
  EXPECT_EQ(c.packets, 1u);
  EXPECT_EQ(c.tcp + c.not_tcp + c.fragments + c.malformed + c.cut + c.unknown_link, 1u);
  EXPECT_EQ(segment.has_value(), c.tcp == 1);
  if (c.tcp != 0) return "tcp";
  if (c.not_tcp != 0) return "not tcp";
  if (c.fragments != 0) return "fragment";
  if (c.malformed != 0) return "malformed";
  return c.cut != 0 ? "cut" : "unknown link";
}

std::string fate(int link_type, const Octets& frame) {
  return fate(link_type, frame, frame.size());
}

Octets with_options(const Octets& options, std::size_t payload = 100) {
  return ipv4(tcp({.options = options, .payload = payload}));
}

constexpr int kEthernet = 1;
constexpr int kRaw = 101;

struct LinkCase {
  std::string name;
  int type;
  Octets header;    // before an IPv4 header
  Octets header_6;  // before an IPv6 header
};

std::vector<LinkCase> links() {
  const Octets cooked{0, 0, 0, 1, 0, 6, 2, 2, 2, 2, 2, 2, 0, 0};
  const Octets cooked_2{0, 0, 0, 0, 0, 7, 0, 1, 0, 6, 2, 2, 2, 2, 2, 2, 0, 0};
  const Octets pppoe{0x11, 0, 0, 9, 0, 200};
  const Octets mac(12, 2);
  const auto typed = [](const Octets& before, unsigned type, const Octets& after = {}) {
    Octets bytes = before;
    append16(bytes, type);
    return joined(std::move(bytes), after);
  };
  return {
      {"Ethernet", 1, typed(mac, 0x0800), typed(mac, 0x86dd)},
      {"802.1Q", 1, typed(mac, 0x8100, {0, 7, 8, 0}), typed(mac, 0x8100, {0, 7, 0x86, 0xdd})},
      {"802.1ad", 1, typed(mac, 0x88a8, {0, 7, 0x81, 0, 0, 9, 8, 0}),
       typed(mac, 0x88a8, {0, 7, 0x81, 0, 0, 9, 0x86, 0xdd})},
      {"QinQ", 1, typed(mac, 0x9100, {0, 7, 0x81, 0, 0, 9, 0x81, 0, 0, 3, 8, 0}),
       typed(mac, 0x8100, {0, 7, 0x81, 0, 0, 9, 0x86, 0xdd})},
      {"PPPoE", 1, joined(typed(mac, 0x8864, pppoe), Octets{0, 0x21}),
       joined(typed(mac, 0x8864, pppoe), Octets{0, 0x57})},
      {"PPP", 9, {0xff, 3, 0, 0x21}, {0, 0x57}},
      {"null, little-endian", 0, {2, 0, 0, 0}, {30, 0, 0, 0}},
      {"null, big-endian", 0, {0, 0, 0, 2}, {0, 0, 0, 24}},
      {"loop", 108, {0, 0, 0, 2}, {0, 0, 0, 28}},
      {"Linux cooked", 113, typed(cooked, 0x0800), typed(cooked, 0x86dd)},
      {"Linux cooked, VLAN", 113, typed(cooked, 0x8100, {0, 7, 8, 0}),
       typed(cooked, 0x8100, {0, 7, 0x86, 0xdd})},
      {"Linux cooked v2", 276, joined({8, 0}, cooked_2), joined({0x86, 0xdd}, cooked_2)},
      {"raw", 12, {}, {}},
      {"raw, OpenBSD", 14, {}, {}},
      {"raw in files", 101, {}, {}},
      {"IPv4 and IPv6", 228, {}, {}},
      {"IPv6 and IPv4", 229, {}, {}},
  };
}

void expect_the_usual(const std::optional<Segment>& segment, bool v6) {
  ASSERT_TRUE(segment);
  EXPECT_EQ(to_string(segment->from), v6 ? "[2001:db8::1]:40000" : "10.0.0.1:40000");
  EXPECT_EQ(to_string(segment->to), v6 ? "[2001:db8::2]:443" : "10.0.0.2:443");
  EXPECT_EQ(segment->seq, 0x01020304u);
  EXPECT_EQ(segment->ack, 0xa1b2c3d4u);
  EXPECT_EQ(segment->window, 501u);
  EXPECT_EQ(segment->payload, 100u);
  EXPECT_EQ(segment->ip_id, v6 ? 0u : 0x1234u);
  EXPECT_TRUE(segment->ack_flag && segment->psh);
  EXPECT_FALSE(segment->syn || segment->fin || segment->rst || segment->options_cut);
}

TEST(DecodeTest, ReadsEveryLinkType) {
  for (const LinkCase& link : links()) {
    SCOPED_TRACE(link.name);
    expect_the_usual(decode(link.type, joined(link.header, ipv4(tcp()))), false);
    expect_the_usual(decode(link.type, joined(link.header_6, ipv6(tcp()))), true);
  }
}

TEST(DecodeTest, ReadsAFrameThatIsCutAnywhereAsTheWholeOneOrCountsItAsCut) {
  const Octets options{2, 4, 5, 0xb4, 1, 3, 3, 7};
  for (const LinkCase& link : links()) {
    SCOPED_TRACE(link.name);
    for (const bool v6 : {false, true}) {
      const Octets header = v6 ? link.header_6 : link.header;
      const Octets segment = tcp({.options = options});
      const Octets frame = joined(header, v6 ? ipv6(segment) : ipv4(segment));
      const std::size_t tcp_begin = frame.size() - segment.size();
      for (std::size_t size = 0; size <= frame.size(); ++size) {
        SCOPED_TRACE(size);
        const bool enough = size >= tcp_begin + 16;
        EXPECT_EQ(fate(link.type, frame, size), enough ? "tcp" : "cut");
        if (!enough) continue;
        CaptureCounters counters;
        const auto got = decode(link.type, frame, size, frame.size(), counters);
        EXPECT_EQ(got->payload, 100u);
        EXPECT_EQ(got->to.port, 443u);
        EXPECT_EQ(got->window, 501u);
        EXPECT_EQ(got->options_cut, size < tcp_begin + 28);
        EXPECT_EQ(got->mss.has_value(), size >= tcp_begin + 24);
        EXPECT_EQ(got->window_scale.has_value(), size >= tcp_begin + 28);
      }
    }
  }
}

TEST(DecodeTest, AFrameThatEndsTooEarlyOnTheWireIsMalformedNotCut) {
  const Octets frame = ethernet(ipv4(tcp({.payload = 0})));
  for (std::size_t size = 0; size < 14 + 20; ++size) {
    const Octets shorter(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_EQ(fate(kEthernet, shorter), "malformed") << size;
  }
}

TEST(DecodeTest, CountsWhatItDoesNotRead) {
  EXPECT_EQ(fate(147, Octets(60, 0)), "unknown link");
  EXPECT_EQ(fate(kEthernet, ethernet(Octets(46, 0), 0x0806)), "not tcp");  // ARP
  EXPECT_EQ(fate(kEthernet, ethernet(Octets(46, 0), 46)), "not tcp");      // IEEE 802.3 length
  EXPECT_EQ(fate(0, joined({16, 0, 0, 0}, ipv4(tcp()))), "not tcp");       // another family
  EXPECT_EQ(fate(9, joined({0xc0, 0x21}, ipv4(tcp()))), "not tcp");        // PPP's own protocol
  EXPECT_EQ(fate(kRaw, ipv4(tcp(), {.protocol = 17})), "not tcp");
  EXPECT_EQ(fate(kRaw, ipv4(ipv4(tcp()), {.protocol = 4})), "not tcp");  // a tunnel
  EXPECT_EQ(fate(kRaw, ipv6(tcp(), 59)), "not tcp");
  EXPECT_EQ(fate(kRaw, Octets{0x50, 0, 0, 0}), "malformed");
  EXPECT_EQ(fate(kRaw, {}), "malformed");
}

TEST(DecodeTest, NumbersPacketsOfAnyKindFromOne) {
  CaptureCounters counters;
  const Octets arp = ethernet(Octets(46, 0), 0x0806);
  const Octets good = ethernet(ipv4(tcp()));
  EXPECT_FALSE(decode(kEthernet, arp, arp.size(), arp.size(), counters));
  EXPECT_EQ(decode(kEthernet, good, good.size(), good.size(), counters)->number, 2u);
  EXPECT_EQ(decode(kEthernet, good, good.size(), good.size(), counters)->number, 3u);
}

TEST(DecodeTest, TellsInterfacesApartWhereTheLinkHeaderDoes) {
  const Octets header{8, 0, 0, 0, 0, 1, 0, 2, 0, 1, 0, 6, 2, 2, 2, 2, 2, 2, 0, 0};
  EXPECT_EQ(decode(276, joined(header, ipv4(tcp())))->interface, 0x10002u);
  EXPECT_EQ(decode(kRaw, ipv4(tcp()))->interface, 0u);
}

// ---- lengths ---------------------------------------------------------------------------------

TEST(DecodeTest, PaddingIsNotPayload) {
  Octets frame = ethernet(ipv4(tcp({.payload = 0})));
  frame.resize(60, 0xee);
  EXPECT_EQ(decode(kEthernet, frame)->payload, 0u);
  Octets frame_6 = ethernet(ipv6(tcp({.payload = 3})), 0x86dd);
  frame_6.resize(frame_6.size() + 9, 0xee);
  EXPECT_EQ(decode(kEthernet, frame_6)->payload, 3u);
}

TEST(DecodeTest, PaddingIsNotReadAsOptions) {
  // The IP header ends the packet in the midst of what the TCP header calls options.
  Octets packet = ipv4(tcp({.options = {2, 4, 5, 0xb4}, .payload = 0}), {.total = 40});
  EXPECT_EQ(fate(kRaw, packet), "malformed");
}

TEST(DecodeTest, ATotalLengthOfZeroMeansAllThatWasOnTheWire) {
  const Octets v4 = ipv4(tcp({.payload = 500}), {.total = 0});
  const Octets v6 = ipv6(tcp({.payload = 500}), 6, 0);
  CaptureCounters counters;
  EXPECT_EQ(decode(kRaw, v4, 60, 20 + 20 + 180'000, counters)->payload, 180'000u);
  EXPECT_EQ(decode(kRaw, v6, 70, 40 + 20 + 180'000, counters)->payload, 180'000u);
  // RFC 2675: the option Jumbo Payload of a hop-by-hop header.
  const Octets jumbo = ipv6(joined({6, 0, 0xc2, 4, 0, 2, 0xbf, 0x20}, tcp({.payload = 10})), 0, 0);
  EXPECT_EQ(decode(kRaw, jumbo, 70, 40 + 8 + 20 + 179'980, counters)->payload, 179'980u);
}

TEST(DecodeTest, TheIpHeaderIsBelievedWhenAToolLostTheLengthOnTheWire) {
  const Octets packet = ipv4(tcp({.payload = 1000}));
  CaptureCounters counters;
  EXPECT_EQ(decode(kRaw, packet, 60, 60, counters)->payload, 1000u);
  EXPECT_EQ(decode(kRaw, packet, 60, 0, counters)->payload, 1000u);
}

TEST(DecodeTest, LengthsThatContradictEachOtherAreMalformed) {
  EXPECT_EQ(fate(kRaw, ipv4(tcp(), {.total = 19})), "malformed");
  EXPECT_EQ(fate(kRaw, ipv4(tcp(), {.total = 39})), "malformed");  // no room for TCP
  Octets short_header = ipv4(tcp());
  short_header[0] = 0x44;
  EXPECT_EQ(fate(kRaw, short_header), "malformed");
  for (const std::uint8_t offset : Octets{0x00, 0x10, 0x40}) {  // TCP headers under 20 bytes
    Octets bad = ipv4(tcp());
    bad[20 + 12] = offset;
    EXPECT_EQ(fate(kRaw, bad), "malformed") << int{offset};
  }
  Octets long_header = ipv4(tcp({.payload = 39}));
  long_header[20 + 12] = 0xf0;
  EXPECT_EQ(fate(kRaw, long_header), "malformed");
  EXPECT_EQ(fate(kRaw, with_options(Octets(40, 1), 0)), "tcp");
}

TEST(DecodeTest, SkipsIpOptions) {
  const Octets packet = ipv4(tcp(), {.options = Octets(40, 1)});
  expect_the_usual(decode(kRaw, packet), false);
  EXPECT_EQ(fate(kRaw, packet, 59), "cut");
}

// ---- fragments and extension headers
// -------------------------------------------------------------

TEST(DecodeTest, ReadsTheFirstFragmentAndCountsTheOthers) {
  const auto first = decode(kRaw, ipv4(tcp({.payload = 60}), {.fragment = 0x2000}));
  EXPECT_EQ(first->payload, 60u);
  EXPECT_EQ(fate(kRaw, ipv4(tcp(), {.fragment = 0x2001})), "fragment");
  EXPECT_EQ(fate(kRaw, ipv4(tcp(), {.fragment = 0x0123})), "fragment");
  EXPECT_EQ(fate(kRaw, ipv4(tcp(), {.protocol = 17, .fragment = 1})), "not tcp");
  const Octets head_6{6, 0, 0, 1, 0, 0, 0, 9};
  const Octets later_6{6, 0, 0, 9, 0, 0, 0, 9};
  const Octets later_udp_6{17, 0, 0, 9, 0, 0, 0, 9};
  expect_the_usual(decode(kRaw, ipv6(joined(head_6, tcp()), 44)), true);
  EXPECT_EQ(fate(kRaw, ipv6(joined(later_6, tcp()), 44)), "fragment");
  EXPECT_EQ(fate(kRaw, ipv6(joined(later_udp_6, tcp()), 44)), "not tcp");
}

TEST(DecodeTest, WalksIpv6ExtensionHeadersAndKeepsThePayloadsLength) {
  Octets chain{60, 0, 1, 4, 0, 0, 0, 0};  // hop-by-hop, 8 bytes
  append(chain, Octets{43, 1, 1, 12});    // destination options, 16 bytes
  append(chain, Octets(12, 0));
  append(chain, Octets{44, 2, 0, 0, 0, 0, 0, 0});  // routing, 24 bytes
  append(chain, Octets(16, 0));
  append(chain, Octets{51, 0, 0, 0, 0, 0, 0, 5});  // fragment: the only one
  append(chain, Octets{135, 4, 0, 0});             // authentication, 24 bytes
  append(chain, Octets(20, 0));
  append(chain, Octets{6, 0, 0, 0, 0, 0, 0, 0});  // mobility
  const Octets packet = ipv6(joined(chain, tcp()), 0);
  expect_the_usual(decode(kRaw, packet), true);
  for (std::size_t size = 0; size < 40 + chain.size() + 16; ++size) {
    EXPECT_EQ(fate(kRaw, packet, size), "cut") << size;
  }
}

TEST(DecodeTest, AnExtensionHeaderLongerThanItsPacketIsMalformed) {
  EXPECT_EQ(fate(kRaw, ipv6(joined({6, 255, 0, 0, 0, 0, 0, 0}, tcp()), 0)), "malformed");
  EXPECT_EQ(fate(kRaw, ipv6(Octets{6, 0, 0, 0}, 60)), "malformed");
  EXPECT_EQ(fate(kRaw, ipv6(joined({50, 0, 0, 0, 0, 0, 0, 0}, tcp()), 0)), "not tcp");  // ESP
}

// ---- TCP ---------------------------------------------------------------------------------------

TEST(DecodeTest, ReadsEachFlag) {
  const auto flags = [](std::uint8_t bits) {
    const auto s = *decode(kRaw, ipv4(tcp({.flags = bits})));
    return std::vector<bool>{s.fin, s.syn, s.rst, s.psh, s.ack_flag};
  };
  EXPECT_THAT(flags(0x01), ElementsAre(true, false, false, false, false));
  EXPECT_THAT(flags(0x02), ElementsAre(false, true, false, false, false));
  EXPECT_THAT(flags(0x04), ElementsAre(false, false, true, false, false));
  EXPECT_THAT(flags(0x08), ElementsAre(false, false, false, true, false));
  EXPECT_THAT(flags(0x10), ElementsAre(false, false, false, false, true));
  EXPECT_THAT(flags(0xe0), ElementsAre(false, false, false, false, false));
}

TEST(DecodeTest, ReadsTheOptionsOfASyn) {
  const auto s =
      decode(kRaw, with_options({2, 4, 0x05, 0xb4, 4, 2, 8, 10, 0, 0, 1, 2, 0, 0, 3, 4,  //
                                 1, 3, 3,    7}));
  EXPECT_EQ(s->mss, 1460);
  EXPECT_EQ(s->window_scale, 7);
  EXPECT_TRUE(s->sack_permitted);
  EXPECT_EQ(s->ts_value, 0x102u);
  EXPECT_EQ(s->ts_echo, 0x304u);
  EXPECT_EQ(s->sack_count, 0);
  EXPECT_FALSE(s->options_cut);
}

TEST(DecodeTest, ReadsUpToFourSackBlocks) {
  Octets options{1, 1, 5, 34};
  for (std::uint32_t edge = 1; edge <= 8; ++edge) append32(options, edge);
  const auto s = decode(kRaw, with_options(options));
  ASSERT_EQ(s->sack_count, 4);
  EXPECT_EQ(s->sack[0].begin, 1u);
  EXPECT_EQ(s->sack[3].end, 8u);
}

TEST(DecodeTest, OptionsOfImpossibleLengthAreLeftOutAndSaid) {
  struct Case {
    Octets options;
    bool mss = false;  // read before, or after, what is wrong
  };
  const std::vector<Case> cases{
      {{2, 0, 5, 0xb4}},                        // a length of 0 would never end
      {{2, 1, 5, 0xb4}},                        // shorter than itself
      {{2, 3, 5, 1}},                           // not what MSS must have
      {{2, 5, 5, 0xb4}},                        // beyond the header
      {{1, 1, 1, 2}},                           // no room for its length
      {{3, 4, 7, 7, 2, 4, 5, 0xb4}, true},      // a wrong one is stepped over
      {{8, 4, 0, 0, 2, 4, 5, 0xb4}, true},      // timestamps
      {{5, 9, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1}},   // SACK blocks are pairs
      {{4, 3, 0, 1, 2, 4, 5, 0xb4}, true},      // SACK permitted
      {{2, 4, 5, 0xb4, 254, 200, 0, 0}, true},  // unknown, and too long
  };
  for (const Case& wrong : cases) {
    SCOPED_TRACE(::testing::PrintToString(wrong.options));
    const auto s = decode(kRaw, with_options(wrong.options));
    ASSERT_TRUE(s);
    EXPECT_TRUE(s->options_cut);
    EXPECT_EQ(s->mss.has_value(), wrong.mss);
    EXPECT_FALSE(s->window_scale || s->ts_value || s->sack_permitted || s->sack_count != 0);
    EXPECT_EQ(s->payload, 100u);
  }
}

TEST(DecodeTest, NothingIsReadBehindTheEndOfOptions) {
  const auto s = decode(kRaw, with_options({0, 0, 0, 0, 2, 4, 5, 0xb4}));
  EXPECT_FALSE(s->mss);
  EXPECT_FALSE(s->options_cut);
}

TEST(DecodeTest, UnknownOptionsAreSteppedOver) {
  const auto s = decode(kRaw, with_options({30, 4, 0, 0, 2, 4, 5, 0xb4}));
  EXPECT_EQ(s->mss, 1460);
  EXPECT_FALSE(s->options_cut);
}

}  // namespace
}  // namespace tailward::probe
