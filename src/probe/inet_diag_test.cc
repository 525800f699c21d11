#include "probe/inet_diag.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/tcp.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <vector>

namespace tailward::probe {
namespace {

using Bytes = std::vector<std::uint8_t>;

// Bytes right before a page that must not be read.
class Guarded {
 public:
  explicit Guarded(const Bytes& bytes) : page_(static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))) {
    room_ = static_cast<std::uint8_t*>(
        ::mmap(nullptr, 2 * page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_EQ(::mprotect(room_ + page_, page_, PROT_NONE), 0);
    std::uint8_t* at = room_ + page_ - bytes.size();
    if (!bytes.empty()) std::memcpy(at, bytes.data(), bytes.size());
    bytes_ = {at, bytes.size()};
  }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  ~Guarded() { ::munmap(room_, 2 * page_); }
  [[nodiscard]] std::span<const std::uint8_t> bytes() const { return bytes_; }

 private:
  std::size_t page_;
  std::uint8_t* room_ = nullptr;
  std::span<const std::uint8_t> bytes_;
};

Bytes full_info() {
  tcp_info info{};
  info.tcpi_options = TCPI_OPT_WSCALE;
  info.tcpi_snd_wscale = 7;
  info.tcpi_rcv_wscale = 9;
  info.tcpi_delivery_rate_app_limited = 1;
  info.tcpi_rto = 204'000;
  info.tcpi_rtt = 1'234;
  info.tcpi_min_rtt = 1'000;
  info.tcpi_snd_ssthresh = 20;
  info.tcpi_pacing_rate = 5'000'000'000;
  info.tcpi_bytes_sent = 6'000'000'000;
  info.tcpi_rwnd_limited = 77;
  info.tcpi_snd_wnd = 65'000;
  Bytes bytes(sizeof info);
  std::memcpy(bytes.data(), &info, sizeof info);
  // tcpi_rcv_wnd, tcpi_rehash, and more that nobody knows yet.
  for (const std::uint32_t word : {123'456U, 1U, 2U, 3U, 4U}) {
    for (int at = 0; at < 4; ++at) {
      bytes.push_back(reinterpret_cast<const std::uint8_t*>(&word)[at]);
    }
  }
  return bytes;
}

TEST(TcpInfoTest, ReadsAWholeOne) {
  const tcp::TcpInfo info = parse_tcp_info(full_info());
  EXPECT_EQ(info.rto_us, 204'000U);
  EXPECT_EQ(info.rtt_us, 1'234U);
  EXPECT_EQ(info.min_rtt_us, 1'000U);
  EXPECT_EQ(info.ssthresh, 20U);
  EXPECT_EQ(info.snd_wscale, 7);
  EXPECT_EQ(info.rcv_wscale, 9);
  EXPECT_TRUE(info.app_limited);
  EXPECT_EQ(info.pacing_bytes_per_s, 5'000'000'000U);
  EXPECT_EQ(info.bytes_sent, 6'000'000'000U);
  EXPECT_EQ(info.rwnd_limited_us, 77U);
  EXPECT_EQ(info.snd_wnd, 65'000U);
  EXPECT_EQ(info.rcv_wnd, 123'456U);
}

TEST(TcpInfoTest, CutAnywhereItHasWhatIsWhollyThereAndNothingElse) {
  const Bytes whole = full_info();
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    const Guarded cut(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)));
    const tcp::TcpInfo info = parse_tcp_info(cut.bytes());
    EXPECT_EQ(info.snd_wscale.has_value(), size >= 8) << size;
    EXPECT_EQ(info.app_limited, size >= 8) << size;
    EXPECT_EQ(info.rto_us.has_value(), size >= 12) << size;
    EXPECT_EQ(info.rtt_us.has_value(), size >= offsetof(tcp_info, tcpi_rtt) + 4) << size;
    EXPECT_EQ(info.bytes_sent.has_value(), size >= offsetof(tcp_info, tcpi_bytes_sent) + 8) << size;
    EXPECT_EQ(info.snd_wnd.has_value(), size >= 232) << size;
    EXPECT_EQ(info.rcv_wnd.has_value(), size >= 236) << size;
  }
}

TEST(TcpInfoTest, WhatWasNeverMeasuredIsEmpty) {
  tcp_info raw{};
  raw.tcpi_min_rtt = UINT32_MAX;
  raw.tcpi_snd_ssthresh = 0x7fff'ffff;
  raw.tcpi_pacing_rate = UINT64_MAX;
  Bytes bytes(sizeof raw);
  std::memcpy(bytes.data(), &raw, sizeof raw);
  const tcp::TcpInfo info = parse_tcp_info(bytes);
  EXPECT_EQ(info.min_rtt_us, std::nullopt);
  EXPECT_EQ(info.ssthresh, std::nullopt);
  EXPECT_EQ(info.pacing_bytes_per_s, std::nullopt);
  EXPECT_EQ(info.rcv_rtt_us, std::nullopt);
  EXPECT_EQ(info.snd_wscale, std::nullopt);
  EXPECT_EQ(info.rtt_us, 0U);
}

TEST(SocketMemoryTest, TakesArraysOfEveryLength) {
  const std::vector<std::uint32_t> words{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  Bytes all(words.size() * 4);
  std::memcpy(all.data(), words.data(), all.size());
  for (std::size_t size = 0; size <= all.size(); ++size) {
    const Guarded cut(Bytes(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(size)));
    const std::optional<tcp::SocketMemory> memory = parse_memory(cut.bytes());
    ASSERT_EQ(memory.has_value(), size >= 16) << size;
    if (!memory) continue;
    EXPECT_EQ(memory->rmem_alloc, 1U);
    EXPECT_EQ(memory->sndbuf, 4U);
    EXPECT_EQ(memory->fwd_alloc, size >= 20 ? 5U : 0U) << size;
    EXPECT_EQ(memory->drops, size >= 36 ? 9U : 0U) << size;
  }
}

void add_attribute(Bytes& bytes, std::uint16_t type, const Bytes& value) {
  nlattr head{};
  head.nla_type = type;
  head.nla_len = static_cast<std::uint16_t>(sizeof head + value.size());
  const auto* raw = reinterpret_cast<const std::uint8_t*>(&head);
  bytes.insert(bytes.end(), raw, raw + sizeof head);
  bytes.insert(bytes.end(), value.begin(), value.end());
  bytes.resize((bytes.size() + 3) / 4 * 4);
}

Bytes message(std::uint8_t family, std::uint8_t state) {
  inet_diag_msg head{};
  head.idiag_family = family;
  head.idiag_state = state;
  head.id.idiag_sport = htons(8080);
  head.id.idiag_dport = htons(50'000);
  head.id.idiag_src[0] = htonl(0x0a00'0001);
  head.id.idiag_dst[0] = htonl(0x0a00'0002);
  head.idiag_inode = 99;
  head.idiag_uid = 33;
  head.idiag_rqueue = 5;
  head.idiag_wqueue = 6;
  Bytes bytes(sizeof head);
  std::memcpy(bytes.data(), &head, sizeof head);
  add_attribute(bytes, INET_DIAG_CONG, {'c', 'u', 'b', 'i', 'c', 0});
  add_attribute(bytes, INET_DIAG_INFO, full_info());
  add_attribute(bytes, 250, {1, 2, 3});
  add_attribute(bytes, INET_DIAG_SKV6ONLY, {1});
  return bytes;
}

TEST(DiagMessageTest, ReadsAddressesQueuesAndAttributes) {
  const auto facts = parse_diag_message(message(AF_INET, 1));
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->state, tcp::TcpState::kEstablished);
  EXPECT_EQ(to_string(facts->local), "10.0.0.1:8080");
  EXPECT_EQ(to_string(facts->remote), "10.0.0.2:50000");
  EXPECT_EQ(facts->inode, 99U);
  EXPECT_EQ(facts->uid, 33U);
  EXPECT_EQ(facts->recv_queue, 5U);
  EXPECT_EQ(facts->send_queue, 6U);
  EXPECT_EQ(facts->options.congestion, "cubic");
  EXPECT_EQ(facts->tcp.rtt_us, 1'234U);
  EXPECT_EQ(facts->options.v6only, true);
}

TEST(DiagMessageTest, CutAnywhereItReadsNothingBeyondItsEnd) {
  const Bytes whole = message(AF_INET6, 1);
  std::size_t with_info = 0;
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    const Guarded cut(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)));
    const auto facts = parse_diag_message(cut.bytes());
    ASSERT_EQ(facts.has_value(), size >= sizeof(inet_diag_msg)) << size;
    if (facts && facts->tcp.rtt_us) ++with_info;
  }
  EXPECT_GT(with_info, 0U);
}

TEST(DiagMessageTest, AttributesWithAbsurdLengthsEndTheReading) {
  for (const std::uint16_t length : std::initializer_list<std::uint16_t>{0, 1, 3, 5'000, 65'535}) {
    Bytes bytes = message(AF_INET, 1);
    std::memcpy(bytes.data() + sizeof(inet_diag_msg), &length, sizeof length);
    const Guarded guarded(bytes);
    const auto facts = parse_diag_message(guarded.bytes());
    ASSERT_TRUE(facts);
    EXPECT_EQ(facts->tcp.rtt_us, std::nullopt) << length;
  }
}

TEST(DiagMessageTest, AListenerHasNoTcpInfoAndAnotherFamilyIsNothing) {
  const auto listener = parse_diag_message(message(AF_INET, 10));
  ASSERT_TRUE(listener);
  EXPECT_EQ(listener->tcp.rtt_us, std::nullopt);
  EXPECT_FALSE(parse_diag_message(message(AF_UNIX, 1)));
  EXPECT_EQ(parse_diag_message(message(AF_INET, 200))->state, tcp::TcpState::kUnknown);
}

}  // namespace
}  // namespace tailward::probe
