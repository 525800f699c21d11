#include "net/server_connection.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace tailward::net {

ServerConnection::ServerConnection(HttpServer& server, std::unique_ptr<io::Stream> stream)
    : server_(server),
      stream_(std::move(stream)),
      parser_(*this, server.options_.limits),
      buffer_(server.options_.read_buffer_bytes) {}

ServerConnection::~ServerConnection() = default;

void ServerConnection::begin() {
  progress_at_ = server_.timers_.now();
  update_deadline();
  read();
}

void ServerConnection::drain() {
  const bool idle =
      call_ == nullptr && response_ == ResponseState::kNone && parser_.idle() && input().empty();
  if (idle) close(false);
}

void ServerConnection::close(bool tell) {
  if (stream_ == nullptr) return;
  const std::shared_ptr<ServerConnection> self = shared_from_this();
  flush_timer_.cancel();
  advance_timer_.cancel();
  alarm_.cancel();
  // First of all, because everything below may come back here.
  stream_.reset();
  if (call_ != nullptr || response_ != ResponseState::kNone) --server_.counters_.in_flight;
  response_ = ResponseState::kNone;
  // These may own the call, or whatever else comes back here when destroyed.
  const auto out_done = std::move(out_done_);
  const auto pending_done = std::move(pending_done_);
  const std::shared_ptr<ServerCall> undispatched = std::move(undispatched_);
  Ended ended = end_call();
  server_.connection_gone(*this);
  if (tell && ended.cancel) ended.cancel();
}

ServerConnection::Ended ServerConnection::end_call() {
  Ended ended;
  if (ServerCall* const call = std::exchange(call_, nullptr)) {
    ended.call = call->weak_from_this().lock();  // null while the call is being destroyed
    ended.whole_body = std::move(call->whole_body_);
    ended.cancel = std::move(call->cancel_);
    call->body_handler_ = nullptr;
    call->connection_ = nullptr;
  }
  return ended;
}

// Parsing.

void ServerConnection::advance() {
  // Handlers call back into the connection. One loop at a time drives it, so the stack stays flat.
  if (std::exchange(advancing_, true)) return;
  const std::shared_ptr<ServerConnection> self = shared_from_this();
  while (stream_ != nullptr && step()) {
  }
  advancing_ = false;
  if (stream_ == nullptr) return;
  // What was not taken must be copied: the buffer is read into again.
  early_.append(fresh_.data(), fresh_.size());
  fresh_ = {};
  update_deadline();
  read();
}

void ServerConnection::advance_soon() {
  if (advancing_ || advance_timer_.armed()) return;
  // A turn of its own, so that no handler runs inside a call of its own.
  advance_timer_ = server_.timers_.after(Duration{0}, [this] { advance(); });
}

std::span<const char> ServerConnection::input() const {
  return early_.empty() ? fresh_ : std::span<const char>(early_).subspan(early_at_);
}

void ServerConnection::drop_input() {
  fresh_ = {};
  early_.clear();
  early_at_ = 0;
}

// One thing at a time, so that each can see what the one before it changed. False: nothing to do
// now.
bool ServerConnection::step() {
  if (lingering_) return false;
  if (undispatched_ != nullptr) {
    dispatch();
    return true;
  }
  if (call_ != nullptr && tell_body()) return true;
  if (next_request()) return true;
  if (!input().empty() && may_parse()) {
    feed();
    return true;
  }
  if (finished_ && call_ == nullptr && response_ == ResponseState::kNone && input().empty()) {
    if (parser_.idle()) {
      close(false);
    } else {
      ++server_.counters_.truncated;
      respond_with_error(400);
    }
  }
  return false;
}

bool ServerConnection::may_parse() const {
  if (parser_.done()) return false;
  if (!parser_.head_done()) return call_ == nullptr && response_ == ResponseState::kNone;
  // The handler has let go of the call: nobody wants the rest of the body.
  if (call_ == nullptr) return false;
  if (call_->whole_body_) return true;
  return call_->body_handler_ != nullptr && !call_->body_paused_;
}

