#include "plan/lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace tailward::plan {
namespace {

// One system call for about a thousand lines.
constexpr std::size_t kReadSize = std::size_t{256} << 10;
constexpr std::size_t kRoom = kLineMax + kReadSize;
constexpr std::string_view kUtf8Mark("\xef\xbb\xbf");

}  // namespace

LineReader::LineReader(ByteSource source)
    : unpacker_(std::move(source)), room_(std::make_unique_for_overwrite<char[]>(kRoom)) {}

// REQUIRES: what is left of the last line is shorter than kLineMax.
Result<void> LineReader::refill() {
  if (at_ > 0) {
    // Only what is left of one line is moved, not the buffer.
    std::memmove(room_.get(), room_.get() + at_, end_ - at_);
    scanned_ -= at_;
    end_ -= at_;
    at_ = 0;
  }
  const Result<std::size_t> got = unpacker_.read(room_.get() + end_, kRoom - end_);
  // Ctrl-C: the lines so far are a result, a torn last line is not.
  if (!got && got.error().kind == ErrorKind::kCancelled) {
    stopped_ = true;
    ended_ = true;
    end_ = scanned_ = 0;
    return {};
  }
  if (!got) return fail(got.error());
  end_ += *got;
  ended_ = *got == 0;
  return {};
}

// Looks for a mark of the encoding. REQUIRES: nothing was given yet.
Result<void> LineReader::check_start() {
  const std::string_view head(room_.get(), end_);
  if (head.starts_with(kUtf8Mark)) at_ = scanned_ = kUtf8Mark.size();
  if (head.starts_with("\xff\xfe") || head.starts_with("\xfe\xff")) {
    return fail(ErrorKind::kInvalid, "the text is UTF-16",
                "iconv -f UTF-16 -t UTF-8 FILE | tailward plan --latencies -");
  }
  return {};
}

Result<bool> LineReader::next(std::string_view& line) {
  while (true) {
    const auto* found =
        static_cast<const char*>(std::memchr(room_.get() + scanned_, '\n', end_ - scanned_));
    // What was scanned before is not scanned again: linear also for lines of 1 MiB.
    const std::size_t length =
        (found != nullptr ? static_cast<std::size_t>(found - room_.get()) : end_) - at_;
    if (length > kLineMax) {
      return fail(ErrorKind::kInvalid, fmt::format("line {} is longer than 1 MiB", number_ + 1),
                  "is this a log of text lines?");
    }
    if (found != nullptr || (ended_ && length > 0)) {
      ++number_;
      line = {room_.get() + at_, length};
      if (line.ends_with('\r')) line.remove_suffix(1);
      at_ = scanned_ = at_ + length + (found != nullptr ? 1 : 0);
      return true;
    }
    if (ended_) return false;
    scanned_ = end_;
    const bool first = number_ == 0 && end_ < kUtf8Mark.size();
    if (const Result<void> more = refill(); !more) return fail(more.error());
    if (first && (end_ >= kUtf8Mark.size() || ended_)) {
      if (const Result<void> text = check_start(); !text) return fail(text.error());
    }
  }
}

}  // namespace tailward::plan
