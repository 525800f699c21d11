#include "net/socket_transport.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <cerrno>
#include <cstddef>
#include <utility>
#include <vector>

#include "base/check.h"
#include "net/loop_core.h"

namespace tailward::net {
namespace {

using boost::asio::ip::tcp;
using Code = boost::system::error_code;

Error to_error(const Code& code, const std::string& what) {
  namespace errc = boost::system::errc;
  ErrorKind kind = ErrorKind::kDisconnected;
  std::string hint;
  if (code == errc::too_many_files_open || code == errc::too_many_files_open_in_system ||
      code == errc::no_buffer_space || code == errc::not_enough_memory) {
    kind = ErrorKind::kOverloaded;
    hint = "raise the limit of open files (ulimit -n)";
  } else if (code == errc::permission_denied) {
    kind = ErrorKind::kDenied;
  } else if (code == errc::address_in_use) {
    kind = ErrorKind::kInvalid;
    hint = "stop what listens there, or choose another port";
  } else if (code == errc::address_not_available || code == errc::invalid_argument) {
    kind = ErrorKind::kInvalid;
  }
  return Error{kind, what + ": " + code.message(), std::move(hint)};
}

io::HostPort to_endpoint(const tcp::endpoint& endpoint) {
  return {endpoint.address().to_string(), endpoint.port()};
}

// Addresses that need no resolver; empty for a name that does.
std::vector<tcp::endpoint> numeric(const io::HostPort& endpoint) {
  using boost::asio::ip::address_v4;
  using boost::asio::ip::address_v6;
  if (endpoint.host.empty()) return {{address_v4::loopback(), endpoint.port}};
  if (endpoint.host == "localhost") {
    return {{address_v4::loopback(), endpoint.port}, {address_v6::loopback(), endpoint.port}};
  }
  Code error;
  const auto address = boost::asio::ip::make_address(endpoint.host, error);
  if (error) return {};
  return {{address, endpoint.port}};
}

void apply(tcp::socket& socket, const StreamOptions& options) {
  Code ignored;
  socket.set_option(tcp::no_delay(options.nodelay), ignored);
  if (options.send_buffer) {
    socket.set_option(boost::asio::socket_base::send_buffer_size(*options.send_buffer), ignored);
  }
  if (options.receive_buffer) {
    socket.set_option(boost::asio::socket_base::receive_buffer_size(*options.receive_buffer),
                      ignored);
  }
}

// Room for one Asio operation, so that reading and writing allocate nothing. A second operation at
// the same time goes to the heap.
class Room {
 public:
  void* take(std::size_t size) {
    if (used_ || size > sizeof(bytes_)) return ::operator new(size);
    used_ = true;
    return bytes_;
  }
  void give_back(void* at) {
    if (at == bytes_) {
      used_ = false;
    } else {
      ::operator delete(at);
    }
  }

 private:
  alignas(std::max_align_t) std::byte bytes_[192];
  bool used_ = false;
};

template <class T>
struct RoomAllocator {
  using value_type = T;
  explicit RoomAllocator(Room& in) : room(&in) {}
  template <class U>
  RoomAllocator(const RoomAllocator<U>& other) : room(other.room) {}
  T* allocate(std::size_t count) { return static_cast<T*>(room->take(count * sizeof(T))); }
  void deallocate(T* at, std::size_t) { room->give_back(at); }
  template <class U>
  bool operator==(const RoomAllocator<U>& other) const {
    return room == other.room;
  }
  Room* room;
};

// What Asio's handlers and the stream share. Asio tells a cancelled handler later, when the stream
// is gone.
struct StreamState : std::enable_shared_from_this<StreamState> {
  StreamState(LoopCore& in, tcp::socket from, io::HostPort peer_address)
      : core(in), socket(std::move(from)), peer(std::move(peer_address)) {}

  struct ReadItem : ReadyItem {
    explicit ReadItem(StreamState& of) : state(of) {}
    void run() override {
      io::Stream::ReadCallback done = std::exchange(state.read_done, {});
      if (state.read_error && state.read_error != boost::asio::error::eof) {
        return done(fail(to_error(state.read_error, "reading")));
      }
      done(state.read_count);
    }
    StreamState& state;
  };
  struct WriteItem : ReadyItem {
    explicit WriteItem(StreamState& of) : state(of) {}
    void run() override {
      io::Stream::WriteCallback done = std::exchange(state.write_done, {});
      if (state.write_error) return done(fail(to_error(state.write_error, "writing")));
      done({});
    }
    StreamState& state;
  };

