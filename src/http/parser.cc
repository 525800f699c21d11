#include <algorithm>
#include <boost/beast/http/basic_parser.hpp>
#include <charconv>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "base/check.h"
#include "http/codec.h"
#include "http/text.h"
#include "http/unit_scan.h"

namespace tailward::http {

namespace {

namespace beast = boost::beast;

// A server may send any number of 1xx responses (RFC 9110, section 15.2). A stream of them without
// an end would keep the client reading for ever.
constexpr int kInterimMax = 16;

std::string_view view_of(beast::string_view text) { return {text.data(), text.size()}; }

bool is_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
}

// Names that some gateways take for framing fields, since they turn '-' into '_'.
bool is_framing_look_alike(std::string_view name) {
  // The lengths of "Content-Length" and "Transfer-Encoding": nearly every field ends here.
  if (name.size() != 14 && name.size() != 17) return false;
  if (name.find('_') == std::string_view::npos) return false;
  std::string dashed(name);
  std::replace(dashed.begin(), dashed.end(), '_', '-');
  return equals_ignoring_case(dashed, "Content-Length") ||
         equals_ignoring_case(dashed, "Transfer-Encoding");
}

// origin-form, absolute-form, asterisk-form or authority-form, each where it may be. RFC 9112 §3.2.
bool is_target_of(std::string_view method, std::string_view target) {
  if (!all_are(kTargetChar, target)) return false;
  if (method == "CONNECT") return all_are(kHostChar, target);
  if (target.front() == '/') return true;
  if (target == "*") return method == "OPTIONS";
  const std::size_t colon = target.find("://");
  return colon != std::string_view::npos && is_token(target.substr(0, colon));
}

void clear_head(Request& head) {
  head.method.clear();
  head.target.clear();
  head.fields.clear();
  head.body = BodyKind::kNone;
  head.content_length = 0;
}

void clear_head(Response& head) {
  head.reason.clear();
  head.fields.clear();
  head.body = BodyKind::kNone;
  head.content_length = 0;
  head.announced = BodyKind::kNone;
}

// What Beast tells, written down. The sink is called by MessageReader, after Beast has returned.
template <bool kIsRequest>
class HeadRecorder final : public beast::http::basic_parser<kIsRequest> {
 public:
  using Head = std::conditional_t<kIsRequest, Request, Response>;

  HeadRecorder(Head& head, const Limits& limits) : head_(head), fields_max_(limits.fields) {
    // UnitScan has measured the head already.
    this->header_limit(std::numeric_limits<std::uint32_t>::max());
    if (limits.body_bytes == UINT64_MAX) {
      this->body_limit(boost::none);
    } else {
      this->body_limit(limits.body_bytes);
    }
  }

  [[nodiscard]] const std::optional<Refusal>& refusal() const { return refusal_; }
  [[nodiscard]] std::string_view body() const { return body_; }

 private:
  void on_request_impl(beast::http::verb, beast::string_view method, beast::string_view target,
                       int version, beast::error_code& ec) override {
    if constexpr (kIsRequest) {
      head_.method = view_of(method);
      head_.target = view_of(target);
      head_.minor_version = version - 10;
      // A target with a space or a control character in it is how requests are smuggled past a
      // front end.
      if (!is_target_of(head_.method, head_.target)) refuse(ec, 400, "the target is malformed");
    }
  }

  void on_response_impl(int code, beast::string_view reason, int version,
                        beast::error_code& ec) override {
    if constexpr (!kIsRequest) {
      head_.status = code;
      head_.reason = trimmed(view_of(reason));
      head_.minor_version = version - 10;
      if (code < 100) refuse(ec, 400, "the status is below 100");
    }
  }

  void on_field_impl(beast::http::field field, beast::string_view name, beast::string_view value,
                     beast::error_code& ec) override {
    if (head_done_) return;  // a trailer
    // 431: Request Header Fields Too Large (RFC 6585).
    if (head_.fields.size() == fields_max_) return refuse(ec, 431, "too many fields");
    head_.fields.add(view_of(name), view_of(value));
    switch (field) {
      case beast::http::field::content_length:
        return take_content_length(view_of(value), ec);
      case beast::http::field::transfer_encoding:
        return take_transfer_encoding(view_of(value), ec);
      case beast::http::field::connection:
        close_ = close_ || list_has_token(view_of(value), "close");
        stay_ = stay_ || list_has_token(view_of(value), "keep-alive");
        return;
      case beast::http::field::host:
        if constexpr (kIsRequest) return take_host(view_of(value), ec);
        return;
      case beast::http::field::unknown:
        if (is_framing_look_alike(view_of(name)))
          refuse(ec, 400, "a field resembles a framing field");
        return;
      default:
        return;
    }
  }

