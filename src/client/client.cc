#include "client/client.h"

#include <fmt/format.h>

#include <charconv>

#include "base/check.h"

namespace tailward::client {
namespace {

using hedge::Action;
using hedge::Outcome;
using hedge::Pushback;

bool good_status(int status) {
  return status != 429 && status != 500 && status != 502 && status != 503 && status != 504;
}

// A count of `unit` in a field; what is negative or no number asks for no further attempt.
template <class Unit>
Pushback parse_pushback(std::string_view text) {
  std::uint32_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc{} || end != text.data() + text.size()) return {Pushback::Kind::kNever, {}};
  return {Pushback::Kind::kAfter, Unit(count)};
}

// gRPC's field (proposal A6), or Retry-After (RFC 9110 §10.2.3) in seconds. A date there asks for
// no further attempt: it would need the wall clock, and to guess it would be to disobey.
Pushback pushback_of(const http::Fields& fields) {
  if (const auto text = fields.find("grpc-retry-pushback-ms")) {
    return parse_pushback<std::chrono::milliseconds>(*text);
  }
  if (const auto text = fields.find("retry-after")) {
    return parse_pushback<std::chrono::seconds>(*text);
  }
  return {};
}

bool has_body(const http::Response& head) {
  return head.body == http::BodyKind::kChunked || head.body == http::BodyKind::kUntilClose ||
         (head.body == http::BodyKind::kLength && head.content_length > 0);
}

}  // namespace

Result<io::HostPort> parse_host(std::string_view text) {
  Result<io::HostPort> host = io::parse_host_port(text);
  if (!host) return host;
  if (host->host.empty()) host->host = "127.0.0.1";
  if (host->port == 0) {
    return fail(ErrorKind::kInvalid,
                fmt::format("\"{}\": port 0 cannot be connected to", io::to_string(*host)),
                "name the port that the server listens on");
  }
  return host;
}

int attempt_number(const http::Fields& fields) {
  const std::optional<std::string_view> text = fields.find(kAttemptField);
  if (!text) return 0;
  int number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  return error == std::errc{} && end == text->data() + text->size() && number > 0 ? number : 0;
}

Client::Client(io::Transport& transport, io::Timers& timers, hedge::RouteConfig config,
               const std::vector<io::HostPort>& hosts, ClientOptions options)
    : timers_(timers), route_(std::move(config)), options_(std::move(options)) {
  TAILWARD_CHECK(!hosts.empty());
  for (const io::HostPort& host : hosts) {
    const Result<hedge::HostIndex> index = route_.add_host(io::to_string(host));
    TAILWARD_CHECK(index.has_value());
    pools_.push_back(std::make_unique<net::Pool>(transport, timers, host, options_.pool));
  }
  tick();
}

void Client::tick() {
  route_.tick(timers_.now());
  ticker_ = timers_.after(route_.config().tick, [this] { tick(); });
}

Outcome Client::outcome_of(const http::Response& head) const {
  Outcome outcome;
  if (options_.classify) {
    outcome.result = options_.classify(head.status);
  } else if (!good_status(head.status)) {
    outcome.result = Outcome::Class::kBad;
  }
  if (outcome.result != Outcome::Class::kGood) {
    outcome.overloaded = head.status == 429;
    outcome.pushback = pushback_of(head.fields);
  }
  return outcome;
}

Call::Call(Client& client, CallHandler& handler)
    : client_(client), handler_(handler), race_(client.route_) {}

Call::~Call() {
  if (destroyed_ != nullptr) *destroyed_ = true;
  // The caller has gone: nothing of the attempts is told to anybody.
  static_cast<void>(race_.on_caller_gone(client_.timers_.precise_now()));
}

void Call::start(http::Request head, std::shared_ptr<const std::string> body, CallOptions options) {
  body_ = std::move(body);
  if (body_ != nullptr) {
    head.body = http::BodyKind::kLength;
    head.content_length = body_->size();
  }
  begin(std::move(head), true, options);
}

void Call::start_streaming(http::Request head, CallOptions options) {
  streaming_ = true;
  begin(std::move(head), false, options);
}

void Call::begin(http::Request&& head, bool replayable, const CallOptions& options) {
  head_ = std::move(head);
  head_.keep_alive = true;
  first_number_ = attempt_number(head_.fields);
  has_host_field_ = head_.fields.find("host").has_value();
  hedge::RequestInfo info;
  idempotent_ = options.idempotent.value_or(http::is_safe(head_.method) ||
                                            head_.fields.find("idempotency-key").has_value());
  info.idempotent = idempotent_;
  // Told that it is not idempotent, it is not sent again even where its method would allow it.
  resend_ = idempotent_                      ? net::ExchangeOptions::Resend::kAlways
            : options.idempotent.has_value() ? net::ExchangeOptions::Resend::kNever
                                             : net::ExchangeOptions::Resend::kByMethod;
  info.replayable = replayable;
  info.is_hedge = first_number_ > 0;
  info.deadline = options.deadline;
  may_hedge_ = client_.route_.config().policy.kind != hedge::Policy::Kind::kOff && idempotent_ &&
               replayable && !info.is_hedge && client_.hosts() > 1;
  // There is a host, so that nothing is told inside this call.
  perform(race_.start(info, client_.timers_.precise_now()));
}

void Call::perform(const hedge::Actions& actions) {
  for (const Action& action : actions) {
    switch (action.kind) {
      case Action::Kind::kStart:
        start_attempt(action);
        break;
      case Action::Kind::kCancel:
        attempts_[action.attempt].reset();
        break;
      case Action::Kind::kArm:
        timer_ = action.at == kNever ? io::Timer() : client_.timers_.at(action.at, [this] {
          perform(race_.on_timer(client_.timers_.precise_now()));
        });
        break;
      case Action::Kind::kFinish:
        finished(action);
        return;  // this call may be gone
    }
  }
}

