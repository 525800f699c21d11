// HTTP/1.1 codec: bytes in, messages out; messages in, bytes out. No I/O.
//
// The parsers stand on Boost.Beast's basic_parser and are stricter than it: whatever two readers
// could understand differently is refused (request smuggling, RFC 9112 §6.3, §11.2).
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
  std::size_t head_bytes = 64 * 1024;  // start line and fields together
  std::size_t fields = 256;            // count of header fields
  std::uint64_t body_bytes = UINT64_MAX;
  std::size_t start_line_bytes = 16 * 1024;  // 414 when a request's is longer
};

// What a parser tells while it is fed. All calls come from inside feed() or feed_eof(), in this
// order: one head, any number of body pieces, one end. `Head` is Request or Response. A sink must
// not call, nor destroy, the parser from inside these calls.
template <class Head>
class Sink {
 public:
  virtual ~Sink() = default;
  // The head may be moved away. A sink that swaps its previous head in gives that one's memory
  // back, and one that only reads leaves it: then the next head is parsed without an allocation.
  virtual void on_head(Head&& head) = 0;
  // Body bytes, chunk framing removed. The view is valid during the call only.
  virtual void on_body(std::span<const char> piece) = 0;
  virtual void on_end() = 0;
};

// Parses one message after another. feed() consumes at most up to the end of one message and
// returns how many bytes it took; the bytes after that belong to the next message: reset(), then
// feed them. Bytes that it took need not be kept: the beginning of a head is remembered inside.
// Once done(), feed() takes 0. After an error the parser is dead (feed() repeats the error) until
// reset(), and the connection must be closed: its framing is lost. Errors: kInvalid, with
// error_status() for the response (400, 413, 414, 431, 501, 505).
//
// Refused beyond what basic_parser refuses: Transfer-Encoding beside Content-Length or in HTTP/1.0,
// any transfer coding but "chunked", a Content-Length that is repeated, a list or beyond 2^63,
// look-alikes (Content_Length), obs-fold, a missing, repeated or malformed Host, targets in no
// known form or with characters outside visible ASCII, chunk lines over 256 bytes, chunk extensions
// over 4 KiB a message. Trailers are read (8 KiB at most) and dropped. One empty line before a
// request is skipped (RFC 9112 §2.2).
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

// Interim (1xx, not 101) responses are consumed and not told, 16 at most.
// REQUIRES: expect_response_to() was called for every response when the request's method was HEAD,
// since such a response has no body.
// Errors: kInvalid; kUnsupported for 101, for an accepted CONNECT and for a
// transfer coding but "chunked".
class ResponseParser {
 public:
  explicit ResponseParser(Sink<Response>& sink, Limits limits = {});
  ~ResponseParser();
  Result<std::size_t> feed(std::span<const char> bytes);
  // The peer closed: ends a kUntilClose body. Nothing happens when done(). Anything else, a
  // response not yet begun included, is kDisconnected.
  Result<void> feed_eof();
  [[nodiscard]] bool head_done() const;
  [[nodiscard]] bool done() const;
  [[nodiscard]] bool idle() const;
  // The next response answers this method. To be called before its first byte is fed, before or
  // after the reset() that follows the previous response. Forgotten when that response ends.
  void expect_response_to(std::string_view method);
  void reset();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Appends the head with its empty line. The framing fields (Content-Length, Transfer-Encoding) are
// written from `body` and `content_length`, and Connection from `keep_alive`; fields of those names
// are left out of `fields`, so that they cannot contradict. A response without body says
// Content-Length: 0, unless its status (1xx, 204, 304) or `announced` says otherwise. REQUIRES:
// method, target, reason and fields are valid (see is_token(), is_field_value()); a request's body
// is not kUntilClose; kChunked only with minor_version 1.
void append_head(std::string& out, const Request& request);
void append_head(std::string& out, const Response& response);
// Chunk framing for kChunked: "1f\r\n", which the piece and "\r\n" follow, and "0\r\n\r\n" at the
// end. A piece must not be empty (that would end the body).
void append_chunk_head(std::string& out, std::size_t piece_size);
void append_last_chunk(std::string& out);

// Removes the hop-by-hop fields (RFC 9110 §7.6.1), those that Connection names included. Host and
// Content-Length stay even when Connection names them, which only an attacker does.
void remove_hop_by_hop(Fields& fields);

// RFC 9110 §5.6.2: what a method or a field name must be.
[[nodiscard]] bool is_token(std::string_view text);
// RFC 9110 §5.5: no control characters but tabs, no white space at either end; may be empty.
[[nodiscard]] bool is_field_value(std::string_view text);

}  // namespace tailward::http
