// What the tests of this folder share.
#pragma once

#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "plan/bytes.h"
#include "plan/read.h"

namespace tailward::plan::testing {

// The bytes of `text`, at most `piece` at a time; ends with kCancelled when `stopped`.
inline ByteSource in_pieces(std::string_view text, std::size_t piece, bool stopped = false) {
  return [text, piece, stopped](char* into, std::size_t size) mutable -> Result<std::size_t> {
    const std::size_t count = std::min({size, piece, text.size()});
    if (count == 0 && stopped) return fail(ErrorKind::kCancelled, "stopped");
    std::copy_n(text.data(), count, into);
    text.remove_prefix(count);
    return count;
  };
}

constexpr int kGzipWrap = 31;
constexpr int kZlibWrap = 15;

inline std::string compressed(std::string_view text, int wrap = kGzipWrap) {
  z_stream z{};
  TAILWARD_CHECK(::deflateInit2(&z, Z_BEST_SPEED, Z_DEFLATED, wrap, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(::deflateBound(&z, text.size()), '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  z.avail_in = static_cast<uInt>(text.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  TAILWARD_CHECK(::deflate(&z, Z_FINISH) == Z_STREAM_END);
  out.resize(z.total_out);
  ::deflateEnd(&z);
  return out;
}

inline Result<Reading> read(std::string_view text, const ReadOptions& options = {}) {
  return read_latencies(bytes_of(text), options);
}

// The error's message and hint; what was read instead, when there is no error.
inline std::string error_of(const Result<Reading>& reading) {
  if (reading) return "no error: " + reading->understood;
  return reading.error().message + " | " + reading.error().hint;
}

// An HdrHistogram payload, written after the format's description: `counts` are what its indices
// hold. A second opinion to hdr.cc, which only reads.
struct HdrWriter {
  std::uint32_t digits = 3;
  std::uint64_t lowest = 1;
  std::uint32_t cookie = 0x1c849313;
  std::uint32_t outer_cookie = 0x1c849314;
  double ratio = 1;
  std::vector<std::int64_t> counts = {};  // negative: a run of zeros

  static void big_endian(std::string& out, std::uint64_t value, int bytes) {
    for (int i = bytes - 1; i >= 0; --i) out += static_cast<char>(value >> (8 * i));
  }
  static void zigzag(std::string& out, std::int64_t count) {
    auto value = (static_cast<std::uint64_t>(count) << 1) ^ static_cast<std::uint64_t>(count >> 63);
    for (int i = 0; i < 8; ++i) {
      const char low = static_cast<char>(value & 0x7f);
      value >>= 7;
      if (value == 0) {
        out += low;
        return;
      }
      out += static_cast<char>(low | '\x80');
    }
    out += static_cast<char>(value);
  }
  [[nodiscard]] std::string plain() const {
    std::string body;
    for (const std::int64_t count : counts) zigzag(body, count);
    std::string out;
    big_endian(out, cookie, 4);
    big_endian(out, body.size(), 4);
    big_endian(out, 0, 4);
    big_endian(out, digits, 4);
    big_endian(out, lowest, 8);
    big_endian(out, 3'600'000'000'000, 8);
    big_endian(out, std::bit_cast<std::uint64_t>(ratio), 8);
    return out + body;
  }
  [[nodiscard]] std::string base64() const { return wrapped(compressed(plain(), kZlibWrap)); }
  [[nodiscard]] std::string wrapped(std::string_view inner) const {
    std::string out;
    big_endian(out, outer_cookie, 4);
    big_endian(out, inner.size(), 4);
    return to_base64(out + std::string(inner));
  }
  static std::string to_base64(std::string_view bytes) {
    constexpr std::string_view kDigits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string out;
    for (std::size_t at = 0; at < bytes.size(); at += 3) {
      std::uint32_t bits = 0;
      for (std::size_t i = 0; i < 3; ++i) {
        bits <<= 8;
        if (at + i < bytes.size()) bits |= static_cast<unsigned char>(bytes[at + i]);
      }
      for (std::size_t i = 0; i < 4; ++i) {
        out += at + i > bytes.size() ? '=' : kDigits[(bits >> (18 - 6 * i)) & 63];
      }
    }
    return out;
  }
};

}  // namespace tailward::plan::testing