void Call::start_attempt(const Action& action) {
  net::Pool& pool = *client_.pools_[action.host];
  // The attempts leave one after the other, so one head serves them all.
  const fmt::format_int number(first_number_ + action.attempt);
  head_.fields.set(kAttemptField, {number.data(), number.size()});
  if (!has_host_field_) head_.fields.set("host", io::to_string(pool.endpoint()));
  auto& attempt = attempts_[action.attempt];
  attempt = std::make_unique<Attempt>(*this, action.attempt, pool);
  net::ExchangeOptions options;
  options.hedge = action.attempt > 0;
  options.resend = resend_;
  if (streaming_) {
    attempt->exchange.start_streaming(head_, options);
  } else {
    attempt->exchange.start(head_, body_, options);
  }
}

void Call::outcome(hedge::AttemptIndex attempt, const Outcome& outcome) {
  perform(race_.on_outcome(attempt, outcome, client_.timers_.precise_now()));
}

void Call::finished(const Action& action) {
  timer_.cancel();
  if (action.ending == hedge::Ending::kCallerGone) return;
  if (action.ending == hedge::Ending::kTimedOut && action.attempt == hedge::kNoAttempt) {
    handler_.on_error({ErrorKind::kTimedOut, "no answer before the deadline", {}});
    return;
  }
  Attempt* attempt =
      action.attempt == hedge::kNoAttempt ? nullptr : attempts_[action.attempt].get();
  if (attempt == nullptr || !attempt->head) {
    Error error = attempt != nullptr && attempt->error ? *attempt->error
                  : last_error_                        ? *last_error_
                                : Error{ErrorKind::kInternal, "no attempt was made", {}};
    handler_.on_error(std::move(error));
    return;
  }
  winner_ = action.attempt;
  hand_over(*attempt);
}

// The head, what was kept of the body, and the end if it is there already; the rest follows by
// itself.
void Call::hand_over(Attempt& attempt) {
  bool destroyed = false;
  destroyed_ = &destroyed;
  if (paused_) {
    attempt.exchange.pause();
  } else {
    attempt.exchange.resume();
  }
  handler_.on_response_head(std::move(*attempt.head));
  if (destroyed) return;
  const std::string early = std::exchange(attempt.early, {});
  const std::span<const char> piece = early.empty() ? attempt.first : std::span(early);
  if (!piece.empty()) {
    handler_.on_body(piece);
    if (destroyed) return;
  }
  destroyed_ = nullptr;
  if (attempt.error) {
    handler_.on_error(Error(*attempt.error));
  } else if (attempt.ended) {
    handler_.on_end();
  }
}

void Call::write(std::span<const char> piece, net::Exchange::WriteCallback done) {
  TAILWARD_CHECK(streaming_);
  if (attempts_[0] != nullptr) attempts_[0]->exchange.write(piece, std::move(done));
}

void Call::finish_body() {
  TAILWARD_CHECK(streaming_);
  if (attempts_[0] != nullptr) attempts_[0]->exchange.finish_body();
}

std::size_t Call::buffered() const {
  return streaming_ && attempts_[0] != nullptr ? attempts_[0]->exchange.buffered() : 0;
}

void Call::pause() {
  paused_ = true;
  if (winner_ != hedge::kNoAttempt) attempts_[winner_]->exchange.pause();
}

void Call::resume() {
  paused_ = false;
  if (winner_ != hedge::kNoAttempt) attempts_[winner_]->exchange.resume();
}

Call::Attempt::Attempt(Call& call, hedge::AttemptIndex index, net::Pool& pool)
    : exchange(pool, *this), call_(call), pool_(pool), index_(index) {}

void Call::Attempt::on_response_head(http::Response&& response) {
  head = std::move(response);
  const Outcome outcome = call_.client_.outcome_of(*head);
  if (outcome.result == Outcome::Class::kGood) {
    if (!has_body(*head) || !call_.may_hedge_) call_.outcome(index_, outcome);
    return;
  }
  // Kept, but not read on, until the race is over: it may become the answer.
  exchange.pause();
  call_.outcome(index_, outcome);
}

void Call::Attempt::on_body(std::span<const char> piece) {
  if (won()) {
    call_.handler_.on_body(piece);
  } else if (call_.race_.running(index_)) {
    first = piece;  // a good answer's first byte wins, so the piece is handed over at once
    call_.outcome(index_, Outcome{});
  } else {
    early.append(piece.data(), piece.size());
  }
}

void Call::Attempt::on_end() {
  if (won()) {
    call_.handler_.on_end();
    return;
  }
  ended = true;
  if (call_.race_.running(index_)) call_.outcome(index_, Outcome{});
}

void Call::Attempt::on_error(Error failure, bool) {
  failure = described(std::move(failure));
  if (won()) {
    call_.handler_.on_error(std::move(failure));
    return;
  }
  error = failure;
  if (!call_.race_.running(index_)) return;  // held: an answer that broke off later
  head.reset();                              // a good head whose body never came is no answer
  Outcome outcome{.result = Outcome::Class::kBad, .has_response = false};
  if (error->kind == ErrorKind::kOverloaded) outcome.result = Outcome::Class::kNotSent;
  call_.last_error_ = std::move(failure);
  call_.outcome(index_, outcome);
}

// With the host's name, and without the one kind that means the caller's deadline.
Error Call::Attempt::described(Error failure) const {
  if (failure.kind == ErrorKind::kTimedOut) failure.kind = ErrorKind::kDisconnected;
  const std::string host = io::to_string(pool_.endpoint());
  return failure.message.find(host) == std::string::npos ? failure.in(host) : failure;
}

}  // namespace tailward::client
