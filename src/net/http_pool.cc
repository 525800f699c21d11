#include "net/http_pool.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "net/http_connection.h"

namespace tailward::net {

Pool::Pool(io::Transport& transport, io::Timers& timers, io::HostPort endpoint, PoolOptions options)
    : transport_(transport),
      timers_(timers),
      endpoint_(std::move(endpoint)),
      options_(std::move(options)) {
  TAILWARD_CHECK(options_.max_connections > 0 && options_.read_buffer_bytes > 0);
}

Pool::~Pool() {
  TAILWARD_CHECK(counters_.in_use + counters_.connecting + counters_.waiting == 0);
  close_idle();
}

std::size_t Pool::free_slots() const {
  // Whoever waits was here first: a slot that becomes free is theirs.
  if (!waiting_.empty()) return 0;
  return counters_.idle + options_.max_connections -
         std::min(options_.max_connections, open_count());
}

void Pool::acquire(Exchange& exchange) {
  // A hedge never takes the last slot. Otherwise hedges would make primaries wait, just when the
  // servers are slow and both are many.
  if (exchange.options_.hedge && free_slots() <= 1) {
    ++counters_.limit_hits;
    return exchange.fail_later(
        Error{ErrorKind::kOverloaded,
              "no connection to " + io::to_string(endpoint_) + " is free for an extra request"});
  }
  if (!exchange.fresh_ && !idle_.empty()) {
    // The one that was used last: its congestion window is the warmest, and the server is the least
    // likely to have closed it.
    const std::shared_ptr<ClientConnection> connection = std::move(idle_.back());
    idle_.pop_back();
    --counters_.idle;
    ++counters_.in_use;
    ++counters_.reused;
    return connection->attach(exchange);
  }
  // Only a request for a fresh connection gets here with idle ones left.
  if (open_count() >= options_.max_connections && !idle_.empty()) close_oldest_idle();
  if (open_count() < options_.max_connections) return open_for(exchange);
  if (waiting_.size() >= options_.max_waiting) {
    ++counters_.limit_hits;
    return exchange.fail_later(Error{
        ErrorKind::kOverloaded,
        "all connections to " + io::to_string(endpoint_) + " are in use and the queue is full"});
  }
  // First come, first served; the place in the list makes cancelling O(1).
  exchange.state_ = Exchange::State::kWaiting;
  exchange.waiting_at_ = waiting_.insert(waiting_.end(), &exchange);
  ++counters_.queued;
  ++counters_.waiting;
}

void Pool::open_for(Exchange& exchange) {
  exchange.state_ = Exchange::State::kConnecting;
  ++counters_.connecting;
  exchange.timer_ = timers_.after(options_.connect_timeout, [this, &exchange] {
    connected(exchange, fail(ErrorKind::kTimedOut,
                             "no connection to " + io::to_string(endpoint_) + " in time"));
  });
  exchange.connecting_ =
      transport_.connect(endpoint_, [this, &exchange](Result<std::unique_ptr<io::Stream>> stream) {
        connected(exchange, std::move(stream));
      });
}

void Pool::connected(Exchange& exchange, Result<std::unique_ptr<io::Stream>> stream) {
  exchange.timer_.cancel();
  exchange.connecting_.reset();
  --counters_.connecting;
  if (!stream) {
    ++counters_.connect_errors;
    slot_freed();
    return exchange.end_with(std::move(stream).error());
  }
  ++counters_.opened;
  ++counters_.in_use;
  std::make_shared<ClientConnection>(*this, std::move(*stream))->attach(exchange);
}

void Pool::abandon(Exchange& exchange) {
  using State = Exchange::State;
  switch (exchange.state_) {
    case State::kNew:
    case State::kDone:
      return;
    case State::kWaiting:
      waiting_.erase(exchange.waiting_at_);
      --counters_.waiting;
      break;
    case State::kConnecting:
      exchange.timer_.cancel();
      exchange.connecting_.reset();
      --counters_.connecting;
      break;
    // The response may be under way: what is left of it would be read as the next one's. So the
    // connection cannot be used again.
    case State::kActive: {
      const std::shared_ptr<ClientConnection> connection = std::move(exchange.connection_);
      close_used(*connection);
      break;
    }
    case State::kFailing:
      break;
  }
  exchange.state_ = State::kDone;
  ++counters_.cancelled;
  slot_freed();
}

void Pool::release(std::shared_ptr<ClientConnection> connection) {
  // Handed over without ever being idle.
  if (!waiting_.empty() && !waiting_.front()->fresh_) {
    Exchange& next = *waiting_.front();
    waiting_.pop_front();
    --counters_.waiting;
    ++counters_.reused;
    return connection->attach(next);
  }
  if (!waiting_.empty() || options_.max_idle == 0) {
    close_used(*connection);
    return slot_freed();
  }
  if (idle_.size() >= options_.max_idle) close_oldest_idle();
  --counters_.in_use;
  ++counters_.idle;
  connection->idle_since_ = timers_.now();
  // An idle connection is read, so that the server's closing is noticed before the next request.
  connection->read();
  idle_.push_back(std::move(connection));
  if (!idle_timer_.armed()) {
    idle_timer_ = timers_.after(options_.idle_timeout, [this] { expire_idle(); });
  }
}

void Pool::close_used(ClientConnection& connection) {
  connection.close();
  --counters_.in_use;
  ++counters_.closed;
}

void Pool::idle_lost(ClientConnection& connection) {
  // Linear, over at most max_idle connections, and rare.
  const auto at = std::find_if(idle_.begin(), idle_.end(), [&connection](const auto& idle) {
    return idle.get() == &connection;
  });
  if (at == idle_.end()) return;
  connection.close();
  idle_.erase(at);
  --counters_.idle;
  ++counters_.closed;
}

void Pool::slot_freed() {
  while (!waiting_.empty() && open_count() < options_.max_connections) {
    Exchange& next = *waiting_.front();
    waiting_.pop_front();
    --counters_.waiting;
    open_for(next);
  }
}

void Pool::close_oldest_idle() {
  idle_.front()->close();
  idle_.erase(idle_.begin());
  --counters_.idle;
  ++counters_.closed;
}

void Pool::close_idle() {
  while (!idle_.empty()) close_oldest_idle();
}

void Pool::expire_idle() {
  // Released in the order of time, so the oldest is in front.
  while (!idle_.empty() && idle_.front()->idle_since_ + options_.idle_timeout <= timers_.now()) {
    close_oldest_idle();
  }
  if (idle_.empty()) return;
  idle_timer_ =
      timers_.at(idle_.front()->idle_since_ + options_.idle_timeout, [this] { expire_idle(); });
}

}  // namespace tailward::net
