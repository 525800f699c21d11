#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string_view>

#include "probe/pcap_reading.h"

namespace tailward::probe {

namespace {

constexpr int kPacketsPerBatch = 4096;           // between two calls of keep_going
constexpr std::size_t kBufferBytes = 256 << 10;  // of the stream: fewer read(2)s

struct Stream {
  std::FILE* file;
  ~Stream() {
    if (file != nullptr && file != stdin) std::fclose(file);
  }
};

// What the sink of one pcap_dispatch() call works on.
struct Batch {
  int link_type;
  FileReading& reading;
  SegmentSink& sink;
  std::uint64_t bytes = 0;
};

void on_packet(u_char* user, const pcap_pkthdr* header, const u_char* bytes) {
  Batch& batch = *reinterpret_cast<Batch*>(user);
  batch.bytes += sizeof(std::uint32_t) * 4 + header->caplen;
  const auto segment = decode_packet(batch.link_type, *header, bytes, batch.reading.counters);
  if (segment) batch.sink(*segment);
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

Error unreadable(const std::string& name, std::string_view why) {
  std::string hint;
  if (contains(why, "different from the type of the first interface") ||
      contains(why, "different from the snapshot length of the first")) {
    hint =
        "it holds several kinds of interfaces, which cannot be read together: capture one, or -i "
        "any";
  } else if (contains(why, "unknown file format")) {
    hint = "pcap and pcapng are read; a compressed file is piped: zcat FILE | tailward ... -";
  } else if (contains(why, "truncated dump file")) {
    hint = "it ends in the middle: still being written, or a copy that broke off?";
  }
  return {ErrorKind::kInvalid, fmt::format("{}: {}", name, why), std::move(hint)};
}

Error not_opened(const std::string& path, int code) {
  const bool denied = code == EACCES || code == EPERM;
  return {denied ? ErrorKind::kDenied : ErrorKind::kInvalid,
          fmt::format("{}: {}", path, std::strerror(code)),
          denied ? "read permission for the file is missing" : ""};
}

}  // namespace

std::optional<tcp::Segment> decode_packet(int link_type, const pcap_pkthdr& header,
                                          const std::uint8_t* bytes, CaptureCounters& counters) {
  auto segment = decode_frame(link_type, {bytes, header.caplen}, header.len, counters);
  if (!segment) return segment;
  std::int64_t at = 0;
  if (__builtin_mul_overflow(std::int64_t{header.ts.tv_sec}, std::int64_t{1'000'000'000}, &at) ||
      __builtin_add_overflow(at, std::int64_t{header.ts.tv_usec}, &at)) {
    at = header.ts.tv_sec < 0 ? Duration::min().count() : Duration::max().count();
  }
  segment->at = Duration{at};
  return segment;
}

Result<FileReading> read_capture(std::FILE* stream, const std::string& name, SegmentSink& sink,
                                 UniqueFunction<bool(std::uint64_t bytes)>& keep_going) {
  Stream owner{stream};
  std::setvbuf(stream, nullptr, _IOFBF, kBufferBytes);
  std::array<char, PCAP_ERRBUF_SIZE> why{};
  const PcapHandle handle(
      pcap_fopen_offline_with_tstamp_precision(stream, PCAP_TSTAMP_PRECISION_NANO, why.data()));
  FileReading reading;
  const auto stopped = [&](std::uint64_t bytes) { return keep_going && !keep_going(bytes); };
  // What ends the wait for a pipe reads like a damage.
  if (!handle && stopped(0)) {
    reading.stopped = true;
    return reading;
  }
  if (!handle) return fail(unreadable(name, why.data()));
  owner.file = nullptr;  // pcap_close() does it

  Batch batch{pcap_datalink(handle.get()), reading, sink};
  for (;;) {
    const int count =
        pcap_dispatch(handle.get(), kPacketsPerBatch, on_packet, reinterpret_cast<u_char*>(&batch));
    if (count == 0) return reading;
    reading.stopped = stopped(batch.bytes);
    if (reading.stopped) return reading;
    if (count < 0) {
      reading.broken = unreadable(name, pcap_geterr(handle.get()));
      return reading;
    }
  }
}

Result<FileReading> read_capture_file(const std::string& path, SegmentSink sink,
                                      UniqueFunction<bool(std::uint64_t bytes)> keep_going) {
  if (path == "-") return read_capture(stdin, "standard input", sink, keep_going);
  std::FILE* stream = std::fopen(path.c_str(), "rbe");
  if (stream == nullptr) return fail(not_opened(path, errno));
  return read_capture(stream, path, sink, keep_going);
}

}  // namespace tailward::probe