  void take_content_length(std::string_view value, beast::error_code& ec) {
    // RFC 9112, section 6.3 allows equal repetitions. Two readers that pick different ones disagree
    // about where the message ends, so there is one or none.
    if (has_length_) return refuse(ec, 400, "Content-Length is repeated");
    if (!is_number(value)) return refuse(ec, 400, "Content-Length is not a number");
    has_length_ = true;
    const auto parsed = std::from_chars(value.data(), value.data() + value.size(), length_);
    // Beyond that, a reader with signed lengths sees a negative one.
    if (parsed.ec != std::errc{} || length_ > INT64_MAX) {
      refuse(ec, 400, "Content-Length is too large");
    }
  }

  void take_transfer_encoding(std::string_view value, beast::error_code& ec) {
    if (has_coding_) return refuse(ec, 400, "Transfer-Encoding is repeated");
    // RFC 9112, section 6.1: its framing is faulty, because an HTTP/1.0 peer may not know the
    // coding.
    if (head_.minor_version == 0) return refuse(ec, 400, "Transfer-Encoding in HTTP/1.0");
    has_coding_ = true;
    if (!equals_ignoring_case(value, "chunked")) {
      refuse(ec, 501, "a transfer coding other than chunked", ErrorKind::kUnsupported);
    }
  }

  void take_host(std::string_view value, beast::error_code& ec) {
    if (has_host_) return refuse(ec, 400, "Host is repeated");
    if (!all_are(kHostChar, value)) return refuse(ec, 400, "Host is malformed");
    has_host_ = true;
  }

  void on_header_impl(beast::error_code& ec) override {
    head_done_ = true;
    // RFC 9112, section 6.1 lets a server take the coding. This is the classic smuggling attack, so
    // the message is refused.
    if (has_length_ && has_coding_) {
      return refuse(ec, 400, "Content-Length beside Transfer-Encoding");
    }
    BodyKind framing = kIsRequest ? BodyKind::kNone : BodyKind::kUntilClose;
    if (has_coding_) framing = BodyKind::kChunked;
    if (has_length_) framing = BodyKind::kLength;
    head_.content_length = has_length_ ? length_ : 0;
    // RFC 9112, section 9.3: HTTP/1.1 persists unless told otherwise, HTTP/1.0 only when told.
    head_.keep_alive = !close_ && (head_.minor_version == 1 || stay_);
    if constexpr (kIsRequest) {
      if (!has_host_ && head_.minor_version == 1) return refuse(ec, 400, "Host is missing");
      head_.body = framing;
    } else {
      finish_response_head(framing);
    }
  }

  void finish_response_head(BodyKind framing) {
    // RFC 9110, section 8.6: these have no body, whatever their fields say.
    if (head_.status == 204 || head_.status / 100 == 1) {
      head_.content_length = 0;
    } else if (this->skip() || head_.status == 304) {
      head_.announced = framing;
    } else {
      head_.body = framing;
      if (framing == BodyKind::kUntilClose) head_.keep_alive = false;
    }
  }

  void on_body_init_impl(const boost::optional<std::uint64_t>&, beast::error_code&) override {}

  std::size_t on_body_impl(beast::string_view body, beast::error_code&) override {
    body_ = view_of(body);
    return body.size();
  }

  void on_chunk_header_impl(std::uint64_t, beast::string_view, beast::error_code&) override {}

  std::size_t on_chunk_body_impl(std::uint64_t, beast::string_view body,
                                 beast::error_code&) override {
    body_ = view_of(body);
    return body.size();
  }

  void on_finish_impl(beast::error_code&) override {}

  void refuse(beast::error_code& ec, int status, const char* why,
              ErrorKind kind = ErrorKind::kInvalid) {
    refusal_ = Refusal{status, why, kIsRequest ? ErrorKind::kInvalid : kind};
    ec = beast::http::error::bad_field;  // any: it only makes Beast stop
  }

  Head& head_;
  std::size_t fields_max_;
  std::optional<Refusal> refusal_;
  std::string_view body_;
  std::uint64_t length_ = 0;
  bool has_length_ = false;
  bool has_coding_ = false;
  bool has_host_ = false;
  bool close_ = false;
  bool stay_ = false;
  bool head_done_ = false;
};

// What both parsers are: cuts the bytes into the units that Beast gets whole, and tells the sink.
template <class Head>
class MessageReader {
 public:
  MessageReader(Sink<Head>& sink, Limits limits) : sink_(sink), limits_(limits), scan_(limits) {
    scan_.start(kHeadUnit);
  }

