// HTTP/1.1 codec: bytes in, messages out; messages in, bytes out. No I/O.
//
// The parsers stand on Boost.Beast's basic_parser and are stricter than it: whatever two readers could
// understand differently is refused (request smuggling, RFC 9112 §6.3, §11.2).
//
// Thread safety: a parser belongs to one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "http/message.h"

namespace tailward::http {

struct Limits {
  std::size_t head_bytes = 64 * 1024;   // start line and fields together
  std::size_t fields = 256;             // count of header fields
  std::uint64_t body_bytes = UINT64_MAX;
};

// What a parser tells while it is fed. All calls come from inside feed() or feed_eof(), in this order:
// one head, any number of body pieces, one end. `Head` is Request or Response.
template <class Head>
class Sink {
 public:
  virtual ~Sink() = default;
  virtual void on_head(Head&& head) = 0;
  // Body bytes, chunk framing removed. The view is valid during the call only.
  virtual void on_body(std::span<const char> piece) = 0;
  virtual void on_end() = 0;
};

// Parses one message after another. feed() consumes at most up to the end of one message and returns how
// many bytes it took; the bytes after that belong to the next message: reset(), then feed them.
// After an error the parser is dead and the connection must be closed: its framing is lost.
// Errors: kInvalid, with error_status() for the answer (400, 413, 414, 431, 501, 505).
class RequestParser {
 public:
  explicit RequestParser(Sink<Request>& sink, Limits limits = {});
  ~RequestParser();
  Result<std::size_t> feed(std::span<const char> bytes);
  [[nodiscard]] bool head_done() const;
  [[nodiscard]] bool done() const;
  // True when no byte of the current message has been seen.
  [[nodiscard]] bool idle() const;
  // The status a server should answer after feed() failed.
  [[nodiscard]] int error_status() const;
  void reset();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Interim (1xx, not 101) responses are consumed and not told. REQUIRES: expect_answer_to() was called for
// every response when the request's method was HEAD, since such a response has no body.
class ResponseParser {
 public:
  explicit ResponseParser(Sink<Response>& sink, Limits limits = {});
  ~ResponseParser();
  Result<std::size_t> feed(std::span<const char> bytes);
  // The peer closed: ends a kUntilClose body; anything else half-read is kDisconnected.
  Result<void> feed_eof();
  [[nodiscard]] bool head_done() const;
  [[nodiscard]] bool done() const;
  [[nodiscard]] bool idle() const;
  // The next response answers this method.
  void expect_answer_to(std::string_view method);
  void reset();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Appends the head with its empty line. The framing fields (Content-Length, Transfer-Encoding) are
// written from `body` and `content_length`, and Connection from `keep_alive`; fields of those names are
// left out of `fields`, so that they cannot contradict.
void append_head(std::string& out, const Request& request);
void append_head(std::string& out, const Response& response);
// Chunk framing for kChunked. A piece must not be empty (that would end the body).
void append_chunk_head(std::string& out, std::size_t piece_size);  // "1f\r\n"; the piece and "\r\n" follow
void append_last_chunk(std::string& out);                          // "0\r\n\r\n"

// Removes the hop-by-hop fields (RFC 9110 §7.6.1), those that Connection names included.
void remove_hop_by_hop(Fields& fields);

[[nodiscard]] bool is_token(std::string_view text);
[[nodiscard]] bool is_field_value(std::string_view text);

}  // namespace tailward::http