  struct ReadHandler {
    using allocator_type = RoomAllocator<std::byte>;
    [[nodiscard]] allocator_type get_allocator() const { return allocator_type(state->read_room); }
    void operator()(const Code& error, std::size_t count) {
      if (state->dead) return;
      state->read_error = error;
      state->read_count = error ? 0 : count;
      state->core.ready(state->read_item);
    }
    std::shared_ptr<StreamState> state;
  };
  struct WriteHandler {
    using allocator_type = RoomAllocator<std::byte>;
    [[nodiscard]] allocator_type get_allocator() const { return allocator_type(state->write_room); }
    void operator()(const Code& error) {
      if (state->dead) return;
      if (error) state->write_error = error;
      state->send();
    }
    std::shared_ptr<StreamState> state;
  };

  // Hands over what the kernel takes now, and waits for room if that was not all.
  void send() {
    while (!write_error && !(first.empty() && second.empty())) {
      std::array<iovec, 2> parts{{{const_cast<char*>(first.data()), first.size()},
                                  {const_cast<char*>(second.data()), second.size()}}};
      msghdr message{};
      message.msg_iov = first.empty() ? &parts[1] : parts.data();
      message.msg_iovlen = first.empty() || second.empty() ? 1 : 2;
      const ssize_t sent = ::sendmsg(socket.native_handle(), &message, MSG_NOSIGNAL);
      if (sent >= 0) {
        auto count = static_cast<std::size_t>(sent);
        const std::size_t of_first = std::min(count, first.size());
        first = first.subspan(of_first);
        second = second.subspan(count - of_first);
      } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        socket.async_wait(tcp::socket::wait_write, WriteHandler{shared_from_this()});
        return;
      } else if (errno != EINTR) {
        write_error = Code(errno, boost::system::system_category());
      }
    }
    if (finishing) shut_down();
    core.ready(write_item);
  }

  void shut_down() {
    Code ignored;
    socket.shutdown(tcp::socket::shutdown_send, ignored);
  }

  LoopCore& core;
  tcp::socket socket;
  io::HostPort peer;
  bool dead = false;
  bool finishing = false;

  io::Stream::ReadCallback read_done;
  Code read_error;
  std::size_t read_count = 0;
  ReadItem read_item{*this};
  Room read_room;

  std::span<const char> first, second;
  io::Stream::WriteCallback write_done;
  Code write_error;
  WriteItem write_item{*this};
  Room write_room;
};

class SocketStream : public io::Stream {
 public:
  SocketStream(LoopCore& core, tcp::socket socket, io::HostPort peer, SocketCounters& counters)
      : state_(std::make_shared<StreamState>(core, std::move(socket), std::move(peer))),
        counters_(counters) {
    ++counters_.open_streams;
  }
  ~SocketStream() override {
    --counters_.open_streams;
    StreamState& state = *state_;
    state.dead = true;
    state.core.forget(state.read_item);
    state.core.forget(state.write_item);
    Code ignored;
    state.socket.close(ignored);
    // They may own whatever comes back here when destroyed: out of the state first.
    const ReadCallback read = std::exchange(state.read_done, {});
    const WriteCallback write = std::exchange(state.write_done, {});
  }

  void read(std::span<char> buffer, ReadCallback done) override {
    TAILWARD_CHECK(!state_->read_done);
    TAILWARD_CHECK(!buffer.empty());
    state_->read_done = std::move(done);
    state_->socket.async_read_some(boost::asio::buffer(buffer.data(), buffer.size()),
                                   StreamState::ReadHandler{state_});
  }

  void write(std::span<const char> first, std::span<const char> second,
             WriteCallback done) override {
    TAILWARD_CHECK(!state_->write_done);
    TAILWARD_CHECK(!state_->finishing);
    state_->first = first;
    state_->second = second;
    state_->write_done = std::move(done);
    state_->send();
  }

