// A TCP socket whose calls wait, for experiments and faulty servers that choose every system call
// themselves. One method is one system call, unless it says otherwise.
//
// Nothing hangs: connecting, accepting, reading and writing end with kTimedOut after
// BlockingOptions::timeout. A signal does not cut a call short.
//
// Thread safety: one thread, but for interrupt(). One thread may read while another writes.
// Errors, where nothing else is said: kDisconnected (reset, refused, unreachable), kTimedOut.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "io/transport.h"

namespace tailward::net {

// Set before connecting or listening, so that the handshake knows them (the window scale follows
// the receive buffer). What a listener is given, accepted sockets inherit. Empty: left alone.
struct BlockingOptions {
  std::optional<bool> nodelay = {};
  std::optional<bool> cork = {};
  std::optional<bool> quickack = {};           // once: the kernel goes its own way afterwards
  std::optional<int> send_buffer = {};         // SO_SNDBUF, as asked for; the kernel doubles it
  std::optional<int> receive_buffer = {};      // SO_RCVBUF, likewise
  std::optional<std::string> congestion = {};  // "cubic", …; left alone where there is none such
  Duration timeout = std::chrono::seconds(10);
  // Asked each time that a connect has taken `timeout`: whether it goes on. Empty: it does not.
  std::function<bool()> keep_connecting = {};
};

// The kernel's account of the connection (TCP_INFO); 0 where this kernel does not have it.
struct TcpFigures {
  std::uint64_t segments_out = 0;  // of any kind
  // As handed to the device: one may be cut into several later.
  std::uint64_t data_segments_out = 0;
  std::uint64_t data_segments_in = 0;
  std::uint64_t retransmissions = 0;
  std::uint64_t bytes_acked = 0;
  std::uint64_t bytes_received = 0;
  std::uint32_t send_window = 0;  // what the peer advertised last, bytes
  std::uint32_t mss = 0;          // bytes
  Duration rtt{};                 // smoothed
  Duration min_rtt{};
  Duration window_limited{};       // time for which the peer's window held the sender back
  Duration send_buffer_limited{};  // time for which the send buffer did
};

class BlockingSocket {
 public:
  // Numeric addresses of either family, and "localhost" (127.0.0.1). Errors: kInvalid (no such
  // address), kDisconnected, kTimedOut.
  static Result<BlockingSocket> connect(const io::HostPort& to,
                                        const BlockingOptions& options = {});
  // Port 0: where there is room; see local(). An empty host: 127.0.0.1. SO_REUSEADDR is on. An IPv6
  // listener takes IPv6 alone. Errors: kInvalid (address in use, or not ours), kDenied.
  static Result<BlockingSocket> listen(const io::HostPort& at, const BlockingOptions& options = {},
                                       int backlog = 128);

  BlockingSocket(BlockingSocket&& other) noexcept;
  BlockingSocket& operator=(BlockingSocket&& other) noexcept;
  ~BlockingSocket();

  // The next connection; it has the listener's options and timeout. Errors: kTimedOut, kCancelled
  // (interrupted), kOverloaded (no descriptors left).
  Result<BlockingSocket> accept();

  // One send(2): how much the kernel took, less than all only when the timeout cut it short.
  Result<std::size_t> write(std::span<const char> data);
  // As many sends as it takes.
  Result<void> write_all(std::span<const char> data);

  // One recv(2): at least one byte, or 0 at the end of the peer's data.
  Result<std::size_t> read_some(std::span<char> buffer);
  // As many reads as it takes to fill `buffer`. kDisconnected when the data ends before.
  Result<void> read_exact(std::span<char> buffer);

  // No more will be written; reading goes on. Several calls do no harm.
  void shutdown_write();
  // Ends every call under way, and all that follow, in both directions. From any thread.
  void interrupt();
  // Closes with a reset instead of a goodbye (SO_LINGER with 0).
  void reset();
  void close();

  void set_nodelay(bool on);
  void set_cork(bool on);
  void set_quickack(bool on);
  void set_send_buffer(int bytes);
  void set_receive_buffer(int bytes);
  void set_timeout(Duration timeout);

  [[nodiscard]] io::HostPort local() const;
  [[nodiscard]] io::HostPort peer() const;  // empty when not connected
  // As the kernel counts: twice what was asked for.
  [[nodiscard]] int send_buffer() const;
  [[nodiscard]] int receive_buffer() const;
  [[nodiscard]] TcpFigures figures() const;
  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] bool open() const { return fd_ >= 0; }

  // System calls made here so far to write, and to read; those that failed included.
  [[nodiscard]] std::uint64_t write_calls() const { return write_calls_; }
  [[nodiscard]] std::uint64_t read_calls() const { return read_calls_; }

 private:
  explicit BlockingSocket(int fd) : fd_(fd) {}
  static Result<BlockingSocket> make(const io::HostPort& at, const BlockingOptions& options,
                                     struct SocketName& name);
  void apply(const BlockingOptions& options);
  void set(int level, int option, int value);
  [[nodiscard]] int get(int level, int option) const;

  int fd_ = -1;
  Duration timeout_{};
  std::uint64_t write_calls_ = 0;
  std::uint64_t read_calls_ = 0;
};

}  // namespace tailward::net
