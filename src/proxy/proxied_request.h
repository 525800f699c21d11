// One request on its way through the proxy: a ServerCall on the client's side, a hedged
// client::Call on the hosts' side, and the bodies between them.
//
// Memory is bounded whatever the sizes: a request body up to Options::body_limit is kept whole
// where its request may be hedged; any other, and every response body, passes in pieces, and its
// sender is held up while more than Options::buffered_max bytes wait for the reader.
//
// Thread safety: belongs to the proxy's loop. Ownership: ProxiedRequests keeps a request until its
// response is complete or its client has gone; destroying it cancels every attempt.
#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <string>

#include "client/client.h"
#include "net/http_server.h"
#include "proxy/options.h"
#include "stats/histogram.h"

namespace tailward::proxy {

// What the proxy counts itself; the engine counts the rest. Since the start.
struct Figures {
  // From the first byte of a request to the beginning of its answer.
  stats::Histogram durations;
  // Begun, by the first digit of their status, 2 to 5; at kOther those with any other.
  std::array<std::uint64_t, 6> answers{};
  static constexpr std::size_t kOther = 0;
  // Answers of our own among them.
  std::uint64_t bad_gateway = 0;
  std::uint64_t timed_out = 0;
  std::uint64_t overloaded = 0;
  std::uint64_t unsupported = 0;
  std::uint64_t broken_off = 0;  // a host broke off within its answer, so the client's ends as well
  std::uint64_t client_gone = 0;  // before the answer was complete
  std::uint64_t held_up = 0;      // times that a sender had to wait for a slow reader
};

class ProxiedRequest;

// What all requests share. REQUIRES: outlives them.
struct ProxiedRequests {
  ProxiedRequests(client::Client& to, const Options& with) : client(to), options(with) {}
  // Takes the request in.
  void begin(net::CallRef call);

  client::Client& client;
  const Options& options;
  Figures figures;
  bool closing = false;  // every answer from now on is the last of its connection
  std::list<std::shared_ptr<ProxiedRequest>> alive;
};

class ProxiedRequest final : public std::enable_shared_from_this<ProxiedRequest>,
                             private client::CallHandler,
                             private net::BodyHandler {
 public:
  ProxiedRequest(ProxiedRequests& requests, net::CallRef call);

 private:
  friend struct ProxiedRequests;

  void start();
  // client::CallHandler
  void on_response_head(http::Response&& head) override;
  void on_body(std::span<const char> piece) override;
  void on_end() override;
  void on_error(Error error) override;
  // net::BodyHandler
  void on_request_body(std::span<const char> piece) override;
  void on_request_end() override;

  void collect(std::span<const char> piece);
  void start_streaming();
  void pass_on(std::span<const char> piece);
  void refuse(int status, std::string_view reason);
  void count_answer(int status);
  [[nodiscard]] client::CallOptions call_options() const;
  // The last thing a function does: destroys this request.
  void end();

  ProxiedRequests& requests_;
  net::CallRef call_;
  client::Call upstream_;
  http::Request head_;                      // until it is sent
  std::shared_ptr<std::string> collected_;  // the body, while it is being kept
  bool body_ended_ = false;
  std::list<std::shared_ptr<ProxiedRequest>>::iterator at_;
};

}  // namespace tailward::proxy