  void finish_writing() override {
    if (std::exchange(state_->finishing, true)) return;
    if (state_->first.empty() && state_->second.empty()) state_->shut_down();
  }

  [[nodiscard]] io::HostPort peer() const override { return state_->peer; }

 private:
  std::shared_ptr<StreamState> state_;
  SocketCounters& counters_;
};

// One connect: resolves where needed, then tries the addresses in order.
struct ConnectState : ReadyItem, std::enable_shared_from_this<ConnectState> {
  ConnectState(LoopCore& in, io::HostPort target, const StreamOptions& with, SocketCounters& count,
               io::Transport::ConnectCallback call)
      : core(in),
        to(std::move(target)),
        options(with),
        counters(count),
        socket(in.context()),
        resolver(in.context()),
        done(std::move(call)) {}

  void begin() {
    addresses = numeric(to);
    if (!addresses.empty()) return try_next();
    resolver.async_resolve(
        to.host, std::to_string(to.port), tcp::resolver::numeric_service,
        [self = shared_from_this()](const Code& code, const tcp::resolver::results_type& found) {
          if (self->dead) return;
          if (code) {
            self->error = Error{ErrorKind::kInvalid, self->to.host + ": " + code.message(),
                                "check the name, or give a numeric address"};
            return self->core.ready(*self);
          }
          for (const auto& entry : found) self->addresses.push_back(entry.endpoint());
          self->try_next();
        });
  }

  void try_next() {
    Code code;
    while (next < addresses.size()) {
      const tcp::endpoint& address = addresses[next++];
      socket = tcp::socket(core.context());
      socket.open(address.protocol(), code);
      if (!code) {
        apply(socket, options);
        socket.async_connect(address, [self = shared_from_this()](const Code& result) {
          if (self->dead) return;
          if (!result) return self->core.ready(*self);
          self->fail_with(result);
          self->try_next();
        });
        return;
      }
      fail_with(code);
    }
    core.ready(*this);
  }

  void fail_with(const Code& code) {
    error = to_error(code, "connecting to " + io::to_string(to));
    // A connect that is forbidden or has no route is for the caller the same as one that is
    // refused.
    if (error.kind != ErrorKind::kOverloaded) error.kind = ErrorKind::kDisconnected;
    Code ignored;
    socket.close(ignored);
  }

  void run() override {
    io::Transport::ConnectCallback call = std::move(done);
    Code code;
    if (socket.is_open()) socket.non_blocking(true, code);
    if (!socket.is_open() || code) {
      ++counters.connect_errors;
      return call(fail(std::move(error)));
    }
    ++counters.connects;
    call(std::unique_ptr<io::Stream>(
        std::make_unique<SocketStream>(core, std::move(socket), to, counters)));
  }

  LoopCore& core;
  io::HostPort to;
  const StreamOptions& options;
  SocketCounters& counters;
  tcp::socket socket;
  tcp::resolver resolver;
  io::Transport::ConnectCallback done;
  std::vector<tcp::endpoint> addresses;
  std::size_t next = 0;
  Error error{ErrorKind::kDisconnected, "no address"};
  bool dead = false;
};

class SocketConnecting : public io::Connecting {
 public:
  explicit SocketConnecting(std::shared_ptr<ConnectState> state) : state_(std::move(state)) {}
  ~SocketConnecting() override {
    state_->dead = true;
    state_->core.forget(*state_);
    state_->resolver.cancel();
    Code ignored;
    state_->socket.close(ignored);
    const io::Transport::ConnectCallback dropped = std::move(state_->done);
  }

 private:
  std::shared_ptr<ConnectState> state_;
};

struct ListenState : ReadyItem, std::enable_shared_from_this<ListenState> {
  // New connections taken in one turn; the rest waits for the next, behind everybody else.
  static constexpr int kAcceptBatch = 64;

  ListenState(LoopCore& in, const StreamOptions& with, SocketCounters& count,
              io::Transport::AcceptCallback call)
      : core(in),
        options(with),
        counters(count),
        acceptor(in.context()),
        accepted(std::move(call)) {}

