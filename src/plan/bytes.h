// Where the bytes of a log come from, and how compressed ones are read as if they were not.
//
// Thread safety: none; one reader on one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "base/unique_function.h"

namespace tailward::plan {

// Puts up to `size` bytes into `into` and says how many; 0 is the end. kCancelled: the user wants
// no more read; it is an end, too, but what has come so far is only a part. REQUIRES: size > 0.
using ByteSource = UniqueFunction<Result<std::size_t>(char* into, std::size_t size)>;

// The bytes of `text`, which must live as long as the source.
ByteSource bytes_of(std::string_view text);

// The bytes of a source; those of gzip data (RFC 1952, told by its first two bytes, any number of
// members) inflated. Data that end in the middle, are damaged, or are followed by anything but
// zeros (padding) are kInvalid; so are those of compressions that it does not know, with the
// command that undoes them as a hint. Fixed memory: 256 KiB and what zlib takes. What comes before
// a damage is given before the error.
class Unpacker {
 public:
  explicit Unpacker(ByteSource source);
  Unpacker(Unpacker&&) = delete;
  ~Unpacker();

  // As a ByteSource.
  Result<std::size_t> read(char* into, std::size_t size);
  // Known after the first read().
  [[nodiscard]] bool compressed() const { return stream_ != nullptr; }

 private:
  struct Stream;

  Result<void> refill();
  Result<void> begin();
  Result<std::size_t> copy(char* into, std::size_t size);
  Result<std::size_t> inflate(char* into, std::size_t size);
  void inflate_some();
  Result<bool> next_member();

  ByteSource source_;
  std::unique_ptr<char[]> room_;
  std::size_t at_ = 0;          // within room_, the next byte to take
  std::size_t end_ = 0;         // within room_
  std::uint64_t taken_ = 0;     // bytes of the source before room_[0]
  std::uint64_t inflated_ = 0;  // bytes given to the reader
  bool source_ended_ = false;
  std::optional<Error> stopped_;  // kCancelled, for when what came before has been given
  bool begun_ = false;
  std::optional<Error> broken_;  // the damage, for when what came before has been given
  std::unique_ptr<Stream> stream_;
};

}  // namespace tailward::plan
