#include <algorithm>
#include <utility>

#include "base/check.h"
#include "net/http_server.h"
#include "net/server_connection.h"

namespace tailward::net {

ServerCall::ServerCall(ServerConnection& connection, http::Request&& request, TimePoint arrived_at)
    : connection_(&connection),
      request_(std::move(request)),
      to_head_(request_.method == "HEAD"),
      minor_version_(request_.minor_version),
      arrived_at_(arrived_at) {}

ServerCall::~ServerCall() {
  if (connection_ != nullptr) connection_->abort(*this);
}

io::HostPort ServerCall::peer() const {
  return connection_ == nullptr ? io::HostPort{} : connection_->peer();
}

void ServerCall::read_body(std::size_t limit, BodyCallback done) {
  if (connection_ == nullptr) return;
  TAILWARD_CHECK(body_handler_ == nullptr && !whole_body_);
  whole_limit_ = limit;
  whole_body_ = std::move(done);
  connection_->body_wanted();
}

void ServerCall::stream_body(BodyHandler& handler) {
  if (connection_ == nullptr) return;
  TAILWARD_CHECK(body_handler_ == nullptr && !whole_body_);
  body_handler_ = &handler;
  connection_->body_wanted();
}

void ServerCall::stop_body() { body_handler_ = nullptr; }

void ServerCall::pause_body() { body_paused_ = true; }

void ServerCall::resume_body() {
  if (std::exchange(body_paused_, false) && connection_ != nullptr) connection_->body_wanted();
}

void ServerCall::respond(http::Response head, std::string body) {
  if (connection_ == nullptr) return;
  TAILWARD_CHECK(!head_given_);
  head.body = http::BodyKind::kLength;
  head.content_length = body.size();
  connection_->response_begins(head, *this);
  head_given_ = true;
  if (head.body == http::BodyKind::kNone) body.clear();
  connection_->send_whole(head, std::move(body));
}

void ServerCall::respond(int status, std::string_view content_type, std::string body) {
  http::Response head;
  head.status = status;
  head.reason = http::reason_phrase(status);
  if (!content_type.empty()) head.fields.add("Content-Type", content_type);
  respond(std::move(head), std::move(body));
}

void ServerCall::respond_head(http::Response head) {
  if (connection_ == nullptr) return;
  TAILWARD_CHECK(!head_given_);
  const bool was_sized = head.body == http::BodyKind::kLength;
  connection_->response_begins(head, *this);
  head_given_ = true;
  bodiless_ = head.body == http::BodyKind::kNone;
  chunked_ = head.body == http::BodyKind::kChunked;
  sized_ = was_sized && !bodiless_;
  left_to_write_ = sized_ ? head.content_length : 0;
  http::append_head(connection_->output(), head);
  connection_->output_added({});
}

void ServerCall::write(std::span<const char> piece, WriteCallback done) {
  if (connection_ == nullptr) return;
  TAILWARD_CHECK(head_given_);
  if (!bodiless_) write_framed(piece);
  const ServerOptions& options = connection_->server().options();
  if (connection_->output().size() > options.buffered_bytes) {
    ++connection_->server().counters_.buffered_limit_hits;
    return abort();
  }
  connection_->output_added(std::move(done));
}

void ServerCall::write_framed(std::span<const char> piece) {
  std::string& output = connection_->output();
  if (chunked_) {
    if (piece.empty()) return;
    http::append_chunk_head(output, piece.size());
    output.append(piece.data(), piece.size()).append("\r\n");
    return;
  }
  if (sized_) {
    TAILWARD_CHECK(piece.size() <= left_to_write_);
    left_to_write_ -= piece.size();
  }
  output.append(piece.data(), piece.size());
}

std::size_t ServerCall::buffered() const {
  return connection_ == nullptr ? 0 : connection_->unsent();
}

void ServerCall::finish() {
  if (connection_ == nullptr) return;
  TAILWARD_CHECK(head_given_);
  if (left_to_write_ > 0) return abort();
  if (chunked_) http::append_last_chunk(connection_->output());
  connection_->response_complete();
}

void ServerCall::abort() {
  if (connection_ != nullptr) connection_->abort(*this);
}

}  // namespace tailward::net
