// An HTTP/1.1 server over io::Transport.
//
//   net::HttpServer server(transport, loop.timers(), [](net::CallRef call) {
//     call->respond(200, "text/plain", "hello");
//   });
//   server.listen({"127.0.0.1", 8080});
//
// Requests of one connection are answered in order: the next one is parsed when the response before
// it has been written. While a handler works, the connection is read from, so that a client which
// closes or resets is noticed at once and the call's on_cancel() runs: work nobody waits for can
// stop. A client that only finishes sending (half-close) counts as gone, as it does for most
// servers. What arrives early (pipelined requests, a body nobody reads yet) is kept up to
// `early_bytes`; beyond that reading stops, and so does the noticing.
//
// Input that cannot be understood is answered (400, 413, 414, 431, 501, 505) and the connection
// closed; others go on undisturbed.
//
// Thread safety: belongs to one loop. A response worked out on another thread comes back through
// Loop::post() with a CallWeak, which is locked on the loop only.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "base/unique_function.h"
#include "http/codec.h"
#include "http/message.h"
#include "io/timers.h"
#include "io/transport.h"

namespace tailward::net {

class HttpServer;
class ServerConnection;

struct ServerOptions {
  std::size_t max_connections = 10'000;
  http::Limits limits = {};
  std::size_t read_buffer_bytes = 16 * 1024;  // one for each connection
  std::size_t early_bytes = 64 * 1024;        // unread input kept for each connection
  // Output that write() may pile up; beyond it the call is aborted.
  std::size_t buffered_bytes = 8 * 1024 * 1024;
  Duration header_timeout = std::chrono::seconds(10);  // from a head's first byte to its last
  // Between two pieces of a body that is waited for.
  Duration body_timeout = std::chrono::seconds(30);
  Duration write_timeout = std::chrono::seconds(60);  // for a client to take 256 KiB of a response
  // Between requests; must exceed the clients' own.
  Duration idle_timeout = std::chrono::seconds(75);
  Duration linger = std::chrono::seconds(
      1);  // for a client to take the response to input that was not read to its end
};

struct ServerCounters {
  // Since the start.
  std::uint64_t accepted = 0;
  std::uint64_t refused = 0;    // over max_connections
  std::uint64_t requests = 0;   // whole heads given to the handler
  std::uint64_t answered = 0;   // responses written whole
  std::uint64_t cancelled = 0;  // calls whose client went away first
  std::uint64_t aborted = 0;    // calls that the handler broke off, or dropped without a response
  std::uint64_t malformed = 0;  // input answered with an error
  std::uint64_t truncated = 0;  // connections that ended within a head
  std::uint64_t timed_out = 0;  // heads, bodies and readers that took too long
  std::uint64_t idle_closed = 0;
  std::uint64_t early_limit_hits = 0;
  std::uint64_t buffered_limit_hits = 0;
  // Now.
  std::size_t connections = 0;
  std::size_t in_flight = 0;  // calls with no whole response yet
};

// Who receives a request body piece by piece. The views are valid during the call only.
class BodyHandler {
 public:
  virtual ~BodyHandler() = default;
  virtual void on_request_body(std::span<const char> piece) = 0;
  virtual void on_request_end() = 0;
};

// One request and the response to it. Callbacks never run inside a call of these functions, unless
// stated. After the client has gone (on_cancel), and after the response is complete, every function
// does nothing.
class ServerCall : public std::enable_shared_from_this<ServerCall> {
 public:
  using WriteCallback = UniqueFunction<void(Result<void>)>;

  // Made by the server only.
  ServerCall(ServerConnection& connection, http::Request&& request, TimePoint arrived_at);
  ~ServerCall();

  // The head. A handler may move it away.
  [[nodiscard]] http::Request& request() { return request_; }
  // When its first byte was read: a fresh clock reading.
  [[nodiscard]] TimePoint arrived_at() const { return arrived_at_; }
  [[nodiscard]] io::HostPort peer() const;
  // False once the client has gone or the response is complete.
  [[nodiscard]] bool open() const { return connection_ != nullptr; }

