// One connection of an HttpServer: reading, the order of requests, writing, timeouts. Used by
// HttpServer and ServerCall only.
//
// A connection holds at most one call. Its life: idle → head → call (with its body) → response
// under way → idle. The answer is the connection's once it is complete, so that a call ends with
// its last word.
//
// Thread safety: belongs to the server's loop. Shared ownership, so that a handler which closes it
// from within its own callback does not pull it from under the parser.
#pragma once

#include <list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/time.h"
#include "http/codec.h"
#include "io/timers.h"
#include "io/transport.h"
#include "net/http_server.h"

namespace tailward::net {

class ServerConnection : public std::enable_shared_from_this<ServerConnection>,
                         private http::Sink<http::Request> {
 public:
  using WriteCallback = ServerCall::WriteCallback;

  ServerConnection(HttpServer& server, std::unique_ptr<io::Stream> stream);
  ~ServerConnection() override;

  void begin();
  // For drain(): closes if nothing is under way, else after the present response.
  void drain();
  // Closes at once; a call under way hears of it if `tell`.
  void close(bool tell);

  // For ServerCall.
  [[nodiscard]] io::HostPort peer() const { return stream_->peer(); }
  [[nodiscard]] HttpServer& server() { return server_; }
  void body_wanted();
  void response_begins(http::Response& head, const ServerCall& call);
  // The whole response in one write.
  void send_whole(const http::Response& head, std::string body);
  [[nodiscard]] std::string& output() { return pending_; }
  void output_added(WriteCallback done);
  [[nodiscard]] std::size_t unsent() const;
  void response_complete();
  void abort(ServerCall& call);

 private:
  friend class HttpServer;

  static constexpr std::size_t kWriteSlice = 256 * 1024;

  enum class ResponseState { kNone, kUnderWay, kComplete };

  void on_head(http::Request&& head) override;
  void on_body(std::span<const char> piece) override;
  void on_end() override;

  // What a call leaves behind when it ends. Its callbacks may own the call itself, or what comes
  // back here when destroyed: they go when the caller is done.
  struct Ended {
    std::shared_ptr<ServerCall> call;
    ServerCall::BodyCallback whole_body;
    UniqueFunction<void()> cancel;
  };
  Ended end_call();

  [[nodiscard]] std::span<const char> input() const;
  void drop_input();

  // Does whatever can be done now: parses, dispatches, tells bodies, goes on to the next request.
  void advance();
  void advance_soon();
  bool step();
  void dispatch();
  bool tell_body();
  bool next_request();
  [[nodiscard]] bool may_parse() const;
  void feed();
  void malformed();
  void respond_with_error(int status);

  void read();
  void read_done(Result<std::size_t> got);
  void received(std::span<const char> bytes);
  void peer_finished();

  void flush();
  void flush_soon();
  void write_slice();
  void written(const Result<void>& result);
  void answered();
  void start_linger();

  void update_deadline();
  void set_deadline(TimePoint at);
  void deadline_passed();

  HttpServer& server_;
  std::list<std::shared_ptr<ServerConnection>>::iterator at_;  // in the server's list
  std::unique_ptr<io::Stream> stream_;                         // null once closed
  http::RequestParser parser_;

  std::vector<char> buffer_;
  std::span<const char> fresh_;  // in buffer_, not parsed; only while it is being looked at
  std::string early_;            // read before, not parsed
  std::size_t early_at_ = 0;
  bool reading_ = false;
  bool finished_ = false;  // the peer will send nothing more

  ServerCall* call_ = nullptr;
  std::shared_ptr<ServerCall> undispatched_;
  ResponseState response_ = ResponseState::kNone;
  bool keep_alive_ = true;
  bool expects_continue_ = false;
  bool lingering_ = false;
  bool advancing_ = false;

  std::string out_;  // being written
  std::string out_body_;
  std::size_t out_at_ = 0;  // how much of both has been given to the stream
  TimePoint write_began_at_{};
  std::vector<WriteCallback> out_done_;
  std::string pending_;  // to follow
  std::vector<WriteCallback> pending_done_;
  bool writing_ = false;
  io::Timer flush_timer_;
  io::Timer advance_timer_;

  TimePoint first_byte_at_{};
  TimePoint progress_at_{};  // when the present wait began
  TimePoint deadline_ = kNever;
  TimePoint alarm_at_ = kNever;
  io::Timer alarm_;
};

}  // namespace tailward::net
