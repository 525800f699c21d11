#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string_view>

#include "probe/pcap_reading.h"
#include "probe/sockets.h"

namespace tailward::probe {

namespace {

// The kernel hands packets on in blocks, this often at least: few wake-ups, and a picture that is
// not old.
constexpr int kBlockTimeoutMs = 20;
// For one call of pcap_dispatch(), which would not return while packets come faster than they are
// read.
constexpr int kPacketsPerBatch = 16'384;

std::string tcp_of_ports(const std::vector<std::uint16_t>& ports) {
  std::string text = "tcp";
  for (std::size_t i = 0; i < ports.size(); ++i) {
    text += fmt::format("{}port {}", i == 0 ? " and (" : " or ", ports[i]);
  }
  return ports.empty() ? text : text + ")";
}

// Each `vlan` moves what follows by one tag. The kernel has taken off the outermost one on most
// paths, but not on all: a card that cannot add tags gets packets that have them inside.
std::string filter_of(const std::vector<std::uint16_t>& ports, int link_type) {
  const std::string tcp = tcp_of_ports(ports);
  if (link_type != DLT_EN10MB) return tcp;
  return fmt::format("({0}) or (vlan and {0}) or (vlan and {0})", tcp);
}

struct DumperCloser {
  void operator()(pcap_dumper_t* dumper) const { pcap_dump_close(dumper); }
};
using Dumper = std::unique_ptr<pcap_dumper_t, DumperCloser>;

Error not_activated(pcap_t* handle, int status, const std::string& interface) {
  // libpcap's text is set for some codes only.
  const std::string_view detail = pcap_geterr(handle);
  const std::string what =
      fmt::format("capturing on {}: {}", interface,
                  detail.empty() ? std::string_view(pcap_statustostr(status)) : detail);
  switch (status) {
    case PCAP_ERROR_PERM_DENIED:
    case PCAP_ERROR_PROMISC_PERM_DENIED:
      return {ErrorKind::kDenied, fmt::format("capturing on {} needs CAP_NET_RAW", interface),
              "run it as root, or: sudo setcap cap_net_raw+ep PROGRAM"};
    case PCAP_ERROR_NO_SUCH_DEVICE:
      return {ErrorKind::kInvalid, fmt::format("there is no interface {}", interface),
              "`ip link` lists them; \"any\" is all of them"};
    case PCAP_ERROR_IFACE_NOT_UP:
      return {ErrorKind::kInvalid, fmt::format("the interface {} is down", interface),
              fmt::format("ip link set {} up", interface)};
    default:
      return {ErrorKind::kUnsupported, what};
  }
}

Error not_written(const std::string& path, std::string_view why) {
  return {ErrorKind::kInvalid, fmt::format("cannot write {}: {}", path, why)};
}

}  // namespace

class LiveCapture::Impl {
 public:
  explicit Impl(LiveOptions options) : options_(std::move(options)) {}

  // In the namespace where the packets are.
  Result<void> open() {
    std::array<char, PCAP_ERRBUF_SIZE> why{};
    handle_.reset(pcap_create(options_.interface.c_str(), why.data()));
    if (!handle_) return fail(ErrorKind::kInternal, why.data());
    pcap_t* handle = handle_.get();
    pcap_set_snaplen(handle, options_.snap_length);
    pcap_set_promisc(handle, 0);
    pcap_set_buffer_size(handle, options_.buffer_bytes);
    pcap_set_timeout(handle, kBlockTimeoutMs);
    // Falls back to microseconds where it is not known; it always is on Linux.
    pcap_set_tstamp_precision(handle, PCAP_TSTAMP_PRECISION_NANO);
    const int status = pcap_activate(handle);
    if (status < 0) return fail(not_activated(handle, status, options_.interface));
    // Tells the interfaces apart. Refused for a single one, which needs no telling.
    if (pcap_datalink(handle) == DLT_LINUX_SLL) pcap_set_datalink(handle, DLT_LINUX_SLL2);
    if (pcap_setnonblock(handle, 1, why.data()) != 0) return fail(ErrorKind::kInternal, why.data());
    return set_filter();
  }

