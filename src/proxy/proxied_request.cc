#include "proxy/proxied_request.h"

#include <utility>

#include "http/codec.h"

namespace tailward::proxy {
namespace {

// Switching protocols is not done. An offer of HTTP/2 may be ignored (RFC 9110 §7.8), and common
// clients make it with every request; any other offer is the point of its request.
bool wants_another_protocol(const http::Request& head) {
  if (head.method == "CONNECT") return true;
  const std::optional<std::string_view> upgrade = head.fields.find("upgrade");
  return upgrade && head.fields.has_token("connection", "upgrade") &&
         !http::equals_ignoring_case(*upgrade, "h2c");
}

int status_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kTimedOut:
      return 504;
    case ErrorKind::kOverloaded:
      return 503;
    default:
      return 502;
  }
}

}  // namespace

void ProxiedRequests::begin(net::CallRef call) {
  alive.push_front(std::make_shared<ProxiedRequest>(*this, std::move(call)));
  ProxiedRequest& request = *alive.front();
  request.at_ = alive.begin();
  request.start();
}

ProxiedRequest::ProxiedRequest(ProxiedRequests& requests, net::CallRef call)
    : requests_(requests), call_(std::move(call)), upstream_(requests.client, *this) {}

void ProxiedRequest::start() {
  if (wants_another_protocol(call_->request())) {
    ++requests_.figures.unsupported;
    return refuse(501, call_->request().method == "CONNECT"
                           ? "CONNECT is not supported: this proxy stands before its own servers"
                           : "Upgrade is not supported: this proxy speaks HTTP/1.1 only");
  }
  call_->on_cancel([weak = weak_from_this()] {
    if (const std::shared_ptr<ProxiedRequest> request = weak.lock()) {
      ++request->requests_.figures.client_gone;
      request->end();
    }
  });
  head_ = std::move(call_->request());
  head_.minor_version = 1;
  http::remove_hop_by_hop(head_.fields);
  // The server answers it towards the client; towards the host there is nothing to wait for.
  head_.fields.remove("expect");

  const bool sized = head_.body == http::BodyKind::kLength;
  body_ended_ = head_.body == http::BodyKind::kNone || (sized && head_.content_length == 0);
  if (body_ended_) {
    return upstream_.start(std::move(head_), nullptr, call_options());
  }
  const bool may_repeat = http::is_safe(head_.method) || head_.fields.find("idempotency-key");
  // A body of unknown length that need not be kept is not: its client may want to talk while it
  // listens.
  const bool keep = sized ? head_.content_length <= requests_.options.body_limit : may_repeat;
  if (keep) {
    collected_ = std::make_shared<std::string>();
    if (sized) collected_->reserve(head_.content_length);
  } else {
    start_streaming();
  }
  call_->stream_body(*this);
}

client::CallOptions ProxiedRequest::call_options() const {
  client::CallOptions options;
  if (requests_.options.deadline) {
    options.deadline = requests_.client.timers().now() + *requests_.options.deadline;
  }
  return options;
}

void ProxiedRequest::start_streaming() {
  upstream_.start_streaming(std::move(head_), call_options());
}

void ProxiedRequest::on_request_body(std::span<const char> piece) {
  collected_ != nullptr ? collect(piece) : pass_on(piece);
}

void ProxiedRequest::collect(std::span<const char> piece) {
  if (collected_->size() + piece.size() <= requests_.options.body_limit) {
    collected_->append(piece.data(), piece.size());
    return;
  }
  const std::shared_ptr<std::string> begun = std::move(collected_);
  start_streaming();
  if (!begun->empty()) upstream_.write(*begun);
  pass_on(piece);
}

void ProxiedRequest::pass_on(std::span<const char> piece) {
  if (upstream_.buffered() + piece.size() <= requests_.options.buffered_max) {
    return upstream_.write(piece);
  }
  ++requests_.figures.held_up;
  call_->pause_body();
  upstream_.write(piece, [weak = weak_from_this()](const Result<void>&) {
    if (const std::shared_ptr<ProxiedRequest> request = weak.lock()) request->call_->resume_body();
  });
}

void ProxiedRequest::on_request_end() {
  body_ended_ = true;
  if (collected_ != nullptr) {
    upstream_.start(std::move(head_), std::move(collected_), call_options());
  } else {
    upstream_.finish_body();
  }
}

void ProxiedRequest::on_response_head(http::Response&& head) {
  count_answer(head.status);
  http::remove_hop_by_hop(head.fields);
  // How long a connection to a host lives is no concern of the client's, unless the host closes it
  // because it will not read the rest of the body.
  head.keep_alive = !requests_.closing && (head.keep_alive || body_ended_);
  if (head.body == http::BodyKind::kUntilClose) head.body = http::BodyKind::kChunked;
  call_->respond_head(std::move(head));
}

void ProxiedRequest::on_body(std::span<const char> piece) {
  if (call_->buffered() + piece.size() <= requests_.options.buffered_max) {
    return call_->write(piece);
  }
  ++requests_.figures.held_up;
  upstream_.pause();
  call_->write(piece, [weak = weak_from_this()](const Result<void>&) {
    if (const std::shared_ptr<ProxiedRequest> request = weak.lock()) request->upstream_.resume();
  });
}

void ProxiedRequest::on_end() {
  call_->finish();
  end();
}

void ProxiedRequest::on_error(Error error) {
  Figures& figures = requests_.figures;
  if (call_->head_sent()) {
    ++figures.broken_off;
    call_->abort();
    return end();
  }
  const int status = status_of(error.kind);
  ++(status == 504 ? figures.timed_out : status == 503 ? figures.overloaded : figures.bad_gateway);
  refuse(status, error.message);
}

void ProxiedRequest::refuse(int status, std::string_view reason) {
  count_answer(status);
  std::string text = "tailward: ";
  text += reason;
  text += '\n';
  call_->stop_body();  // so that the server says that it closes when there is more of it
  http::Response head;
  head.status = status;
  head.fields.add("Content-Type", "text/plain; charset=utf-8");
  head.keep_alive = !requests_.closing;
  call_->respond(std::move(head), std::move(text));
  end();
}

void ProxiedRequest::count_answer(int status) {
  Figures& figures = requests_.figures;
  const bool known = status >= 200 && status < 600;
  ++figures.answers[known ? static_cast<std::size_t>(status / 100) : Figures::kOther];
  figures.durations.record(requests_.client.timers().precise_now() - call_->arrived_at());
}

void ProxiedRequest::end() {
  call_->stop_body();
  requests_.alive.erase(at_);
}

}  // namespace tailward::proxy
