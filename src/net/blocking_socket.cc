#include "net/blocking_socket.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

namespace tailward::net {

// A socket address of either family, as the kernel takes it.
struct SocketName {
  sockaddr_storage storage{};
  socklen_t size = 0;
  [[nodiscard]] sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

namespace {

Result<SocketName> to_name(const io::HostPort& endpoint) {
  SocketName name;
  const bool is_local = endpoint.host.empty() || endpoint.host == "localhost";
  const std::string host = is_local ? "127.0.0.1" : endpoint.host;
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  if (::inet_pton(AF_INET, host.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(endpoint.port);
    std::memcpy(&name.storage, &v4, sizeof v4);
    name.size = sizeof v4;
    return name;
  }
  if (::inet_pton(AF_INET6, host.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(endpoint.port);
    std::memcpy(&name.storage, &v6, sizeof v6);
    name.size = sizeof v6;
    return name;
  }
  return fail(ErrorKind::kInvalid, fmt::format("'{}' is not a numeric address", host));
}

io::HostPort to_endpoint(const SocketName& name) {
  char text[INET6_ADDRSTRLEN] = "";
  if (name.storage.ss_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &name.storage, sizeof v4);
    ::inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
    return {text, ntohs(v4.sin_port)};
  }
  if (name.storage.ss_family == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, &name.storage, sizeof v6);
    ::inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
    return {text, ntohs(v6.sin6_port)};
  }
  return {};
}

tl::unexpected<Error> failed(const char* what, int error) {
  ErrorKind kind = ErrorKind::kDisconnected;
  switch (error) {
    case EAGAIN:
    case EINPROGRESS:  // a connect that SO_SNDTIMEO ended
    case EALREADY:     // likewise, at a later call
    case ETIMEDOUT:
      return fail(ErrorKind::kTimedOut, fmt::format("{}: timed out", what));
    case EACCES:
    case EPERM:
      kind = ErrorKind::kDenied;
      break;
    case EADDRINUSE:
    case EADDRNOTAVAIL:
    case EINVAL:
    case EAFNOSUPPORT:
      kind = ErrorKind::kInvalid;
      break;
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
      kind = ErrorKind::kOverloaded;
      break;
    default:
      break;
  }
  return fail(kind, fmt::format("{}: {}", what, std::strerror(error)));
}

// Repeats a call that a signal has cut short. Its timeout then begins again.
template <class Call>
auto uninterrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

}  // namespace

Result<BlockingSocket> BlockingSocket::make(const io::HostPort& at, const BlockingOptions& options,
                                            SocketName& name) {
  Result<SocketName> parsed = to_name(at);
  if (!parsed) return fail(parsed.error());
  name = *parsed;
  const int fd = ::socket(name.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP);
  if (fd < 0) return failed("making a socket", errno);
  BlockingSocket socket(fd);
  socket.apply(options);
  return socket;
}

void BlockingSocket::apply(const BlockingOptions& options) {
  if (options.send_buffer) set_send_buffer(*options.send_buffer);
  if (options.receive_buffer) set_receive_buffer(*options.receive_buffer);
  if (options.nodelay) set_nodelay(*options.nodelay);
  if (options.cork) set_cork(*options.cork);
  if (options.quickack) set_quickack(*options.quickack);
  if (options.congestion) {
    static_cast<void>(::setsockopt(fd_, IPPROTO_TCP, TCP_CONGESTION, options.congestion->data(),
                                   static_cast<socklen_t>(options.congestion->size())));
  }
  set_timeout(options.timeout);
}

Result<BlockingSocket> BlockingSocket::connect(const io::HostPort& to,
                                               const BlockingOptions& options) {
  SocketName name;
  Result<BlockingSocket> socket = make(to, options, name);
  if (!socket) return socket;
  const std::string what = "connecting to " + io::to_string(to);
  while (::connect(socket->fd_, name.get(), name.size) != 0 && errno != EISCONN) {
    const int error = errno;
    // The handshake goes on after a signal and after the timeout; another call waits for its end.
    const bool timed_out = error == EINPROGRESS || error == EALREADY || error == EAGAIN;
    const bool again = timed_out && options.keep_connecting && options.keep_connecting();
    if (!again && error != EINTR) return failed(what.c_str(), error);
  }
  return socket;
}

Result<BlockingSocket> BlockingSocket::listen(const io::HostPort& at,
                                              const BlockingOptions& options, int backlog) {
  SocketName name;
  Result<BlockingSocket> socket = make(at, options, name);
  if (!socket) return socket;
  socket->set(SOL_SOCKET, SO_REUSEADDR, 1);
  if (name.storage.ss_family == AF_INET6) socket->set(IPPROTO_IPV6, IPV6_V6ONLY, 1);
  const std::string what = "listening at " + io::to_string(at);
  if (::bind(socket->fd_, name.get(), name.size) != 0 || ::listen(socket->fd_, backlog) != 0) {
    return failed(what.c_str(), errno);
  }
  return socket;
}

BlockingSocket::BlockingSocket(BlockingSocket&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      timeout_(other.timeout_),
      write_calls_(other.write_calls_),
      read_calls_(other.read_calls_) {}

BlockingSocket& BlockingSocket::operator=(BlockingSocket&& other) noexcept {
  if (this != &other) {
    close();
    fd_ = std::exchange(other.fd_, -1);
    timeout_ = other.timeout_;
    write_calls_ = other.write_calls_;
    read_calls_ = other.read_calls_;
  }
  return *this;
}

BlockingSocket::~BlockingSocket() { close(); }

Result<BlockingSocket> BlockingSocket::accept() {
  const int fd = uninterrupted([this] { return ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC); });
  if (fd < 0) {
    // What a listener says that was shut down.
    if (errno == EINVAL) return fail(ErrorKind::kCancelled, "accepting: interrupted");
    return failed("accepting", errno);
  }
  BlockingSocket socket(fd);
  socket.set_timeout(timeout_);
  return socket;
}

Result<std::size_t> BlockingSocket::write(std::span<const char> data) {
  const ssize_t sent = uninterrupted([&] {
    ++write_calls_;
    return ::send(fd_, data.data(), data.size(), MSG_NOSIGNAL);
  });
  if (sent < 0) return failed("writing", errno);
  return static_cast<std::size_t>(sent);
}

Result<void> BlockingSocket::write_all(std::span<const char> data) {
  while (!data.empty()) {
    const Result<std::size_t> sent = write(data);
    if (!sent) return fail(sent.error());
    data = data.subspan(*sent);
  }
  return {};
}

Result<std::size_t> BlockingSocket::read_some(std::span<char> buffer) {
  const ssize_t got = uninterrupted([&] {
    ++read_calls_;
    return ::recv(fd_, buffer.data(), buffer.size(), 0);
  });
  if (got < 0) return failed("reading", errno);
  return static_cast<std::size_t>(got);
}

Result<void> BlockingSocket::read_exact(std::span<char> buffer) {
  while (!buffer.empty()) {
    const Result<std::size_t> got = read_some(buffer);
    if (!got) return fail(got.error());
    if (*got == 0) {
      return fail(ErrorKind::kDisconnected, "reading: the peer's data ended too early");
    }
    buffer = buffer.subspan(*got);
  }
  return {};
}

void BlockingSocket::shutdown_write() { ::shutdown(fd_, SHUT_WR); }

void BlockingSocket::interrupt() { ::shutdown(fd_, SHUT_RDWR); }

void BlockingSocket::reset() {
  const linger now{1, 0};
  static_cast<void>(::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now));
  close();
}

void BlockingSocket::close() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

void BlockingSocket::set(int level, int option, int value) {
  static_cast<void>(::setsockopt(fd_, level, option, &value, sizeof value));
}

int BlockingSocket::get(int level, int option) const {
  int value = 0;
  socklen_t size = sizeof value;
  return ::getsockopt(fd_, level, option, &value, &size) == 0 ? value : 0;
}

void BlockingSocket::set_nodelay(bool on) { set(IPPROTO_TCP, TCP_NODELAY, on ? 1 : 0); }
void BlockingSocket::set_cork(bool on) { set(IPPROTO_TCP, TCP_CORK, on ? 1 : 0); }
void BlockingSocket::set_quickack(bool on) { set(IPPROTO_TCP, TCP_QUICKACK, on ? 1 : 0); }
void BlockingSocket::set_send_buffer(int bytes) { set(SOL_SOCKET, SO_SNDBUF, bytes); }
void BlockingSocket::set_receive_buffer(int bytes) { set(SOL_SOCKET, SO_RCVBUF, bytes); }

void BlockingSocket::set_timeout(Duration timeout) {
  timeout_ = timeout;
  // 0 would mean for ever.
  const auto us = std::max<std::int64_t>(
      1, std::chrono::duration_cast<std::chrono::microseconds>(timeout).count());
  const timeval value{us / 1'000'000, us % 1'000'000};
  static_cast<void>(::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &value, sizeof value));
  static_cast<void>(::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &value, sizeof value));
}

