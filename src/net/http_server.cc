#include "net/http_server.h"

#include <utility>

#include "base/check.h"
#include "net/server_connection.h"

namespace tailward::net {

HttpServer::HttpServer(io::Transport& transport, io::Timers& timers, Handler handler,
                       ServerOptions options)
    : transport_(transport),
      timers_(timers),
      handler_(std::move(handler)),
      options_(std::move(options)) {
  TAILWARD_CHECK(options_.read_buffer_bytes > 0 && options_.early_bytes > 0);
}

HttpServer::~HttpServer() {
  listeners_.clear();
  empty_ = nullptr;
  while (!connections_.empty()) {
    const std::shared_ptr<ServerConnection> connection = connections_.front();
    connection->close(false);
  }
}

Result<io::HostPort> HttpServer::listen(const io::HostPort& at) {
  Result<std::unique_ptr<io::Listener>> listener = transport_.listen(
      at, [this](std::unique_ptr<io::Stream> stream) { serve(std::move(stream)); });
  if (!listener) return fail(std::move(listener).error());
  listeners_.push_back(std::move(*listener));
  return listeners_.back()->local();
}

void HttpServer::serve(std::unique_ptr<io::Stream> stream) {
  ++counters_.accepted;
  if (draining_ || connections_.size() >= options_.max_connections) {
    ++counters_.refused;
    return;
  }
  const auto connection = std::make_shared<ServerConnection>(*this, std::move(stream));
  connection->at_ = connections_.insert(connections_.end(), connection);
  ++counters_.connections;
  connection->begin();
}

void HttpServer::drain(UniqueFunction<void()> empty) {
  draining_ = true;
  empty_ = std::move(empty);
  listeners_.clear();
  const std::list<std::shared_ptr<ServerConnection>> all = connections_;
  for (const std::shared_ptr<ServerConnection>& connection : all) connection->drain();
  report_if_empty();
}

void HttpServer::connection_gone(const ServerConnection& connection) {
  connections_.erase(connection.at_);
  --counters_.connections;
  report_if_empty();
}

void HttpServer::report_if_empty() {
  if (!draining_ || !connections_.empty() || !empty_) return;
  empty_timer_ = timers_.after(Duration{0}, [this] {
    UniqueFunction<void()> empty = std::move(empty_);
    empty();
  });
}

}  // namespace tailward::net
