// `tailward proxy`: takes requests in, sends each through the hedged client, passes the answer
// back.
//
// An answer is the host's, byte for byte, but for framing and hop-by-hop fields; a request is the
// client's, plus x-tailward-attempt. What the proxy answers itself are 502 (no host gave an
// answer), 503 (limits of its own), 504 (the deadline) and 501 (CONNECT, Upgrade), with one line of
// text.
//
// Thread safety: belongs to the loop of its transport and timers.
#pragma once

#include <memory>
#include <optional>

#include "client/client.h"
#include "io/timers.h"
#include "io/transport.h"
#include "net/http_server.h"
#include "proxy/options.h"
#include "proxy/proxied_request.h"

namespace tailward::proxy {

class Proxy {
 public:
  // While it drains: how long a client that keeps its connection may still send a request, which is
  // answered with Connection: close. Closing at once would cross with such requests.
  static constexpr Duration kDrainGrace = std::chrono::seconds(1);

  // REQUIRES: transport and timers outlive the proxy; `options.to` is not empty.
  Proxy(io::Transport& transport, io::Timers& timers, Options options);
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  // Starts to listen, on the admin address too. kInvalid, kDenied: an address cannot be had.
  Result<void> listen();
  // The address really bound. REQUIRES: listen() succeeded.
  [[nodiscard]] io::HostPort local() const { return listener_->local(); }
  [[nodiscard]] const std::optional<io::HostPort>& admin_local() const { return admin_local_; }

  // Stops accepting, finishes what is in flight, and calls `done` when the last connection is gone
  // or options().drain_timeout is over, with the number of requests that are cut. The admin address
  // answers until the proxy is destroyed.
  void drain(UniqueFunction<void(std::size_t cut)> done);
  [[nodiscard]] bool draining() const { return requests_.closing; }

  [[nodiscard]] const Options& options() const { return options_; }
  [[nodiscard]] client::Client& client() { return client_; }
  [[nodiscard]] const net::HttpServer& server() const { return server_; }
  [[nodiscard]] const Figures& figures() const { return requests_.figures; }
  [[nodiscard]] std::size_t in_flight() const { return requests_.alive.size(); }
  [[nodiscard]] TimePoint started_at() const { return started_at_; }
  [[nodiscard]] io::Timers& timers() { return timers_; }

 private:
  void drain_step();
  void drained(std::size_t cut);

  io::Transport& transport_;
  io::Timers& timers_;
  Options options_;
  TimePoint started_at_;
  client::Client client_;
  ProxiedRequests requests_;
  net::HttpServer server_;
  net::HttpServer admin_;
  std::unique_ptr<io::Listener> listener_;
  std::optional<io::HostPort> admin_local_;
  TimePoint grace_until_{};
  io::Timer drain_step_;
  io::Timer drain_timeout_;
  UniqueFunction<void(std::size_t)> drained_;
};

}  // namespace tailward::proxy