io::HostPort BlockingSocket::local() const {
  SocketName name;
  name.size = sizeof name.storage;
  return ::getsockname(fd_, name.get(), &name.size) == 0 ? to_endpoint(name) : io::HostPort{};
}

io::HostPort BlockingSocket::peer() const {
  SocketName name;
  name.size = sizeof name.storage;
  return ::getpeername(fd_, name.get(), &name.size) == 0 ? to_endpoint(name) : io::HostPort{};
}

int BlockingSocket::send_buffer() const { return get(SOL_SOCKET, SO_SNDBUF); }
int BlockingSocket::receive_buffer() const { return get(SOL_SOCKET, SO_RCVBUF); }

TcpFigures BlockingSocket::figures() const {
  // An older kernel fills in less and leaves the rest 0.
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(fd_, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return {};
  using std::chrono::microseconds;
  TcpFigures figures;
  figures.segments_out = info.tcpi_segs_out;
  figures.data_segments_out = info.tcpi_data_segs_out;
  figures.data_segments_in = info.tcpi_data_segs_in;
  figures.retransmissions = info.tcpi_total_retrans;
  figures.bytes_acked = info.tcpi_bytes_acked;
  figures.bytes_received = info.tcpi_bytes_received;
  figures.send_window = info.tcpi_snd_wnd;
  figures.mss = info.tcpi_snd_mss;
  figures.rtt = microseconds(info.tcpi_rtt);
  figures.min_rtt = info.tcpi_min_rtt == UINT32_MAX ? Duration{} : microseconds(info.tcpi_min_rtt);
  figures.window_limited = microseconds(info.tcpi_rwnd_limited);
  figures.send_buffer_limited = microseconds(info.tcpi_sndbuf_limited);
  return figures;
}

}  // namespace tailward::net
