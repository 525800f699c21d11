// Asks an experiment's server one thing at a time, on a connection of its own.
//
// Thread safety: belongs to the loop of its transport and timers. Destroying it takes the question
// back.
#pragma once

#include <memory>
#include <string>

#include "base/unique_function.h"
#include "net/http_exchange.h"
#include "net/http_pool.h"

namespace tailward::lab {

// GET of that target, from localhost.
http::Request get(std::string target);

class Asker : public net::ExchangeHandler {
 public:
  using Done = UniqueFunction<void(bool ok)>;

  Asker(io::Transport& transport, io::Timers& timers, const io::HostPort& server)
      : pool_(transport, timers, server) {}

  // Runs `done` when the answer is there; `ok`: its status was 200. One that is under way is taken
  // back, as by stop().
  void ask(std::string target, Done done);
  void stop() { exchange_.reset(); }
  // Of the last answer.
  [[nodiscard]] const std::string& body() const { return body_; }

  void on_response_head(http::Response&& head) override { status_ = head.status; }
  void on_body(std::span<const char> piece) override { body_.append(piece.data(), piece.size()); }
  void on_end() override;
  void on_error(Error error, bool any_byte_received) override;

 private:
  net::Pool pool_;
  std::unique_ptr<net::Exchange> exchange_;
  std::string body_;
  int status_ = 0;
  Done done_;
};

}  // namespace tailward::lab
