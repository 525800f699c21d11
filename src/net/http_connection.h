// One client connection of a Pool: what passes between an Exchange and its Stream. Used by Pool and
// Exchange only; a program uses those.
//
// A read is always under way, except while the exchange is paused, so that the server's closing is
// noticed at once, on idle connections too.
//
// Thread safety: belongs to the pool's loop. Shared ownership, so that a callback which destroys
// the exchange or the pool's hold does not pull the connection from under the parser that called
// it.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/time.h"
#include "http/codec.h"
#include "io/transport.h"
#include "net/http_exchange.h"

namespace tailward::net {

class ClientConnection : public std::enable_shared_from_this<ClientConnection>,
                         private http::Sink<http::Response> {
 public:
  ClientConnection(Pool& pool, std::unique_ptr<io::Stream> stream);
  ~ClientConnection() override;

  // Begins `exchange` here. REQUIRES: idle.
  void attach(Exchange& exchange);
  // Sends what the exchange has pending, unless a write is under way: then it follows that one.
  void flush();
  // Reads on after a pause.
  void resume();
  // Closes the stream; the exchange, if any, hears nothing more. The pool's books are the caller's
  // matter.
  void close();

  [[nodiscard]] std::size_t unsent() const { return out_.size(); }

 private:
  friend class Pool;

  // How long a response may still arrive after writing the request failed: a server may answer
  // early, 413 for instance, and close.
  static constexpr Duration kResponseGrace = std::chrono::milliseconds(20);

  void on_head(http::Response&& head) override;
  void on_body(std::span<const char> piece) override;
  void on_end() override;

  void read();
  void read_done(Result<std::size_t> got);
  void handle(Result<std::size_t> got);
  void received(std::size_t count);
  void written(const Result<void>& result);
  void lost(Error error);
  void finish_exchange(bool clean);

  Pool& pool_;
  std::unique_ptr<io::Stream> stream_;  // null once closed
  http::ResponseParser parser_;
  std::vector<char> buffer_;
  Exchange* exchange_ = nullptr;
  TimePoint idle_since_{};
  io::Timer grace_timer_;
  io::Timer resume_timer_;  // delivers what came during a pause
  std::optional<Result<std::size_t>> held_;
  std::string out_;  // head and streamed body bytes given to the stream
  std::shared_ptr<const std::string> out_body_;
  std::vector<Exchange::WriteCallback> out_done_;
  bool reading_ = false;
  bool parsing_ = false;  // what was read; a handler may call back meanwhile
  bool writing_ = false;
  bool write_failed_ = false;
  bool head_written_ = false;
  bool served_before_ = false;
  bool keep_alive_ = false;
  bool ended_ = false;
};

}  // namespace tailward::net
