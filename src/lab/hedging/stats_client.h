// Talks to an experiment's server beside the load: reads its statistics and switches its faults
// (faults/work_server.h), one request at a time, on a connection of its own.
//
// Thread safety: belongs to the loop of its transport and timers. Destroying it cancels the request
// in flight.
#pragma once

#include <memory>
#include <string>

#include "base/unique_function.h"
#include "net/http_exchange.h"
#include "net/http_pool.h"

namespace tailward::lab {

// A GET request for that target.
http::Request get(std::string target);

class StatsClient : public net::ExchangeHandler {
 public:
  using Done = UniqueFunction<void(bool ok)>;

  StatsClient(io::Transport& transport, io::Timers& timers, const io::HostPort& server)
      : pool_(transport, timers, server) {}

  // Runs `done` when the response is complete, or has failed. `ok`: its status was 200. A request
  // already in flight is cancelled, as by stop().
  void request(std::string target, Done done);
  void stop() { exchange_.reset(); }
  // Of the last response.
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