  Result<void> start_writing() {
    if (options_.write_to.empty()) return {};
    dumper_.reset(pcap_dump_open(handle_.get(), options_.write_to.c_str()));
    if (!dumper_) return fail(not_written(options_.write_to, pcap_geterr(handle_.get())));
    return {};
  }

  Result<std::size_t> poll(Duration wait, SegmentSink& sink) {
    const std::uint64_t before = counters_.tcp;
    sink_ = &sink;
    int count = dispatch();
    if (count == 0 && wait_for_packets(wait)) count = dispatch();
    sink_ = nullptr;
    if (count < 0) {
      return fail(ErrorKind::kDisconnected, fmt::format("capturing on {}: {}", options_.interface,
                                                        pcap_geterr(handle_.get())));
    }
    if (dumper_ &&
        (pcap_dump_flush(dumper_.get()) != 0 || std::ferror(pcap_dump_file(dumper_.get())) != 0)) {
      return fail(not_written(options_.write_to, std::strerror(errno)));
    }
    return counters_.tcp - before;
  }

  CaptureCounters counters() {
    pcap_stat stats{};
    // Not ps_ifdrop: what the card lost never reached the host either, so TCP lost it as well.
    if (pcap_stats(handle_.get(), &stats) == 0) counters_.lost = stats.ps_drop;
    return counters_;
  }

 private:
  Result<void> set_filter() {
    const std::string text = filter_of(options_.ports, pcap_datalink(handle_.get()));
    bpf_program program{};
    constexpr int kOptimise = 1;
    bool set =
        pcap_compile(handle_.get(), &program, text.c_str(), kOptimise, PCAP_NETMASK_UNKNOWN) == 0;
    if (set) {
      set = pcap_setfilter(handle_.get(), &program) == 0;
      pcap_freecode(&program);
    }
    if (set) return {};
    return fail(ErrorKind::kInvalid,
                fmt::format("no filter for {} ports: {}", options_.ports.size(),
                            pcap_geterr(handle_.get())),
                "name fewer ports");
  }

  int dispatch() {
    return pcap_dispatch(handle_.get(), kPacketsPerBatch, on_packet,
                         reinterpret_cast<u_char*>(this));
  }

  bool wait_for_packets(Duration wait) {
    using std::chrono::milliseconds;
    const auto ms =
        std::clamp(std::chrono::ceil<milliseconds>(wait), milliseconds{0}, milliseconds{INT32_MAX});
    pollfd ready{pcap_get_selectable_fd(handle_.get()), POLLIN, 0};
    return ::poll(&ready, 1, static_cast<int>(ms.count())) > 0;
  }

  static void on_packet(u_char* user, const pcap_pkthdr* header, const u_char* bytes) {
    Impl& self = *reinterpret_cast<Impl*>(user);
    if (self.dumper_) pcap_dump(reinterpret_cast<u_char*>(self.dumper_.get()), header, bytes);
    const auto segment =
        decode_packet(pcap_datalink(self.handle_.get()), *header, bytes, self.counters_);
    if (segment) (*self.sink_)(*segment);
  }

  LiveOptions options_;
  PcapHandle handle_;
  Dumper dumper_;
  CaptureCounters counters_;
  SegmentSink* sink_ = nullptr;  // during poll()
};

Result<std::unique_ptr<LiveCapture>> LiveCapture::open(const LiveOptions& options) {
  auto impl = std::make_unique<Impl>(options);
  Result<void> opened;
  if (options.pid == 0) {
    opened = impl->open();
  } else {
    const auto process = Process::open(options.pid);
    if (!process) return fail(process.error());
    // The packet socket stays in the namespace where it was opened.
    const Result<void> entered = process->in_network_namespace([&] { opened = impl->open(); });
    if (!entered) return fail(entered.error());
  }
  if (!opened) return fail(opened.error());
  if (Result<void> writing = impl->start_writing(); !writing) return fail(writing.error());
  return std::unique_ptr<LiveCapture>(new LiveCapture(std::move(impl)));
}

LiveCapture::LiveCapture(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
LiveCapture::~LiveCapture() = default;

Result<std::size_t> LiveCapture::poll(Duration wait, SegmentSink& sink) {
  return impl_->poll(wait, sink);
}

CaptureCounters LiveCapture::counters() { return impl_->counters(); }

}  // namespace tailward::probe
