#include "net/http_exchange.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "http/codec.h"
#include "net/http_connection.h"
#include "net/http_pool.h"

namespace tailward::net {
namespace {

// RFC 9110 §9.2.2.
bool is_idempotent(std::string_view method) {
  static constexpr std::array<std::string_view, 6> kMethods = {"GET",   "HEAD", "OPTIONS",
                                                               "TRACE", "PUT",  "DELETE"};
  return std::find(kMethods.begin(), kMethods.end(), method) != kMethods.end();
}

bool is_resendable(const http::Request& head, ExchangeOptions::Resend resend) {
  switch (resend) {
    case ExchangeOptions::Resend::kAlways:
      return true;
    case ExchangeOptions::Resend::kNever:
      return false;
    case ExchangeOptions::Resend::kByMethod:
      break;
  }
  return is_idempotent(head.method) || head.fields.find("Idempotency-Key").has_value();
}

}  // namespace

Exchange::Exchange(Pool& pool, ExchangeHandler& handler) : pool_(pool), handler_(&handler) {}

Exchange::~Exchange() { pool_.abandon(*this); }

void Exchange::begin(const http::Request& head, ExchangeOptions options) {
  TAILWARD_CHECK(state_ == State::kNew);
  options_ = options;
  method_ = head.method;
  keep_alive_ = head.keep_alive;
  resendable_ = is_resendable(head, options.resend);
  fresh_ = options.fresh_connection;
  http::append_head(wire_, head);
  pool_.acquire(*this);
}

void Exchange::start(const http::Request& head, std::shared_ptr<const std::string> body,
                     ExchangeOptions options) {
  const std::uint64_t size = body == nullptr ? 0 : body->size();
  TAILWARD_CHECK(head.body == http::BodyKind::kLength
                     ? head.content_length == size
                     : head.body == http::BodyKind::kNone && size == 0);
  body_ = std::move(body);
  begin(head, options);
}

void Exchange::start_streaming(const http::Request& head, ExchangeOptions options) {
  chunked_ = head.body == http::BodyKind::kChunked;
  TAILWARD_CHECK(chunked_ || head.body == http::BodyKind::kLength);
  streaming_ = true;
  body_finished_ = false;
  left_to_write_ = head.content_length;
  begin(head, options);
}

void Exchange::write(std::span<const char> piece, WriteCallback done) {
  if (state_ == State::kDone || state_ == State::kFailing) return;
  TAILWARD_CHECK(streaming_ && !body_finished_);
  if (chunked_) {
    if (!piece.empty()) {
      http::append_chunk_head(pending_, piece.size());
      pending_.append(piece.data(), piece.size()).append("\r\n");
    }
  } else {
    TAILWARD_CHECK(piece.size() <= left_to_write_);
    left_to_write_ -= piece.size();
    pending_.append(piece.data(), piece.size());
  }
  if (done) pending_done_.push_back(std::move(done));
  schedule_flush();
}

void Exchange::finish_body() {
  if (state_ == State::kDone || state_ == State::kFailing) return;
  TAILWARD_CHECK(streaming_ && !body_finished_);
  TAILWARD_CHECK(chunked_ || left_to_write_ == 0);
  if (chunked_) http::append_last_chunk(pending_);
  body_finished_ = true;
  schedule_flush();
}

void Exchange::schedule_flush() {
  // While it waits or connects, `timer_` has other work, and attaching flushes.
  if (state_ != State::kActive || timer_.armed()) return;
  timer_ = pool_.timers_.after(Duration{0}, [this] {
    if (connection_ != nullptr) connection_->flush();
  });
}

std::size_t Exchange::buffered() const {
  return pending_.size() + (connection_ == nullptr ? 0 : connection_->unsent());
}

void Exchange::pause() { paused_ = true; }

void Exchange::resume() {
  if (!std::exchange(paused_, false)) return;
  if (connection_ != nullptr) connection_->resume();
}

void Exchange::fail_later(Error error) {
  state_ = State::kFailing;
  timer_ = pool_.timers_.after(
      Duration{0}, [this, error = std::move(error)]() mutable { end_with(std::move(error)); });
}

void Exchange::end_with(Error error) {
  state_ = State::kDone;
  timer_.cancel();
  handler_->on_error(std::move(error), any_byte_received());
}

}  // namespace tailward::net
