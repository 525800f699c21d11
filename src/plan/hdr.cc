#include "plan/hdr.h"

#include <fmt/format.h>
#include <zlib.h>

#include <array>
#include <bit>
#include <cmath>
#include <optional>
#include <vector>

namespace tailward::plan {
namespace {

// A histogram of five digits over an hour in nanoseconds has about 3 million counts of a byte or
// two. More than this is a zip bomb.
constexpr std::size_t kInflatedMax = std::size_t{16} << 20;
// Version 2: cookie, length, offset and digits of 4 bytes each, lowest, highest and ratio of 8
// each.
constexpr std::size_t kHead = 40;
constexpr std::uint32_t kCookieMask = 0xffffff0f;  // the word size of old versions is left out
constexpr std::uint32_t kPlain = 0x1c849303;
constexpr std::uint32_t kCompressed = 0x1c849304;
constexpr std::uint32_t kOldest = 0x1c849301;  // versions 0 and 1 lie between these
constexpr std::uint32_t kYoungest = 0x1c849309;
// Sums of 8,000 such counts still fit into 63 bits.
constexpr std::uint64_t kCountMax = std::uint64_t{1} << 50;

using Bytes = std::vector<unsigned char>;

tl::unexpected<Error> damaged(std::string what) {
  return fail(ErrorKind::kInvalid, std::move(what));
}

int digit_of(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

std::optional<Bytes> from_base64(std::string_view text) {
  while (text.ends_with('=')) text.remove_suffix(1);
  Bytes bytes;
  bytes.reserve(text.size() * 3 / 4);
  std::uint32_t bits = 0;
  int have = 0;
  for (const char c : text) {
    const int digit = digit_of(c);
    if (digit < 0) return std::nullopt;
    bits = (bits << 6) | static_cast<std::uint32_t>(digit);
    have += 6;
    if (have < 8) continue;
    have -= 8;
    bytes.push_back(static_cast<unsigned char>(bits >> have));
  }
  return bytes;
}

std::uint64_t big_endian(const unsigned char* at, int bytes) {
  std::uint64_t value = 0;
  for (int i = 0; i < bytes; ++i) value = (value << 8) | at[i];
  return value;
}
std::uint32_t word(const Bytes& bytes, std::size_t at) {
  return static_cast<std::uint32_t>(big_endian(bytes.data() + at, 4));
}

Result<Bytes> inflated(const unsigned char* data, std::size_t size) {
  Bytes out(std::max<std::size_t>(size * 4, 4096));
  z_stream z{};
  if (::inflateInit(&z) != Z_OK) return fail(ErrorKind::kOverloaded, "no memory for zlib");
  z.next_in = const_cast<Bytef*>(data);
  z.avail_in = static_cast<uInt>(size);
  int status = Z_OK;
  while (status == Z_OK) {
    if (z.total_out == out.size()) {
      if (out.size() >= kInflatedMax) break;
      out.resize(std::min(out.size() * 2, kInflatedMax));
    }
    z.next_out = out.data() + z.total_out;
    z.avail_out = static_cast<uInt>(out.size() - z.total_out);
    status = ::inflate(&z, Z_NO_FLUSH);
  }
  out.resize(z.total_out);
  ::inflateEnd(&z);
  if (status == Z_OK) return damaged("a histogram larger than 16 MiB");
  if (status != Z_STREAM_END) return damaged("the histogram's zlib data are damaged or cut");
  return out;
}

// How indices of counts and values belong together.
// The arithmetic of HdrHistogram's AbstractHistogram: sub-buckets in halves, one octave after the
// other.
struct Scale {
  int unit_magnitude = 0;
  int half_magnitude = 0;  // log2 of half the number of sub-buckets

  static std::optional<Scale> of(std::uint64_t lowest, std::uint32_t digits) {
    constexpr std::uint32_t kDigitsMax = 5;
    if (digits > kDigitsMax || lowest == 0 || lowest > INT64_MAX / 2) return std::nullopt;
    std::uint64_t single = 2;  // up to here, neighbouring values are told apart
    for (std::uint32_t i = 0; i < digits; ++i) single *= 10;
    Scale scale;
    scale.unit_magnitude = static_cast<int>(std::bit_width(lowest)) - 1;
    scale.half_magnitude = static_cast<int>(std::bit_width(single - 1)) - 1;
    return scale;
  }
  // Empty: no value of 62 bits.
  [[nodiscard]] std::optional<HdrCount> at(std::uint64_t index) const {
    const std::uint64_t half = std::uint64_t{1} << half_magnitude;
    const std::uint64_t octave = index >> half_magnitude;  // 0 and 1 have the same width
    const std::uint64_t sub = octave == 0 ? index : (index & (half - 1)) + half;
    const std::uint64_t shift =
        (octave == 0 ? 0 : octave - 1) + static_cast<std::uint64_t>(unit_magnitude);
    constexpr int kBits = 62;
    if (shift + static_cast<std::uint64_t>(std::bit_width(sub + 1)) > kBits) return std::nullopt;
    return HdrCount{sub << shift, ((sub + 1) << shift) - 1, 0};
  }
};

// A LEB128 number of at most 9 bytes, the last of which has 8 bits; advances `at`.
std::optional<std::int64_t> zigzag(const Bytes& bytes, std::size_t& at, std::size_t end) {
  constexpr int kLast = 8;
  std::uint64_t value = 0;
  for (int i = 0;; ++i) {
    if (at == end) return std::nullopt;
    const std::uint64_t byte = bytes[at++];
    if (i == kLast) {
      value |= byte << 56;
      break;
    }
    value |= (byte & 0x7f) << (7 * i);
    if ((byte & 0x80) == 0) break;
  }
  return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}

// Where the counts are within the bytes, and what they are counts of.
struct Body {
  std::size_t end = 0;  // they start at kHead
  Scale scale;
};

Result<Body> read_head(const Bytes& bytes) {
  if (bytes.size() < kHead) return damaged("the histogram is cut");
  if ((word(bytes, 0) & kCookieMask) != kPlain) return damaged("no histogram within the data");
  const std::size_t length = word(bytes, 4);
  if (length > bytes.size() - kHead) return damaged("the histogram is cut");
  const std::optional<Scale> scale = Scale::of(big_endian(bytes.data() + 16, 8), word(bytes, 12));
  if (!scale) return damaged("the histogram's precision makes no sense");
  const double ratio = std::bit_cast<double>(big_endian(bytes.data() + 32, 8));
  // A normalizing offset, or the ratio of a DoubleHistogram.
  if (word(bytes, 8) != 0 || ratio != 1) {
    return fail(ErrorKind::kUnsupported, "a shifted histogram, or one of fractions");
  }
  return Body{kHead + length, *scale};
}

template <class Give>
Result<void> walk(const Bytes& bytes, const Body& body, const Give& give) {
  std::uint64_t index = 0;
  for (std::size_t at = kHead; at < body.end;) {
    const std::optional<std::int64_t> count = zigzag(bytes, at, body.end);
    if (!count) return damaged("the histogram's counts are cut");
    if (*count <= 0) {
      // A lone 0 is a run of one.
      const std::uint64_t run = *count == 0 ? 1 : 0 - static_cast<std::uint64_t>(*count);
      // Zeros are written as one negative number; the sum must not wrap around.
      if (run > UINT32_MAX || index > UINT32_MAX) return damaged("the counts go beyond any value");
      index += run;
      continue;
    }
    std::optional<HdrCount> one = body.scale.at(index++);
    if (!one) return damaged("the counts go beyond any value");
    one->times = static_cast<std::uint64_t>(*count);
    if (one->times > kCountMax) return damaged("a count that is too large to be one");
    give(*one);
  }
  return {};
}

}  // namespace

Result<void> decode_hdr(std::string_view base64, const std::function<void(const HdrCount&)>& give) {
  const std::optional<Bytes> wrapped = from_base64(base64);
  if (!wrapped || wrapped->size() < 8) return damaged("no base64 of a histogram");
  const std::uint32_t cookie = word(*wrapped, 0) & kCookieMask;
  if (cookie != kCompressed) {
    if (cookie < kOldest || cookie > kYoungest) return damaged("no base64 of a histogram");
    return fail(ErrorKind::kUnsupported, "a histogram that is not of version 2, or not compressed",
                "write the log with HdrHistogram 2.1 or later");
  }
  const std::size_t length = word(*wrapped, 4);
  if (length > wrapped->size() - 8) return damaged("the histogram is cut");
  const Result<Bytes> plain = inflated(wrapped->data() + 8, length);
  if (!plain) return fail(plain.error());
  const Result<Body> body = read_head(*plain);
  if (!body) return fail(body.error());
  // Once to know that it is whole: nothing is to be taken back afterwards.
  const Result<void> whole = walk(*plain, *body, [](const HdrCount&) {});
  return whole ? walk(*plain, *body, give) : whole;
}

}  // namespace tailward::plan
