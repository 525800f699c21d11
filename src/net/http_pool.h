// The HTTP/1.1 connections to one endpoint.
//
// An exchange takes the connection that was used last (LIFO: the warm ones stay warm, the rest
// reaches its idle timeout), or opens one, or waits its turn (FIFO) when max_connections are open.
// Idle connections are read from, so that one which the server closes is dropped at once rather
// than found dead by the next request; for those that cross on the wire there is one resend on a
// fresh connection, counted.
//
// Thread safety: belongs to one loop.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "base/time.h"
#include "http/codec.h"
#include "io/timers.h"
#include "io/transport.h"
#include "net/http_exchange.h"

namespace tailward::net {

struct PoolOptions {
  std::size_t max_connections = 256;  // open and opening
  std::size_t max_idle = 64;          // kept open without a request
  std::size_t max_waiting = 1024;     // exchanges in the queue; more are refused with kOverloaded
  Duration idle_timeout = std::chrono::seconds(30);
  Duration connect_timeout = std::chrono::seconds(2);
  std::size_t read_buffer_bytes = 16 * 1024;  // one for each open connection
  http::Limits response_limits = {};
};

struct PoolCounters {
  // Since the start.
  std::uint64_t opened = 0;          // connections established
  std::uint64_t connect_errors = 0;  // refused, unreachable or timed out
  std::uint64_t reused = 0;          // exchanges that began on an idle connection
  std::uint64_t closed = 0;          // connections closed, by either side and for any reason
  std::uint64_t stale_retries = 0;   // resends after a reused connection was found dead
  std::uint64_t cancelled = 0;       // exchanges destroyed before their end
  std::uint64_t queued = 0;          // exchanges that had to wait for a connection
  std::uint64_t limit_hits = 0;      // exchanges refused because of max_connections or max_waiting
  // Now.
  std::size_t in_use = 0;
  std::size_t idle = 0;
  std::size_t connecting = 0;
  std::size_t waiting = 0;
};

class Pool {
 public:
  // REQUIRES: transport and timers outlive the pool, and the pool its exchanges.
  Pool(io::Transport& transport, io::Timers& timers, io::HostPort endpoint,
       PoolOptions options = {});
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  [[nodiscard]] const io::HostPort& endpoint() const { return endpoint_; }
  [[nodiscard]] const PoolOptions& options() const { return options_; }
  [[nodiscard]] const PoolCounters& counters() const { return counters_; }

  // How many exchanges could start now without waiting.
  [[nodiscard]] std::size_t free_slots() const;
  void close_idle();

 private:
  friend class Exchange;
  friend class ClientConnection;

  [[nodiscard]] std::size_t open_count() const {
    return counters_.in_use + counters_.idle + counters_.connecting;
  }
  // Gives `exchange` a connection now, begins to open one, queues it, or makes it fail.
  void acquire(Exchange& exchange);
  void open_for(Exchange& exchange);
  void connected(Exchange& exchange, Result<std::unique_ptr<io::Stream>> stream);
  // Takes `exchange`, which is being destroyed, out of the pool's hands, whatever its state.
  void abandon(Exchange& exchange);
  // The connection's exchange is over and it can serve another.
  void release(std::shared_ptr<ClientConnection> connection);
  // The connection's exchange is over and it cannot. slot_freed() must follow.
  void close_used(ClientConnection& connection);
  void idle_lost(ClientConnection& connection);
  // Gives free places to the exchanges that wait.
  void slot_freed();
  void close_oldest_idle();
  void expire_idle();

  io::Transport& transport_;
  io::Timers& timers_;
  io::HostPort endpoint_;
  PoolOptions options_;
  PoolCounters counters_;
  std::vector<std::shared_ptr<ClientConnection>> idle_;  // the last used at the back
  std::list<Exchange*> waiting_;
  io::Timer idle_timer_;
};

}  // namespace tailward::net
