#include "plan/bytes.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"

namespace tailward::plan {
namespace {

constexpr std::size_t kRoom = std::size_t{256} << 10;
constexpr std::string_view kGzip("\x1f\x8b", 2);

struct Stranger {
  std::string_view magic;
  std::string_view name;
  std::string_view command;
};
constexpr std::array<Stranger, 4> kStrangers{{{"\x28\xb5\x2f\xfd", "zstd", "zstd -dc"},
                                              {"\xfd\x37zXZ", "xz", "xz -dc"},
                                              {"BZh", "bzip2", "bzip2 -dc"},
                                              {"PK\x03\x04", "a ZIP file", "unzip -p"}}};

}  // namespace

ByteSource bytes_of(std::string_view text) {
  return [text](char* into, std::size_t size) mutable -> Result<std::size_t> {
    const std::size_t count = std::min(size, text.size());
    std::copy_n(text.data(), count, into);
    text.remove_prefix(count);
    return count;
  };
}

struct Unpacker::Stream {
  Stream() {
    constexpr int kGzipOnly = 16;
    // Fails only without memory.
    TAILWARD_CHECK(::inflateInit2(&z, MAX_WBITS + kGzipOnly) == Z_OK);
  }
  ~Stream() { ::inflateEnd(&z); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  z_stream z{};
  bool ended = false;  // the member
};

Unpacker::Unpacker(ByteSource source)
    : source_(std::move(source)), room_(std::make_unique_for_overwrite<char[]>(kRoom)) {}
Unpacker::~Unpacker() = default;

Result<void> Unpacker::refill() {
  if (stopped_) return fail(*stopped_);
  if (at_ > 0) {
    std::memmove(room_.get(), room_.get() + at_, end_ - at_);
    taken_ += at_;
    end_ -= at_;
    at_ = 0;
  }
  const Result<std::size_t> got = source_(room_.get() + end_, kRoom - end_);
  if (!got) return fail(got.error());
  end_ += *got;
  source_ended_ = *got == 0;
  return {};
}

Result<void> Unpacker::begin() {
  constexpr std::size_t kMagicMax = 8;
  while (end_ < kMagicMax && !source_ended_) {
    Result<void> more = refill();
    if (!more && more.error().kind != ErrorKind::kCancelled) return more;
    if (!more) {
      stopped_ = more.error();
      break;
    }
  }
  begun_ = true;
  const std::string_view head(room_.get(), end_);
  for (const Stranger& stranger : kStrangers) {
    if (!head.starts_with(stranger.magic)) continue;
    return fail(ErrorKind::kUnsupported, fmt::format("compressed with {}", stranger.name),
                fmt::format("{} FILE | tailward plan --latencies -", stranger.command));
  }
  if (head.starts_with(kGzip)) stream_ = std::make_unique<Stream>();
  return {};
}

Result<std::size_t> Unpacker::read(char* into, std::size_t size) {
  if (!begun_) {
    if (const Result<void> known = begin(); !known) return fail(known.error());
  }
  return stream_ ? inflate(into, size) : copy(into, size);
}

Result<std::size_t> Unpacker::copy(char* into, std::size_t size) {
  if (at_ == end_ && !source_ended_) {
    if (const Result<void> more = refill(); !more) return fail(more.error());
  }
  const std::size_t count = std::min(size, end_ - at_);
  std::copy_n(room_.get() + at_, count, into);
  at_ += count;
  return count;
}

// After the end of a member: whether another one follows.
Result<bool> Unpacker::next_member() {
  while (true) {
    while (at_ < end_ && room_[at_] == '\0') ++at_;
    if (end_ - at_ >= kGzip.size() || source_ended_) break;
    if (const Result<void> more = refill(); !more) return fail(more.error());
  }
  if (at_ == end_) return false;
  if (!std::string_view(room_.get() + at_, end_ - at_).starts_with(kGzip)) {
    return fail(ErrorKind::kInvalid,
                fmt::format("something that is not gzip follows the gzip data, at byte {}",
                            taken_ + at_ + 1),
                "was it appended by mistake? gzip -t FILE tells");
  }
  ::inflateReset(&stream_->z);
  stream_->ended = false;
  return true;
}

// Inflates what is in room_ into z's output; an error is remembered in broken_.
void Unpacker::inflate_some() {
  z_stream& z = stream_->z;
  z.next_in = reinterpret_cast<Bytef*>(room_.get() + at_);
  z.avail_in = static_cast<uInt>(end_ - at_);
  const uInt room = z.avail_out;
  const int status = ::inflate(&z, Z_NO_FLUSH);
  at_ = end_ - z.avail_in;
  inflated_ += room - z.avail_out;
  stream_->ended = status == Z_STREAM_END;
  if (status == Z_OK || status == Z_STREAM_END || status == Z_BUF_ERROR) return;
  // How far zlib has looked depends on how much it was given; how much it made does not.
  broken_ = Error{ErrorKind::kInvalid,
                  fmt::format("the gzip data are damaged after {} bytes of text: {}", inflated_,
                              z.msg != nullptr ? z.msg : "no reason given"),
                  "gzip -t FILE tells more"};
}

Result<std::size_t> Unpacker::inflate(char* into, std::size_t size) {
  z_stream& z = stream_->z;
  z.next_out = reinterpret_cast<Bytef*>(into);
  z.avail_out = static_cast<uInt>(std::min<std::size_t>(size, UINT32_MAX));
  const uInt room = z.avail_out;
  while (z.avail_out == room) {
    if (broken_) return fail(*broken_);
    if (stream_->ended) {
      const Result<bool> another = next_member();
      if (!another) return fail(another.error());
      if (!*another) return std::size_t{0};
    }
    if (at_ == end_) {
      if (const Result<void> more = refill(); !more) return fail(more.error());
    }
    if (at_ == end_) {
      return fail(ErrorKind::kInvalid, "the gzip data end in the middle",
                  "is the file still being written? gzip -dc FILE | tailward plan --latencies - "
                  "takes what there is");
    }
    inflate_some();
  }
  return room - z.avail_out;
}

}  // namespace tailward::plan
