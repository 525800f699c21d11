// A hedged HTTP client: one route of the engine (hedge/engine/route.h) over one connection pool for
// each host.
//
//   client::Client client(transport, timers, config, {{"10.0.0.1", 80}, {"10.0.0.2", 80}});
//   client::Call call(client, handler);
//   call.start(request);              // events arrive at the handler, never inside a call
//
// Every attempt carries x-tailward-attempt: N (0: the primary), so that servers, logs and traces
// can tell an original from a hedge. A request that arrives with N > 0 is not hedged again.
//
// Thread safety: belongs to the loop of its transport and timers.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hedge/engine/race.h"
#include "http/message.h"
#include "io/timers.h"
#include "io/transport.h"
#include "net/http_pool.h"

namespace tailward::client {

inline constexpr std::string_view kAttemptField = "x-tailward-attempt";

struct ClientOptions {
  net::PoolOptions pool;  // of each host
  // What an answer of that status is worth. Unset: all but 429, 500, 502, 503 and 504 are good.
  std::function<hedge::Outcome::Class(int status)> classify;
};

class Client {
 public:
  // REQUIRES: transport and timers outlive the client, and the client its calls. `hosts` is
  // not empty and may name one endpoint several times: each is a host of its own with its own
  // connections.
  Client(io::Transport& transport, io::Timers& timers, hedge::RouteConfig config,
         const std::vector<io::HostPort>& hosts, ClientOptions options = {});
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  [[nodiscard]] hedge::Route& route() { return route_; }
  [[nodiscard]] const hedge::Route& route() const { return route_; }
  [[nodiscard]] net::Pool& pool(hedge::HostIndex host) { return *pools_[host]; }
  [[nodiscard]] const net::Pool& pool(hedge::HostIndex host) const { return *pools_[host]; }
  [[nodiscard]] std::size_t hosts() const { return pools_.size(); }
  [[nodiscard]] io::Timers& timers() { return timers_; }
  [[nodiscard]] hedge::Verdict verdict() { return route_.verdict(timers_.now()); }

 private:
  friend class Call;

  void tick();
  [[nodiscard]] hedge::Outcome outcome_of(const http::Response& head) const;

  io::Timers& timers_;
  hedge::Route route_;
  ClientOptions options_;
  std::vector<std::unique_ptr<net::Pool>> pools_;
  io::Timer ticker_;
};

// What a call tells: one head, any number of body pieces, one end; or an error at any point, as the
// last. Every one of them may destroy the call.
//
// The head comes when the race is decided. Where the request could be hedged that is at the first
// body byte of a good answer: a server that sends its head and then stalls has not answered. Where
// it could not, nothing is gained by waiting, and the head comes at once.
class CallHandler {
 public:
  virtual ~CallHandler() = default;
  virtual void on_response_head(http::Response&& head) = 0;
  virtual void on_body(std::span<const char> piece) = 0;
  virtual void on_end() = 0;
  // kTimedOut: the deadline, and nothing else. kOverloaded: limits of our own. kDisconnected and
  // kInvalid: the hosts could not be reached, broke off, or cannot be understood; the message names
  // the host.
  virtual void on_error(Error error) = 0;
};

struct CallOptions {
  TimePoint deadline = kNever;  // of the answer's beginning; its body may last longer
  // Unset: GET, HEAD, OPTIONS and TRACE are idempotent, others when they carry Idempotency-Key.
  std::optional<bool> idempotent = {};
};

// One request: a race of attempts. Destroying it takes the request back: every attempt is
// cancelled.
class Call {
 public:
  Call(Client& client, CallHandler& handler);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // With a complete body, which can be sent more than once. The framing follows from it.
  void start(http::Request head, std::shared_ptr<const std::string> body = nullptr,
             CallOptions options = {});
  // With a body that passes through once: never hedged. `head` says how it is framed.
  void start_streaming(http::Request head, CallOptions options = {});
  // As net::Exchange's. REQUIRES: start_streaming(). Nothing happens once the request has failed.
  void write(std::span<const char> piece, net::Exchange::WriteCallback done = {});
  void finish_body();
  // Bytes of a streamed body that the transport has not yet taken.
  [[nodiscard]] std::size_t buffered() const;

  // Holds up the answer through TCP's window.
  void pause();
  void resume();

  [[nodiscard]] int attempts() const { return race_.attempts(); }
  // Which attempt the answer comes from; kNoAttempt before there is one.
  [[nodiscard]] hedge::AttemptIndex answered_by() const { return winner_; }

 private:
  // One attempt: hears its exchange and keeps what came before the race was decided.
  class Attempt final : public net::ExchangeHandler {
   public:
    Attempt(Call& call, hedge::AttemptIndex index, net::Pool& pool);
    void on_response_head(http::Response&& head) override;
    void on_body(std::span<const char> piece) override;
    void on_end() override;
    void on_error(Error error, bool any_byte_received) override;

    net::Exchange exchange;
    std::optional<http::Response> head;
    std::span<const char> first;  // the piece that decided the race, while it is handed over
    std::string early;  // body bytes of an answer that is held back; at most one read's worth
    bool ended = false;
    std::optional<Error> error;

   private:
    [[nodiscard]] bool won() const { return call_.winner_ == index_; }
    [[nodiscard]] Error described(Error failure) const;
    Call& call_;
    net::Pool& pool_;
    hedge::AttemptIndex index_;
  };

  void begin(http::Request&& head, bool replayable, const CallOptions& options);
  void perform(const hedge::Actions& actions);
  void start_attempt(const hedge::Action& action);
  void outcome(hedge::AttemptIndex attempt, const hedge::Outcome& outcome);
  void finished(const hedge::Action& action);
  void hand_over(Attempt& attempt);

  Client& client_;
  CallHandler& handler_;
  hedge::Race race_;
  http::Request head_;
  std::shared_ptr<const std::string> body_;
  int first_number_ = 0;  // the primary's attempt number: the one the request arrived with
  bool streaming_ = false;
  bool idempotent_ = false;
  net::ExchangeOptions::Resend resend_ = net::ExchangeOptions::Resend::kByMethod;
  bool may_hedge_ = false;
  bool has_host_field_ = false;
  bool paused_ = false;
  hedge::AttemptIndex winner_ = hedge::kNoAttempt;
  std::array<std::unique_ptr<Attempt>, hedge::kAttemptsMax> attempts_;
  std::optional<Error> last_error_;
  io::Timer timer_;
  // Set by the destructor, so that a function that has called the handler knows whether it is still
  // there.
  bool* destroyed_ = nullptr;
};

// A server as users name it: as io::parse_host_port() reads it, ":80" being 127.0.0.1:80. Port 0 is
// kInvalid.
Result<io::HostPort> parse_host(std::string_view text);

// The attempt number that a message carries; 0 where it carries none or nonsense.
int attempt_number(const http::Fields& fields);

}  // namespace tailward::client
