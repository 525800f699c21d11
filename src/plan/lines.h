// A source of bytes, line by line.
//
// Thread safety: none; one reader on one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/result.h"
#include "plan/bytes.h"

namespace tailward::plan {

inline constexpr std::size_t kLineMax = std::size_t{1} << 20;

class LineReader {
 public:
  explicit LineReader(ByteSource source);

  // Gives the next line, without its end ("\n" or "\r\n") and without a byte order mark; false:
  // there is none. The line is valid until the next call. A last line needs no end, unless the
  // reading was stopped: then it is dropped. kInvalid: a line longer than kLineMax, UTF-16, or what
  // Unpacker finds; or the source's own error.
  Result<bool> next(std::string_view& line);

  // The number of the line given last, from 1 on.
  [[nodiscard]] std::uint64_t number() const { return number_; }
  // The source ended with kCancelled.
  [[nodiscard]] bool stopped() const { return stopped_; }
  [[nodiscard]] bool compressed() const { return unpacker_.compressed(); }

 private:
  Result<void> refill();
  Result<void> check_start();

  Unpacker unpacker_;
  std::unique_ptr<char[]> room_;
  std::size_t at_ = 0;       // the next line starts here
  std::size_t end_ = 0;      // of what has been read
  std::size_t scanned_ = 0;  // there is no line end before this
  std::uint64_t number_ = 0;
  bool ended_ = false;
  bool stopped_ = false;
};

}  // namespace tailward::plan