void ServerConnection::feed() {
  if (parser_.idle()) {
    // A fresh reading: the request's arrival is measured from here.
    first_byte_at_ = server_.timers_.precise_now();
    progress_at_ = server_.timers_.now();
  }
  const bool in_body = parser_.head_done();
  const Result<std::size_t> taken = parser_.feed(input());
  if (stream_ == nullptr) return;
  if (!taken) return malformed();
  if (early_.empty()) {
    fresh_ = fresh_.subspan(*taken);
  } else if (early_at_ += *taken; early_at_ == early_.size()) {
    early_.clear();
    early_at_ = 0;
  }
  if (in_body) progress_at_ = server_.timers_.now();
}

void ServerConnection::on_head(http::Request&& head) {
  keep_alive_ = head.keep_alive;
  expects_continue_ = head.minor_version > 0 && head.fields.has_token("Expect", "100-continue");
  undispatched_ = std::make_shared<ServerCall>(*this, std::move(head), first_byte_at_);
  call_ = undispatched_.get();
  ++server_.counters_.requests;
  ++server_.counters_.in_flight;
}

void ServerConnection::on_body(std::span<const char> piece) {
  expects_continue_ = false;
  if (call_ == nullptr) return;
  // In order: what was kept back goes first.
  const bool direct =
      call_->body_handler_ != nullptr && !call_->body_paused_ && call_->pending_body_.empty();
  if (direct) {
    call_->body_handler_->on_request_body(piece);
  } else {
    call_->pending_body_.append(piece.data(), piece.size());
  }
}

void ServerConnection::on_end() {
  if (call_ != nullptr) call_->body_ended_ = true;
}

void ServerConnection::dispatch() {
  progress_at_ = server_.timers_.now();
  // A call that the handler does not keep ends here, and aborts itself if it has no response.
  server_.handler_(std::move(undispatched_));
  undispatched_.reset();
}

bool ServerConnection::tell_body() {
  ServerCall& call = *call_;
  if (call.whole_body_) {
    const bool too_long = call.pending_body_.size() > call.whole_limit_;
    if (!too_long && !call.body_ended_) return false;
    ServerCall::BodyCallback done = std::move(call.whole_body_);
    std::string body = std::move(call.pending_body_);
    call.pending_body_.clear();
    if (too_long) {
      done(fail(ErrorKind::kOverloaded,
                "the body is longer than " + std::to_string(call.whole_limit_) + " bytes"));
    } else {
      done(std::move(body));
    }
    return true;
  }
  if (call.body_handler_ == nullptr || call.body_paused_) return false;
  if (!call.pending_body_.empty()) {
    const std::string piece = std::exchange(call.pending_body_, {});
    call.body_handler_->on_request_body(piece);
    return true;
  }
  if (!call.body_ended_) return false;
  std::exchange(call.body_handler_, nullptr)->on_request_end();
  return true;
}

void ServerConnection::body_wanted() {
  if (expects_continue_ && response_ == ResponseState::kNone && parser_.head_done() &&
      !parser_.done()) {
    expects_continue_ = false;
    pending_ += "HTTP/1.1 100 Continue\r\n\r\n";
    flush_soon();
  }
  progress_at_ = server_.timers_.now();
  advance_soon();
}

// The answer before has been written: on to the next request, or the end.
bool ServerConnection::next_request() {
  if (response_ != ResponseState::kComplete || writing_ || !pending_.empty()) return false;
  answered();
  return true;
}

void ServerConnection::answered() {
  response_ = ResponseState::kNone;
  ++server_.counters_.answered;
  --server_.counters_.in_flight;
  // A body that was not read to its end stands between us and the next request.
  if (!keep_alive_ || server_.draining_ || !parser_.done()) {
    const bool read_to_the_end = parser_.done() && input().empty();
    if (read_to_the_end) return close(false);
    return start_linger();
  }
  parser_.reset();
  progress_at_ = server_.timers_.now();
}

void ServerConnection::malformed() {
  ++server_.counters_.malformed;
  drop_input();
  respond_with_error(parser_.error_status());
}

