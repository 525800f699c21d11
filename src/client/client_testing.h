// Servers for the tests of the client and of the proxy: several hosts of one service, in memory,
// that say what they saw.
//
// Thread safety: belongs to the test's one thread.
#pragma once

#include <fmt/format.h>

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/client.h"
#include "net/http_server.h"
#include "net/http_testing.h"

namespace tailward::client {

// Which attempt reaches which host is drawn, so what a host does follows from the attempt's number.
class Service {
 public:
  struct Seen {
    int attempt;
    std::size_t host;
    http::Request head;
  };
  // What to do with a call; it is kept alive by the service.
  using Answer = std::function<void(const net::CallRef& call, int attempt)>;

  Service(io::Transport& network, io::Timers& timers, std::size_t hosts) {
    for (std::size_t i = 0; i < hosts; ++i) {
      const io::HostPort at{fmt::format("10.0.0.{}", i + 1), 80};
      endpoints.push_back(at);
      servers.push_back(std::make_unique<net::HttpServer>(
          network, timers, [this, i](net::CallRef call) { take(i, std::move(call)); }));
      static_cast<void>(servers.back()->listen(at).value());
    }
  }

  // The attempt numbers in the order of their arrival, as text: "0 1".
  [[nodiscard]] std::string attempts() const {
    std::string text;
    for (const Seen& one : seen) {
      if (!text.empty()) text += ' ';
      text += std::to_string(one.attempt);
    }
    return text;
  }
  void forget() {
    seen.clear();
    calls.clear();
  }

  Answer answer = [](const net::CallRef& call, int) { call->respond(200, "text/plain", "ok"); };
  std::vector<io::HostPort> endpoints;
  std::vector<std::unique_ptr<net::HttpServer>> servers;
  std::deque<Seen> seen;
  std::deque<net::CallRef> calls;
  std::size_t cancelled = 0;

 private:
  void take(std::size_t host, net::CallRef call) {
    const int attempt = attempt_number(call->request().fields);
    seen.push_back({attempt, host, call->request()});
    calls.push_back(call);
    call->on_cancel([this] { ++cancelled; });
    answer(call, attempt);
  }
};

// Does nothing: the attempt stays unanswered.
inline void ignore(const net::CallRef&, int) {}

// Unanswered at attempt 0, a short answer that names the attempt at all others.
inline void answer_hedges(const net::CallRef& call, int attempt) {
  if (attempt > 0) call->respond(200, "text/plain", fmt::format("from attempt {}", attempt));
}

class CallLog : public net::HandlerLog<CallHandler> {
 public:
  void on_error(Error what) override { failed(std::move(what)); }
};

// A text of `size` bytes in which no stretch can be mistaken for another.
inline std::string pattern(std::size_t size) {
  std::string text;
  text.reserve(size + 8);
  for (std::size_t i = 0; text.size() < size; ++i) text += fmt::format("{:x};", i);
  text.resize(size);
  return text;
}

}  // namespace tailward::client