  Result<std::size_t> feed(std::span<const char> bytes) {
    std::string_view rest(bytes.data(), bytes.size());
    while (!rest.empty() && state_ != State::kDone && state_ != State::kDead) {
      const bool in_body = state_ == State::kBody || state_ == State::kChunkData;
      rest.remove_prefix(in_body ? take_body(rest) : take_unit(rest));
    }
    if (state_ == State::kDead) return fail(kind_, why_);
    return bytes.size() - rest.size();
  }

  Result<void> feed_eof() {
    if (state_ == State::kDone) return {};
    if (state_ == State::kDead) return fail(kind_, why_);
    // The one body that may end so.
    if (state_ == State::kBody && until_close_) {
      beast::error_code ec;
      recorder_->put_eof(ec);
      TAILWARD_CHECK(!ec);
      finish();
      return {};
    }
    const bool begun = !idle();
    refuse({400, begun ? "the peer closed within a message" : "the peer closed without an answer",
            ErrorKind::kDisconnected});
    return fail(kind_, why_);
  }

  [[nodiscard]] bool head_done() const { return head_done_; }
  [[nodiscard]] bool done() const { return state_ == State::kDone; }
  [[nodiscard]] bool idle() const {
    return state_ == State::kHead && pending_.empty() && interim_ == 0;
  }
  [[nodiscard]] int error_status() const { return status_; }

  void expect_response_to(std::string_view method) {
    to_head_ = method == "HEAD";
    to_connect_ = method == "CONNECT";
  }

  void reset() {
    // What was expected of a response that is given up; not what is expected of the next one.
    if (!done() && !idle()) expect_response_to({});
    state_ = State::kHead;
    pending_.clear();
    head_done_ = false;
    blank_skipped_ = false;
    interim_ = 0;
    scan_.start_message();
    scan_.start(kHeadUnit);
  }

 private:
  static constexpr bool kIsRequest = std::is_same_v<Head, Request>;
  // Beast gets a whole head or chunk line at a time: it would scan a partial one again with each
  // byte, which is quadratic for a peer that drips.
  static constexpr ScanUnit kHeadUnit =
      kIsRequest ? ScanUnit::kRequestHead : ScanUnit::kResponseHead;

  enum class State { kHead, kBody, kChunkLine, kChunkData, kDone, kDead };

  // Takes bytes up to the end of the head or chunk line under way, or all of them.
  std::size_t take_unit(std::string_view bytes) {
    using Verdict = UnitScan::Verdict;
    std::string_view taken = bytes;
    std::string_view unit = bytes;
    if (!pending_.empty()) {
      // Line by line, so that nothing of the body is copied.
      const std::size_t newline = bytes.find('\n');
      if (newline != std::string_view::npos) taken = bytes.substr(0, newline + 1);
      pending_.append(taken);
      unit = pending_;
    }
    const Verdict verdict = scan_.scan(unit);
    if (verdict == Verdict::kMore) {
      if (pending_.empty()) pending_.assign(bytes);
      return taken.size();
    }
    if (verdict == Verdict::kRefused) {
      refuse(scan_.refusal());
      return 0;
    }
    unit = unit.substr(0, scan_.size());
    const std::size_t size = pending_.empty() ? unit.size() : taken.size();
    if (verdict == Verdict::kBlank) {
      skip_blank();
    } else if (state_ == State::kHead) {
      take_head(unit);
    } else {
      take_chunk_line(unit);
    }
    pending_.clear();
    return size;
  }

  void skip_blank() {
    // RFC 9112, section 2.2: a server should ignore one empty line before a request.
    if (blank_skipped_) return refuse({400, "empty lines before the request"});
    blank_skipped_ = true;
    scan_.start(kHeadUnit);
  }

  void take_head(std::string_view unit) {
    clear_head(head_);
    head_.fields.reserve(unit.size(), scan_.lines());
    recorder_.emplace(head_, limits_);
    recorder_->skip(to_head_);
    if (!put(unit)) return;
    if constexpr (!kIsRequest) {
      if (head_.status / 100 == 1) return skip_interim();
      // What follows is the tunnel's, and no HTTP.
      if (to_connect_ && head_.status / 100 == 2) {
        return refuse({400, "a tunnel (CONNECT)", ErrorKind::kUnsupported});
      }
    }
    head_done_ = true;
    const BodyKind body = head_.body;
    remaining_ = head_.content_length;
    sink_.on_head(std::move(head_));
    until_close_ = body == BodyKind::kUntilClose;
    if (body == BodyKind::kChunked) {
      state_ = State::kChunkLine;
      scan_.start(ScanUnit::kFirstChunk);
    } else if (until_close_ || (body == BodyKind::kLength && remaining_ > 0)) {
      state_ = State::kBody;
    } else {
      finish();
    }
  }

