// One HTTP/1.1 request and its response over a pooled connection, streaming in both directions.
//
//   class Handler : public net::ExchangeHandler { … };
//   net::Exchange exchange(pool, handler);
//   exchange.start(request);              // events arrive at the handler, never inside a call
//
// Cancelling is destroying: HTTP/1.1 has no other way to take a request back, so the connection is
// closed at once, the server's kernel learns of it, and the pool counts it. Several exchanges for
// one request, a race, are several objects, each with its own connection; a complete body is shared
// between them.
//
// Memory is bounded: a paused response holds at most one read buffer
// (PoolOptions::read_buffer_bytes) here and the rest stays in the kernel; a streamed request body
// holds what write() was given and the transport has not yet taken.
//
// Thread safety: belongs to the pool's loop.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "base/unique_function.h"
#include "http/message.h"
#include "io/timers.h"
#include "io/transport.h"

namespace tailward::net {

class ClientConnection;
class Pool;

// What an exchange tells: one head, any number of body pieces, then one end; or an error at any
// point, as the last call. Every call may destroy the exchange.
class ExchangeHandler {
 public:
  virtual ~ExchangeHandler() = default;
  // Interim (1xx) responses are not told.
  virtual void on_response_head(http::Response&& head) = 0;
  // The view is valid during the call only. After pause(), pieces of the bytes already read may
  // still come.
  virtual void on_body(std::span<const char> piece) = 0;
  // The connection is back in its pool (or closed) already: a new exchange may start from here.
  virtual void on_end() = 0;
  // kDisconnected: refused, reset, or closed before the end. kTimedOut: no connection within
  // connect_timeout. kOverloaded: the pool's limits. kInvalid: the response cannot be understood,
  // or the name does not resolve. `any_byte_received` says whether the server had begun to answer.
  virtual void on_error(Error error, bool any_byte_received) = 0;
};

struct ExchangeOptions {
  // Open a new connection even if an idle one is there, so that a hedge does not share the fate of
  // sockets which may all be dead.
  bool fresh_connection = false;
  // An extra request: it never waits in the queue and never takes the last free connection, so that
  // it cannot hold up an ordinary one. kOverloaded when it would.
  bool hedge = false;
  // Whether the request may be sent again when a reused connection turns out to be dead.
  enum class Resend {
    kByMethod,
    kAlways,
    kNever
  };  // kByMethod: idempotent methods, or Idempotency-Key
  Resend resend = Resend::kByMethod;
};

class Exchange {
 public:
  using WriteCallback = UniqueFunction<void(Result<void>)>;

  // REQUIRES: pool and handler outlive the exchange.
  Exchange(Pool& pool, ExchangeHandler& handler);
  // Cancels what is under way: the handler and the write callbacks hear nothing more.
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  // Sends `head` and, where one is given, the complete `body`. REQUIRES: not started before;
  // head.body is kLength with content_length == body->size() when there is a body, and kNone (or
  // kLength 0) when there is none.
  void start(const http::Request& head, std::shared_ptr<const std::string> body = nullptr,
             ExchangeOptions options = {});

  // Sends `head` and leaves the body to write() and finish_body(). REQUIRES: head.body is kLength
  // or kChunked.
  void start_streaming(const http::Request& head, ExchangeOptions options = {});
  // The next piece of the body. The bytes are copied. `done` (may be empty) runs when the transport
  // has taken them: wait for it before handing over much more. Pieces given in one turn leave in
  // one write. Not told when the exchange fails: on_error() is.
  void write(std::span<const char> piece, WriteCallback done = {});
  // Bytes of the body that the transport has not yet taken.
  [[nodiscard]] std::size_t buffered() const;
  void finish_body();

  // Stops and restarts the response's body; the server is held up by TCP's window. Idempotent.
  void pause();
  void resume();

  // Fresh clock readings; TimePoint{} until it happened.
  [[nodiscard]] TimePoint sent_at() const { return sent_at_; }  // first byte to the transport
  [[nodiscard]] TimePoint first_byte_at() const { return first_byte_at_; }  // of the response
  [[nodiscard]] bool any_byte_received() const { return first_byte_at_ != TimePoint{}; }
  // Whether the connection had served an earlier request.
  [[nodiscard]] bool reused_connection() const { return reused_; }
  // Whether it was sent again after a dead connection.
  [[nodiscard]] bool resent() const { return resent_; }
  // Ended, by on_end() or on_error().
  [[nodiscard]] bool done() const { return state_ == State::kDone; }

 private:
  friend class Pool;
  friend class ClientConnection;

  enum class State { kNew, kWaiting, kConnecting, kActive, kFailing, kDone };

  void begin(const http::Request& head, ExchangeOptions options);
  void fail_later(Error error);
  void end_with(Error error);
  void schedule_flush();

  Pool& pool_;
  ExchangeHandler* handler_;
  State state_ = State::kNew;
  ExchangeOptions options_;
  std::string method_;
  std::string wire_;                         // the encoded head
  std::shared_ptr<const std::string> body_;  // complete body, if any
  bool streaming_ = false;
  bool chunked_ = false;
  bool body_finished_ = true;
  bool resendable_ = false;
  bool resent_ = false;
  bool fresh_ = false;  // wants a new connection, by option or because it is sent again
  bool keep_alive_ = true;
  std::uint64_t left_to_write_ = 0;  // of a streamed body with kLength
  bool reused_ = false;
  bool paused_ = false;
  std::string pending_;  // framed body bytes not yet given to the transport
  std::vector<WriteCallback> pending_done_;
  std::shared_ptr<ClientConnection> connection_;
  std::unique_ptr<io::Connecting> connecting_;
  io::Timer timer_;  // connect timeout, or the event that reports a failure
  std::list<Exchange*>::iterator waiting_at_;
  TimePoint sent_at_{};
  TimePoint first_byte_at_{};
};

}  // namespace tailward::net