  Code open(const tcp::endpoint& at) {
    Code code;
    acceptor.open(at.protocol(), code);
    if (code) return code;
    acceptor.set_option(tcp::acceptor::reuse_address(true), code);
    if (!code && options.reuse_port) {
      acceptor.set_option(
          boost::asio::detail::socket_option::boolean<SOL_SOCKET, SO_REUSEPORT>(true), code);
    }
    if (!code && at.protocol() == tcp::v6()) {
      acceptor.set_option(boost::asio::ip::v6_only(options.v6_only), code);
    }
    if (!code) acceptor.non_blocking(true, code);
    if (!code) acceptor.bind(at, code);
    if (!code) acceptor.listen(options.backlog, code);
    if (!code) local = to_endpoint(acceptor.local_endpoint(code));
    return code;
  }

  void wait() {
    acceptor.async_wait(tcp::acceptor::wait_read, [self = shared_from_this()](const Code& code) {
      if (!code && !self->dead) self->core.ready(*self);
    });
  }

  void run() override {
    const std::shared_ptr<ListenState> keep = shared_from_this();
    for (int i = 0; i < kAcceptBatch && !dead; ++i) {
      Code code;
      tcp::endpoint from;
      tcp::socket socket(core.context());
      acceptor.accept(socket, from, code);
      if (code == boost::asio::error::would_block || code == boost::asio::error::try_again) break;
      if (!code) socket.non_blocking(true, code);
      if (code) {
        ++counters.accept_errors;
        // Out of descriptors or memory: the connection stays in the queue and would make us spin.
        if (to_error(code, "").kind == ErrorKind::kOverloaded) return pause();
        continue;
      }
      ++counters.accepts;
      apply(socket, options);
      accepted(
          std::make_unique<SocketStream>(core, std::move(socket), to_endpoint(from), counters));
    }
    if (!dead) wait();
  }

  void pause() {
    ++counters.accept_pauses;
    pause_timer = core.timers().after(SocketTransport::kAcceptPause, [this] { wait(); });
  }

  LoopCore& core;
  const StreamOptions& options;
  SocketCounters& counters;
  tcp::acceptor acceptor;
  io::Transport::AcceptCallback accepted;
  io::HostPort local;
  io::Timer pause_timer;
  bool dead = false;
};

class SocketListener : public io::Listener {
 public:
  explicit SocketListener(std::shared_ptr<ListenState> state) : state_(std::move(state)) {}
  ~SocketListener() override {
    state_->dead = true;
    state_->pause_timer.cancel();
    state_->core.forget(*state_);
    Code ignored;
    state_->acceptor.close(ignored);
  }
  [[nodiscard]] io::HostPort local() const override { return state_->local; }

 private:
  std::shared_ptr<ListenState> state_;
};

}  // namespace

class SocketTransport::Impl {
 public:
  LoopCore& core;
  StreamOptions options;
  SocketCounters counters;
};

SocketTransport::SocketTransport(Loop& loop, StreamOptions options)
    : impl_(new Impl{loop.core(), options, {}}) {}
SocketTransport::~SocketTransport() = default;

const SocketCounters& SocketTransport::counters() const { return impl_->counters; }

std::unique_ptr<io::Connecting> SocketTransport::connect(const io::HostPort& to,
                                                         ConnectCallback done) {
  auto state = std::make_shared<ConnectState>(impl_->core, to, impl_->options, impl_->counters,
                                              std::move(done));
  state->begin();
  return std::make_unique<SocketConnecting>(std::move(state));
}

Result<std::unique_ptr<io::Listener>> SocketTransport::listen(const io::HostPort& at,
                                                              AcceptCallback accepted) {
  const std::vector<tcp::endpoint> addresses = numeric(at);
  if (addresses.empty()) {
    return fail(ErrorKind::kInvalid, "cannot listen on the name \"" + at.host + "\"",
                "give a numeric address of this machine");
  }
  auto state = std::make_shared<ListenState>(impl_->core, impl_->options, impl_->counters,
                                             std::move(accepted));
  if (const Code code = state->open(addresses.front())) {
    return fail(to_error(code, "listening on " + io::to_string(at)));
  }
  state->wait();
  return std::unique_ptr<io::Listener>(std::make_unique<SocketListener>(std::move(state)));
}

}  // namespace tailward::net