  void skip_interim() {
    // What follows is another protocol's.
    if (head_.status == 101)
      return refuse({400, "the protocol is switched", ErrorKind::kUnsupported});
    if (++interim_ > kInterimMax) return refuse({400, "too many interim responses"});
    scan_.start(kHeadUnit);
  }

  void take_chunk_line(std::string_view unit) {
    remaining_ = scan_.chunk_size();
    if (!put(unit)) return;
    if (remaining_ == 0) return finish();
    state_ = State::kChunkData;
  }

  std::size_t take_body(std::string_view bytes) {
    const bool bounded = !until_close_;
    // The rest belongs to the next message of the pipeline.
    if (bounded && bytes.size() > remaining_) bytes = bytes.substr(0, remaining_);
    if (!put(bytes)) return 0;
    sink_.on_body(recorder_->body());
    if (!bounded) return bytes.size();
    remaining_ -= bytes.size();
    if (remaining_ > 0) return bytes.size();
    if (state_ == State::kChunkData) {
      state_ = State::kChunkLine;
      scan_.start(ScanUnit::kNextChunk);
    } else {
      finish();
    }
    return bytes.size();
  }

  // Gives Beast one whole unit. Whatever it does not take as a whole is an error, "need more"
  // included.
  bool put(std::string_view unit) {
    beast::error_code ec;
    const std::size_t taken =
        recorder_->put(boost::asio::const_buffer(unit.data(), unit.size()), ec);
    if (!ec && taken == unit.size()) return true;
    if (recorder_->refusal()) {
      refuse(*recorder_->refusal());
    } else if (ec == beast::http::error::body_limit) {
      refuse({413, "the body is too large"});
    } else {
      refuse({400, ""});
      why_ = "malformed message: " + ec.message();
    }
    return false;
  }

  void refuse(const Refusal& refusal) {
    state_ = State::kDead;
    status_ = refusal.status;
    kind_ = refusal.kind;
    why_ = refusal.why;
  }

  void finish() {
    state_ = State::kDone;
    expect_response_to({});
    sink_.on_end();
  }

  Sink<Head>& sink_;
  Limits limits_;
  UnitScan scan_;
  State state_ = State::kHead;
  std::string pending_;                               // the bytes of a unit that is not complete
  Head head_;                                         // kept, so that its memory is used again
  std::optional<HeadRecorder<kIsRequest>> recorder_;  // Beast's parser takes one message only
  std::uint64_t remaining_ = 0;                       // of the body or the chunk
  bool until_close_ = false;
  bool head_done_ = false;
  bool blank_skipped_ = false;
  bool to_head_ = false;
  bool to_connect_ = false;
  int interim_ = 0;
  int status_ = 400;
  ErrorKind kind_ = ErrorKind::kInvalid;
  std::string why_;
};

}  // namespace

class RequestParser::Impl : public MessageReader<Request> {
 public:
  using MessageReader::MessageReader;
};

RequestParser::RequestParser(Sink<Request>& sink, Limits limits)
    : impl_(std::make_unique<Impl>(sink, limits)) {}
RequestParser::~RequestParser() = default;
Result<std::size_t> RequestParser::feed(std::span<const char> bytes) { return impl_->feed(bytes); }
bool RequestParser::head_done() const { return impl_->head_done(); }
bool RequestParser::done() const { return impl_->done(); }
bool RequestParser::idle() const { return impl_->idle(); }
int RequestParser::error_status() const { return impl_->error_status(); }
void RequestParser::reset() { impl_->reset(); }

class ResponseParser::Impl : public MessageReader<Response> {
 public:
  using MessageReader::MessageReader;
};

ResponseParser::ResponseParser(Sink<Response>& sink, Limits limits)
    : impl_(std::make_unique<Impl>(sink, limits)) {}
ResponseParser::~ResponseParser() = default;
Result<std::size_t> ResponseParser::feed(std::span<const char> bytes) { return impl_->feed(bytes); }
Result<void> ResponseParser::feed_eof() { return impl_->feed_eof(); }
bool ResponseParser::head_done() const { return impl_->head_done(); }
bool ResponseParser::done() const { return impl_->done(); }
bool ResponseParser::idle() const { return impl_->idle(); }
void ResponseParser::expect_response_to(std::string_view method) {
  impl_->expect_response_to(method);
}
void ResponseParser::reset() { impl_->reset(); }

}  // namespace tailward::http