// Answers what could not be understood, if nothing has been said yet, and closes. A call under way
// hears that nobody waits for it.
void ServerConnection::respond_with_error(int status) {
  const std::shared_ptr<ServerCall> undispatched = std::move(undispatched_);
  // A second status line inside of a response would be read as its body.
  const bool silent = response_ != ResponseState::kNone;
  if (call_ != nullptr) --server_.counters_.in_flight;
  Ended ended = end_call();
  response_ = ResponseState::kNone;
  if (silent) {
    close(false);
  } else {
    http::Response head;
    head.status = status;
    head.reason = http::reason_phrase(status);
    head.body = http::BodyKind::kLength;
    head.keep_alive = false;
    http::append_head(pending_, head);
    start_linger();
  }
  if (ended.cancel) ended.cancel();
}

// Closing with input unread makes the kernel send a reset, which can take the response away from
// the client: it gets the response and the end, and a while to read them.
void ServerConnection::start_linger() {
  lingering_ = true;
  drop_input();
  set_deadline(server_.timers_.now() + server_.options_.linger);
  flush();
}

// Reading.

void ServerConnection::read() {
  if (reading_ || finished_ || stream_ == nullptr) return;
  // Backpressure: TCP's window holds the client up from here on.
  if (!lingering_ && early_.size() - early_at_ >= server_.options_.early_bytes) return;
  reading_ = true;
  stream_->read(buffer_, [this](Result<std::size_t> got) { read_done(std::move(got)); });
}

void ServerConnection::read_done(Result<std::size_t> got) {
  const std::shared_ptr<ServerConnection> self = shared_from_this();
  reading_ = false;
  if (!got) {
    if (call_ != nullptr || response_ != ResponseState::kNone) ++server_.counters_.cancelled;
    return close(true);
  }
  if (*got == 0) return peer_finished();
  if (lingering_) return read();
  received(std::span(buffer_).first(*got));
}

void ServerConnection::received(std::span<const char> bytes) {
  if (early_.empty()) {
    fresh_ = bytes;
  } else {
    early_.erase(0, early_at_).append(bytes.data(), bytes.size());
    early_at_ = 0;
  }
  advance();
  if (stream_ != nullptr && early_.size() - early_at_ >= server_.options_.early_bytes) {
    ++server_.counters_.early_limit_hits;
  }
}

void ServerConnection::peer_finished() {
  // A half-closed client is taken for gone: clients of HTTP that only close their writing side are
  // rare, and hedging needs to notice early that a loser was cancelled.
  finished_ = true;
  if (lingering_) return close(false);
  if (call_ != nullptr) {
    ++server_.counters_.cancelled;
    return close(true);
  }
  advance();
}

// Writing.

void ServerConnection::response_begins(http::Response& head, const ServerCall& call) {
  using http::BodyKind;
  head.minor_version = call.minor_version_;
  if (call.minor_version_ == 0 && head.body == BodyKind::kChunked) {
    head.body = BodyKind::kUntilClose;
  }
  if (head.reason.empty()) head.reason = http::reason_phrase(head.status);
  if (call.to_head_ || head.status == 204 || head.status == 304) {
    // A handler that passes on somebody else's response may have it announced already.
    if (head.status != 204 && head.body != BodyKind::kNone) head.announced = head.body;
    if (call.minor_version_ == 0 && head.announced == BodyKind::kChunked) {
      head.announced = BodyKind::kUntilClose;
    }
    head.body = BodyKind::kNone;
  }
  // A body that nobody reads to its end cannot be skipped safely: this is the last response.
  const bool body_in_hand = parser_.done() || (call_ != nullptr && call_->body_handler_ != nullptr);
  if (!body_in_hand || server_.draining_ || !head.keep_alive ||
      head.body == BodyKind::kUntilClose) {
    keep_alive_ = false;
  }
  head.keep_alive = keep_alive_;
  response_ = ResponseState::kUnderWay;
}

void ServerConnection::send_whole(const http::Response& head, std::string body) {
  http::append_head(pending_, head);
  // The body rides along without being copied, unless an earlier write is under way.
  if (writing_) {
    pending_ += body;
  } else {
    // The usual case: head and body leave in one gathered write.
    out_body_ = std::move(body);
  }
  response_complete();
}

void ServerConnection::output_added(WriteCallback done) {
  if (done) pending_done_.push_back(std::move(done));
  flush_soon();
}

