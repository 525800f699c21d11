// Finds where the parts of a message end that must be parsed in one piece: its head, and the lines
// between two chunks. Checks on the way what concerns lines rather than their content.
//
// The scan remembers where it is, so that a part that arrives byte by byte is still looked at once.
// What it refuses does not depend on how the bytes were cut.
//
// Thread safety: belongs to one thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "http/codec.h"

namespace tailward::http {

// Why a message is not taken. `status` is what a server answers to a request.
struct Refusal {
  int status = 400;
  const char* why = "";
  ErrorKind kind = ErrorKind::kInvalid;
};

enum class ScanUnit {
  kRequestHead,
  kResponseHead,
  kFirstChunk,  // a chunk's size line; with size 0 also the trailers and the empty line
  kNextChunk,   // the same after the CRLF that ends the chunk before
};

class UnitScan {
 public:
  enum class Verdict {
    kMore,     // not complete yet
    kDone,     // complete: size() bytes
    kBlank,    // an empty line where a request should begin: size() bytes
    kRefused,  // refusal()
  };

  explicit UnitScan(const Limits& limits);

  // Starts a message, then each of its units.
  void start_message();
  void start(ScanUnit unit);

  // `bytes` begins where the unit begins and holds all of it that has arrived: what earlier calls
  // for this unit saw, and more.
  Verdict scan(std::string_view bytes);

  [[nodiscard]] std::size_t size() const { return line_start_; }
  [[nodiscard]] const Refusal& refusal() const { return refusal_; }
  // Lines seen in this unit, the empty one included.
  [[nodiscard]] std::size_t lines() const { return lines_; }
  // The size of the chunk whose line was found.
  [[nodiscard]] std::uint64_t chunk_size() const { return chunk_size_; }

 private:
  Verdict refuse(int status, const char* why);
  Verdict refuse_long();
  Verdict begin_unit(std::string_view bytes);
  Verdict take_line(std::string_view line);
  Verdict take_request_line(std::string_view line);
  Verdict take_status_line(std::string_view line);
  Verdict take_chunk_line(std::string_view line);
  [[nodiscard]] bool too_long(std::size_t end) const;
  [[nodiscard]] bool is_chunk() const {
    return unit_ == ScanUnit::kFirstChunk || unit_ == ScanUnit::kNextChunk;
  }

  std::size_t head_bytes_;
  std::size_t start_line_bytes_;
  std::size_t trailer_bytes_;
  ScanUnit unit_ = ScanUnit::kRequestHead;
  std::size_t line_start_ = 0;
  std::size_t scanned_ = 0;
  std::size_t lines_ = 0;
  std::size_t trailers_start_ = 0;
  std::uint64_t chunk_size_ = 0;
  std::size_t extension_bytes_ = 0;  // of the whole message
  Refusal refusal_;
};

}  // namespace tailward::http