  // The body as a whole. kOverloaded when it is longer than `limit`: answer 413, or anything else;
  // the connection then closes after the response. Answers Expect: 100-continue.
  using BodyCallback = UniqueFunction<void(Result<std::string>)>;
  void read_body(std::size_t limit, BodyCallback done);
  // The body piece by piece. `handler` must live until on_request_end(), on_cancel() or
  // stop_body(). Where the response begins before the body has ended, call this before
  // respond_head(): a response to a request whose body nobody reads is the connection's last.
  void stream_body(BodyHandler& handler);
  void stop_body();
  // Holds up the client through TCP's window. Pieces of the bytes already read are kept, not told.
  void pause_body();
  void resume_body();

  // A whole response in one write. The framing and keep-alive are set here; the response to a HEAD
  // request and 204 and 304 go without the body.
  void respond(http::Response head, std::string body = {});
  void respond(int status, std::string_view content_type, std::string body);

  // A response in pieces. head.body is kLength (with content_length), kChunked or kNone; a client
  // of HTTP/1.0 gets kUntilClose for kChunked. The head leaves with the first piece of the same
  // turn, or alone.
  void respond_head(http::Response head);
  // Copies `piece`. `done` (may be empty) runs when the transport has taken it: wait for it before
  // writing much more. REQUIRES: respond_head() before. Pieces given in one turn leave in one
  // write.
  void write(std::span<const char> piece, WriteCallback done = {});
  [[nodiscard]] std::size_t buffered() const;
  // REQUIRES: with kLength, that all of it was written (checked: a short response aborts).
  void finish();
  // Breaks the response off so that the client can tell: closes the connection, with a 500 if
  // nothing was sent.
  void abort();
  [[nodiscard]] bool head_sent() const { return head_given_; }

  // Runs once if the client goes away before the response is complete.
  void on_cancel(UniqueFunction<void()> callback) { cancel_ = std::move(callback); }

 private:
  friend class ServerConnection;

  void write_framed(std::span<const char> piece);

  ServerConnection* connection_;  // null once the call is over
  http::Request request_;
  bool to_head_;  // kept apart, since a handler may move the request away
  int minor_version_;
  TimePoint arrived_at_;
  UniqueFunction<void()> cancel_;

  // Request body.
  std::string pending_body_;  // parsed, not yet told
  bool body_ended_ = false;   // all of it has been parsed
  bool body_begun_ = false;
  bool body_paused_ = false;
  BodyHandler* body_handler_ = nullptr;
  BodyCallback whole_body_;
  std::size_t whole_limit_ = 0;

  // Response.
  bool head_given_ = false;
  bool bodiless_ = false;
  bool chunked_ = false;
  bool sized_ = false;
  std::uint64_t left_to_write_ = 0;
};

using CallRef = std::shared_ptr<ServerCall>;
using CallWeak = std::weak_ptr<ServerCall>;

class HttpServer {
 public:
  // Called for every request head, as soon as it is whole. Keep the CallRef until the response is
  // complete: a call that every holder drops unanswered is aborted with a 500.
  using Handler = std::function<void(CallRef call)>;

  // REQUIRES: transport and timers outlive the server.
  HttpServer(io::Transport& transport, io::Timers& timers, Handler handler,
             ServerOptions options = {});
  // Closes every connection; calls under way are cancelled, their on_cancel() is not run.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // May be called for several addresses. Returns the address really bound.
  Result<io::HostPort> listen(const io::HostPort& at);

  // Serves a connection that was accepted elsewhere.
  void serve(std::unique_ptr<io::Stream> stream);

  // Stops accepting, closes idle connections, lets requests under way finish with Connection:
  // close, and calls `empty` when the last connection is gone.
  void drain(UniqueFunction<void()> empty);
  [[nodiscard]] bool draining() const { return draining_; }

  [[nodiscard]] const ServerCounters& counters() const { return counters_; }
  [[nodiscard]] const ServerOptions& options() const { return options_; }

 private:
  friend class ServerConnection;
  friend class ServerCall;

  void connection_gone(const ServerConnection& connection);
  void report_if_empty();

  io::Transport& transport_;
  io::Timers& timers_;
  Handler handler_;
  ServerOptions options_;
  ServerCounters counters_;
  std::vector<std::unique_ptr<io::Listener>> listeners_;
  std::list<std::shared_ptr<ServerConnection>> connections_;
  bool draining_ = false;
  UniqueFunction<void()> empty_;
  io::Timer empty_timer_;
};

}  // namespace tailward::net