std::size_t ServerConnection::unsent() const {
  return pending_.size() + (writing_ ? out_.size() + out_body_.size() : 0);
}

void ServerConnection::response_complete() {
  response_ = ResponseState::kComplete;
  const Ended ended = end_call();
  flush();
}

void ServerConnection::abort(ServerCall& call) {
  ++server_.counters_.aborted;
  if (call.head_given_) {
    const Ended ended = end_call();
    response_ = ResponseState::kComplete;
    return close(false);
  }
  http::Response head;
  head.status = 500;
  head.body = http::BodyKind::kLength;
  head.keep_alive = false;
  response_begins(head, call);
  send_whole(head, {});
}

void ServerConnection::flush_soon() {
  if (writing_ || flush_timer_.armed()) return;
  flush_timer_ = server_.timers_.after(Duration{0}, [this] { flush(); });
}

void ServerConnection::flush() {
  if (writing_ || stream_ == nullptr) return;
  flush_timer_.cancel();
  if (pending_.empty() && out_body_.empty() && pending_done_.empty()) {
    if (lingering_ && finished_) return close(false);
    if (lingering_) stream_->finish_writing();
    if (response_ == ResponseState::kComplete) advance_soon();
    return;
  }
  out_.swap(pending_);
  out_done_.swap(pending_done_);
  out_at_ = 0;
  write_slice();
  update_deadline();
}

// Large responses go in slices, so that one can tell a slow reader from one that has stopped.
void ServerConnection::write_slice() {
  const std::size_t head_at = std::min(out_at_, out_.size());
  std::span<const char> first = std::span<const char>(out_).subspan(head_at);
  std::span<const char> second = std::span<const char>(out_body_).subspan(out_at_ - head_at);
  first = first.first(std::min(first.size(), kWriteSlice));
  second = second.first(std::min(second.size(), kWriteSlice - first.size()));
  out_at_ += first.size() + second.size();
  writing_ = true;
  write_began_at_ = server_.timers_.now();
  stream_->write(first, second, [this](Result<void> result) { written(result); });
}

void ServerConnection::written(const Result<void>& result) {
  const std::shared_ptr<ServerConnection> self = shared_from_this();
  writing_ = false;
  if (!result) {
    if (call_ != nullptr || response_ != ResponseState::kNone) ++server_.counters_.cancelled;
    return close(true);
  }
  if (out_at_ < out_.size() + out_body_.size()) {
    write_slice();
    return update_deadline();
  }
  out_.clear();
  out_body_.clear();
  std::vector<WriteCallback> done;
  done.swap(out_done_);
  for (WriteCallback& call : done) {
    if (stream_ == nullptr) return;
    call({});
  }
  if (stream_ == nullptr) return;
  flush();
  advance();
}

// Timeouts. One alarm, moved only when it would be late: most waits end long before their time.

void ServerConnection::update_deadline() {
  if (lingering_) return;
  const ServerOptions& options = server_.options_;
  TimePoint at = kNever;
  if (call_ != nullptr) {
    if (may_parse()) at = progress_at_ + options.body_timeout;
  } else if (response_ == ResponseState::kNone) {
    at = progress_at_ + (parser_.idle() ? options.idle_timeout : options.header_timeout);
  }
  if (writing_) at = std::min(at, write_began_at_ + options.write_timeout);
  set_deadline(at);
}

void ServerConnection::set_deadline(TimePoint at) {
  deadline_ = at;
  if (at == kNever || (alarm_.armed() && alarm_at_ <= at)) return;
  alarm_at_ = at;
  alarm_ = server_.timers_.at(at, [this] { deadline_passed(); });
}

void ServerConnection::deadline_passed() {
  if (deadline_ > server_.timers_.now()) return set_deadline(deadline_);
  const std::shared_ptr<ServerConnection> self = shared_from_this();
  if (lingering_) return close(false);
  if (writing_ && write_began_at_ + server_.options_.write_timeout <= server_.timers_.now()) {
    ++server_.counters_.timed_out;
    return close(true);
  }
  if (call_ == nullptr && parser_.idle()) {
    ++server_.counters_.idle_closed;
    return close(false);
  }
  ++server_.counters_.timed_out;
  respond_with_error(408);
}

}  // namespace tailward::net
