#include "net/http_connection.h"

#include <utility>

#include "base/check.h"
#include "net/http_pool.h"

namespace tailward::net {

ClientConnection::ClientConnection(Pool& pool, std::unique_ptr<io::Stream> stream)
    : pool_(pool),
      stream_(std::move(stream)),
      parser_(*this, pool.options_.response_limits),
      buffer_(pool.options_.read_buffer_bytes) {}

ClientConnection::~ClientConnection() = default;

void ClientConnection::attach(Exchange& exchange) {
  TAILWARD_CHECK(exchange_ == nullptr && stream_ != nullptr && !writing_);
  exchange_ = &exchange;
  exchange.connection_ = shared_from_this();
  exchange.state_ = Exchange::State::kActive;
  exchange.reused_ = served_before_;
  head_written_ = false;
  ended_ = false;
  parser_.expect_response_to(exchange.method_);
  flush();
  read();
}

void ClientConnection::flush() {
  if (writing_ || write_failed_ || exchange_ == nullptr) return;
  Exchange& exchange = *exchange_;
  if (!head_written_) {
    head_written_ = true;
    exchange.sent_at_ = pool_.timers_.precise_now();
    out_body_ = exchange.body_;
    // Kept for a second sending on a fresh connection; else moved, without a copy.
    if (exchange.resendable_) {
      out_ = exchange.wire_;
    } else {
      out_.swap(exchange.wire_);
    }
  }
  if (!exchange.pending_.empty()) {
    // These bytes are not kept: from here on the request cannot be sent again.
    exchange.resendable_ = false;
    out_.append(exchange.pending_);
    exchange.pending_.clear();
  }
  out_done_.swap(exchange.pending_done_);
  const std::span<const char> body =
      out_body_ == nullptr ? std::span<const char>() : std::span<const char>(*out_body_);
  if (out_.empty() && body.empty() && out_done_.empty()) return;
  writing_ = true;
  stream_->write(out_, body, [this](Result<void> result) { written(result); });
}

void ClientConnection::written(const Result<void>& result) {
  const std::shared_ptr<ClientConnection> self = shared_from_this();
  writing_ = false;
  out_.clear();
  out_body_.reset();
  std::vector<Exchange::WriteCallback> done;
  done.swap(out_done_);
  if (!result) {
    write_failed_ = true;
    // The server may have answered before it closed (413), and that response may still be on its
    // way.
    grace_timer_ = pool_.timers_.after(kResponseGrace, [this, error = result.error()] {
      const std::shared_ptr<ClientConnection> keep = shared_from_this();
      if (exchange_ != nullptr && !exchange_->any_byte_received()) lost(error);
    });
    return;
  }
  Exchange* const mine = exchange_;
  for (Exchange::WriteCallback& call : done) {
    // A callback may have ended the exchange, and another may have taken the connection.
    if (exchange_ != mine || mine == nullptr) return;
    call({});
  }
  flush();
}

void ClientConnection::read() {
  // While parsing, the buffer still holds what the handlers are being told: received() reads on.
  if (reading_ || parsing_ || held_ || stream_ == nullptr) return;
  if (exchange_ != nullptr && exchange_->paused_) return;
  reading_ = true;
  stream_->read(buffer_, [this](Result<std::size_t> got) { read_done(std::move(got)); });
}

void ClientConnection::read_done(Result<std::size_t> got) {
  reading_ = false;
  if (exchange_ != nullptr && exchange_->paused_) {
    held_ = std::move(got);
    return;
  }
  handle(std::move(got));
}

void ClientConnection::resume() {
  if (!held_) return read();
  if (resume_timer_.armed()) return;
  // In a turn of its own: handlers never run inside resume().
  resume_timer_ = pool_.timers_.after(Duration{0}, [this] {
    if (!held_ || (exchange_ != nullptr && exchange_->paused_)) return;
    Result<std::size_t> got = std::move(*held_);
    held_.reset();
    handle(std::move(got));
  });
}

void ClientConnection::handle(Result<std::size_t> got) {
  const std::shared_ptr<ClientConnection> self = shared_from_this();
  // Idle: the server has closed, or says what nobody asked for.
  if (exchange_ == nullptr) return pool_.idle_lost(*this);
  if (!got) return lost(std::move(got).error());
  if (*got > 0) return received(*got);
  // Legal as the end of a body without a length; else the response is cut.
  const Result<void> end = parser_.feed_eof();
  if (exchange_ == nullptr) return;
  if (!end) return lost(end.error());
  finish_exchange(false);
}

void ClientConnection::received(std::size_t count) {
  if (!exchange_->any_byte_received()) {
    exchange_->first_byte_at_ = pool_.timers_.precise_now();
  }
  parsing_ = true;
  const Result<std::size_t> taken = parser_.feed(std::span(buffer_).first(count));
  parsing_ = false;
  if (exchange_ == nullptr) return;  // its handler destroyed it
  if (!taken) return lost(taken.error());
  if (ended_) return finish_exchange(*taken == count);
  read();
}

void ClientConnection::on_head(http::Response&& head) {
  keep_alive_ = head.keep_alive;
  if (exchange_ != nullptr) exchange_->handler_->on_response_head(std::move(head));
}

void ClientConnection::on_body(std::span<const char> piece) {
  if (exchange_ != nullptr) exchange_->handler_->on_body(piece);
}

void ClientConnection::on_end() { ended_ = true; }

void ClientConnection::finish_exchange(bool clean) {
  Exchange& exchange = *std::exchange(exchange_, nullptr);
  const bool all_sent = !writing_ && !write_failed_ && head_written_ && exchange.body_finished_ &&
                        exchange.pending_.empty();
  exchange.state_ = Exchange::State::kDone;
  exchange.timer_.cancel();
  exchange.paused_ = false;
  std::shared_ptr<ClientConnection> self = std::move(exchange.connection_);
  if (clean && all_sent && keep_alive_ && exchange.keep_alive_) {
    parser_.reset();
    served_before_ = true;
    pool_.release(std::move(self));
  } else {
    pool_.close_used(*this);
    pool_.slot_freed();
  }
  exchange.handler_->on_end();
}

void ClientConnection::lost(Error error) {
  Exchange& exchange = *exchange_;
  const bool stale =
      served_before_ && !exchange.any_byte_received() && exchange.resendable_ && !exchange.resent_;
  const std::shared_ptr<ClientConnection> self = std::move(exchange.connection_);
  pool_.close_used(*this);
  if (stale) {
    exchange.resent_ = true;
    exchange.fresh_ = true;
    ++pool_.counters_.stale_retries;
    pool_.acquire(exchange);
    pool_.slot_freed();
    return;
  }
  pool_.slot_freed();
  exchange.end_with(std::move(error));
}

void ClientConnection::close() {
  exchange_ = nullptr;
  grace_timer_.cancel();
  resume_timer_.cancel();
  held_.reset();
  const std::vector<Exchange::WriteCallback> dropped = std::move(out_done_);
  stream_.reset();
}

}  // namespace tailward::net
