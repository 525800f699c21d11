#include "http/unit_scan.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "http/text.h"

namespace tailward::http {

namespace {

constexpr std::size_t kChunkLineBytes = 256;
constexpr std::size_t kExtensionBytes = 4096;
constexpr std::size_t kTrailerBytes = 8192;
constexpr std::size_t kChunkSizeDigits = 16;

bool is_hex(char c) { return is_digit(c) || (to_lower(c) >= 'a' && to_lower(c) <= 'f'); }

bool is_known_version(std::string_view version) {
  return version == "HTTP/1.1" || version == "HTTP/1.0";
}

bool is_version(std::string_view text) {
  return text.size() == 8 && text.starts_with("HTTP/") && is_digit(text[5]) && text[6] == '.' &&
         is_digit(text[7]);
}

}  // namespace

UnitScan::UnitScan(const Limits& limits)
    : head_bytes_(limits.head_bytes),
      start_line_bytes_(std::min(limits.start_line_bytes, limits.head_bytes)),
      trailer_bytes_(std::min(kTrailerBytes, limits.head_bytes)) {}

void UnitScan::start_message() { extension_bytes_ = 0; }

void UnitScan::start(ScanUnit unit) {
  unit_ = unit;
  line_start_ = 0;
  scanned_ = 0;
  lines_ = 0;
  chunk_size_ = 0;
}

UnitScan::Verdict UnitScan::refuse(int status, const char* why) {
  refusal_ = {status, why};
  return Verdict::kRefused;
}

UnitScan::Verdict UnitScan::refuse_long() {
  if (is_chunk()) {
    if (lines_ > 0) return refuse(431, "the trailers are too long");
    return refuse(400, "a chunk's size line is too long");
  }
  if (lines_ == 0 && unit_ == ScanUnit::kRequestHead)
    return refuse(414, "the request line is too long");
  return refuse(431, "the head is too long");
}

bool UnitScan::too_long(std::size_t end) const {
  if (!is_chunk()) return end > (lines_ == 0 ? start_line_bytes_ : head_bytes_);
  if (lines_ == 0) return end - line_start_ > kChunkLineBytes;
  return end - trailers_start_ > trailer_bytes_;
}

UnitScan::Verdict UnitScan::scan(std::string_view bytes) {
  if (line_start_ == 0 && lines_ == 0) {
    if (const Verdict verdict = begin_unit(bytes); verdict == Verdict::kRefused) return verdict;
    if (scanned_ > bytes.size()) return Verdict::kMore;
  }
  while (true) {
    const char* from = bytes.data() + scanned_;
    const auto* newline =
        scanned_ == bytes.size()
            ? nullptr
            : static_cast<const char*>(std::memchr(from, '\n', bytes.size() - scanned_));
    if (newline == nullptr) {
      scanned_ = bytes.size();
      return too_long(scanned_) ? refuse_long() : Verdict::kMore;
    }
    const auto end = static_cast<std::size_t>(newline - bytes.data()) + 1;
    if (too_long(end)) return refuse_long();
    if (end - line_start_ < 2 || newline[-1] != '\r')
      return refuse(400, "a line ends in a bare LF");
    const std::string_view line = bytes.substr(line_start_, end - 2 - line_start_);
    line_start_ = scanned_ = end;
    const Verdict verdict = take_line(line);
    ++lines_;
    if (verdict != Verdict::kMore) return verdict;
  }
}

// The first bytes are looked at before their line is complete, so that what is not HTTP at all is
// refused without waiting for a line end that may never come.
UnitScan::Verdict UnitScan::begin_unit(std::string_view bytes) {
  if (bytes.empty()) return Verdict::kMore;
  switch (unit_) {
    case ScanUnit::kRequestHead:
      if (!is_a(kTokenChar, bytes[0]) && bytes[0] != '\r')
        return refuse(400, "the method is not a token");
      break;
    case ScanUnit::kResponseHead:
      if (bytes[0] != 'H') return refuse(400, "the response does not begin with HTTP/");
      break;
    case ScanUnit::kFirstChunk:
      break;
    case ScanUnit::kNextChunk:
      if (bytes[0] != '\r' || (bytes.size() > 1 && bytes[1] != '\n')) {
        return refuse(400, "a chunk is longer than its size");
      }
      // Until the LF is here, `scanned_` points beyond the end.
      scanned_ = std::max<std::size_t>(scanned_, 2);
      if (bytes.size() > 1) line_start_ = 2;
      break;
  }
  return Verdict::kMore;
}

UnitScan::Verdict UnitScan::take_line(std::string_view line) {
  if (lines_ > 0) {
    if (line.empty()) return Verdict::kDone;
    if (is_blank(line[0])) return refuse(400, "a line begins with white space (obs-fold)");
    return Verdict::kMore;
  }
  switch (unit_) {
    case ScanUnit::kRequestHead:
      return take_request_line(line);
    case ScanUnit::kResponseHead:
      return take_status_line(line);
    default:
      return take_chunk_line(line);
  }
}

UnitScan::Verdict UnitScan::take_request_line(std::string_view line) {
  if (line.empty()) return Verdict::kBlank;
  const std::size_t space = line.rfind(' ');
  if (space == std::string_view::npos) return refuse(400, "the request line has no version");
  const std::string_view version = line.substr(space + 1);
  if (is_known_version(version)) return Verdict::kMore;
  if (is_version(version)) return refuse(505, "only HTTP/1.0 and HTTP/1.1 are spoken here");
  return refuse(400, "the request line does not end in a version");
}

UnitScan::Verdict UnitScan::take_status_line(std::string_view line) {
  if (!is_known_version(line.substr(0, 8))) return refuse(505, "the response is not HTTP/1.x");
  return Verdict::kMore;
}

UnitScan::Verdict UnitScan::take_chunk_line(std::string_view line) {
  const auto digits =
      static_cast<std::size_t>(std::find_if_not(line.begin(), line.end(), is_hex) - line.begin());
  const std::string_view extension = line.substr(digits);
  if (digits == 0 || digits > kChunkSizeDigits)
    return refuse(400, "a chunk's size is not a number");
  if (!extension.empty() && (extension[0] != ';' || !is_field_value(extension))) {
    return refuse(400, "a chunk's size is followed by junk");
  }
  extension_bytes_ += extension.size();
  if (extension_bytes_ > kExtensionBytes) return refuse(400, "too many chunk extensions");
  std::from_chars(line.data(), line.data() + digits, chunk_size_, 16);
  // Beyond that, a reader with signed sizes sees a negative one.
  if (chunk_size_ > INT64_MAX) return refuse(400, "a chunk's size is too large");
  trailers_start_ = line_start_;
  return chunk_size_ > 0 ? Verdict::kDone : Verdict::kMore;
}

}  // namespace tailward::http
