// What the HTTP tests of this folder share: a network in memory, peers that speak raw bytes, and
// handlers that write down what they hear.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/memory_transport.h"
#include "net/http_exchange.h"
#include "net/http_pool.h"
#include "net/http_server.h"

namespace tailward::net {

// The far end of a connection, driven by hand. It reads all that comes.
class RawPeer {
 public:
  explicit RawPeer(std::unique_ptr<io::Stream> from) : stream(std::move(from)) { read(); }
  RawPeer(const RawPeer&) = delete;
  RawPeer& operator=(const RawPeer&) = delete;

  void send(std::string text) {
    queued_ += text;
    if (writing_.empty()) write();
  }
  void close() { stream.reset(); }

  std::unique_ptr<io::Stream> stream;
  std::string received;
  bool ended = false;
  bool broken = false;

 private:
  void read() {
    stream->read(buffer_, [this](Result<std::size_t> got) {
      broken = !got;
      ended = !got || *got == 0;
      if (ended) return;
      received.append(buffer_, 0, *got);
      read();
    });
  }
  void write() {
    writing_.swap(queued_);
    stream->write(writing_, [this](Result<void> result) {
      writing_.clear();
      if (result && !queued_.empty()) write();
    });
  }

  std::string buffer_ = std::string(4096, '\0');
  std::string queued_;
  std::string writing_;
};

// Writes a handler's events down: head:200, end, error:disconnected. The body is gathered apart.
// The hook runs last in each event and may destroy who reports it.
template <class Handler>
class HandlerLog : public Handler {
 public:
  void on_response_head(http::Response&& head) override {
    events.push_back("head:" + std::to_string(head.status));
    response = std::move(head);
    if (hook) hook("head");
  }
  void on_body(std::span<const char> piece) override {
    body.append(piece.data(), piece.size());
    if (hook) hook("body");
  }
  void on_end() override {
    events.push_back("end");
    if (hook) hook("end");
  }

  std::vector<std::string> events;
  std::string body;
  http::Response response;
  Error error;
  std::function<void(std::string_view)> hook;

 protected:
  // `detail` ends the event's text.
  void failed(Error what, std::string_view detail = "") {
    events.push_back("error:" + std::string(to_string(what.kind)).append(detail));
    error = std::move(what);
    if (hook) hook("error");
  }
};

// error:disconnected:1 when a byte of the response had come, else :0.
class ExchangeLog : public HandlerLog<ExchangeHandler> {
 public:
  void on_error(Error what, bool any_byte_received) override {
    failed(std::move(what), any_byte_received ? ":1" : ":0");
  }
};

using Events = std::vector<std::string>;

inline http::Request get(std::string target = "/", std::string method = "GET") {
  http::Request request;
  request.method = std::move(method);
  request.target = std::move(target);
  request.fields.add("Host", "test");
  return request;
}

inline http::Request post(std::size_t size, std::string target = "/") {
  http::Request request = get(std::move(target), "POST");
  request.body = http::BodyKind::kLength;
  request.content_length = size;
  return request;
}

struct MemoryNet {
  io::Timers timers;
  io::FixedFaults faults;
  io::MemoryTransport network{timers, &faults};

  void settle() { timers.advance_to(timers.now()); }
  void pass(Duration time) { timers.advance_to(timers.now() + time); }
};

}  // namespace tailward::net
