// A proxy between clients that speak raw bytes and hosts in memory, for the tests of this folder.
//
// Thread safety: belongs to the test's one thread.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/client_testing.h"
#include "proxy/proxy.h"

namespace tailward::proxy {

// Faults on the way to the hosts only, and of the first connections only.
class HostFaults : public io::FaultInjector {
 public:
  io::ConnectionFaults on_connect(const io::HostPort& to, std::uint64_t) override {
    if (!to.host.starts_with("10.") || connections == 0) return {};
    --connections;
    return faults;
  }
  io::ConnectionFaults faults;
  int connections = 0;
};

class ProxyFixture : public testing::Test {
 protected:
  using Duration = tailward::Duration;

  void start(Options options = {}) {
    if (options.to.empty()) options.to = service.endpoints;
    options.admin = io::HostPort{"127.0.0.1", 9090};
    proxy = std::make_unique<Proxy>(network, timers, std::move(options));
    ASSERT_TRUE(proxy->listen().has_value());
  }
  // Hedges after 50 ms, as often as it likes.
  static Options hedging() {
    Options options;
    options.policy = hedge::parse_policy("fixed:50ms").value();
    options.budget = 1;
    return options;
  }
  static Options unhedged() {
    Options options;
    options.policy = {};
    return options;
  }

  std::unique_ptr<io::Stream> connect(const io::HostPort& to) {
    std::unique_ptr<io::Stream> made;
    const auto connecting = network.connect(to, [&](Result<std::unique_ptr<io::Stream>> stream) {
      if (stream) made = std::move(*stream);
    });
    settle();
    return made;
  }
  // A client's connection to the proxy; null when it is refused.
  std::unique_ptr<net::RawPeer> client() {
    std::unique_ptr<io::Stream> stream = connect({"127.0.0.1", 8080});
    return stream == nullptr ? nullptr : std::make_unique<net::RawPeer>(std::move(stream));
  }
  // Sends `bytes` on a connection of their own and returns what came back at once.
  std::string ask(std::string bytes) {
    const auto peer = client();
    peer->send(std::move(bytes));
    settle();
    return peer->received;
  }
  std::string admin(const std::string& path) {
    const auto stream = std::make_unique<net::RawPeer>(connect({"127.0.0.1", 9090}));
    stream->send("GET " + path + " HTTP/1.1\r\nHost: a\r\n\r\n");
    settle();
    return stream->received;
  }
  static std::string body_of(const std::string& answer) {
    const std::size_t end = answer.find("\r\n\r\n");
    return end == std::string::npos ? "" : answer.substr(end + 4);
  }

  void settle() { timers.advance_to(timers.now()); }
  void pass(Duration time) { timers.advance_to(timers.now() + time); }

  io::Timers timers;
  HostFaults faults;
  io::MemoryTransport network{timers, &faults};
  client::Service service{network, timers, 2};
  std::unique_ptr<Proxy> proxy;
};

// A host that answers every request with the same bytes, whatever they are.
class CannedHost {
 public:
  CannedHost(io::MemoryTransport& network, const io::HostPort& at) {
    listener_ = network
                    .listen(at,
                            [this](std::unique_ptr<io::Stream> stream) {
                              peers.push_back(std::make_unique<net::RawPeer>(std::move(stream)));
                            })
                    .value();
  }
  // To whoever has sent a whole head.
  void answer(const std::string& bytes, bool then_close = false) {
    for (const auto& peer : peers) {
      if (peer->stream == nullptr || peer->received.find("\r\n\r\n") == std::string::npos) continue;
      request = std::exchange(peer->received, {});
      peer->send(bytes);
      if (then_close) peer->stream->finish_writing();
    }
  }
  std::vector<std::unique_ptr<net::RawPeer>> peers;
  std::string request;  // the last

 private:
  std::unique_ptr<io::Listener> listener_;
};

inline constexpr const char* kGet = "GET / HTTP/1.1\r\nHost: shop\r\n\r\n";

}  // namespace tailward::proxy
